//! Creates a client from a kubeconfig, from a pod's service account, or for an embedded cluster.

mod credentials;
mod flags;
mod plugin;
mod proxy;

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use embedded_apiserver::ApiServer;
use http::Uri;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use tokio::task::JoinHandle;

use self::flags::Flags;
use crate::demo;

/// Which cluster, and as whom.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Which cluster")]
#[group(id = "connection")]
pub(crate) struct Options {
    /// The kubeconfig. Otherwise $KUBECONFIG, then ~/.kube/config, then the service account of the
    /// pod that this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig to use, instead of its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The cluster of the kubeconfig to use, instead of the context's.
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,

    /// The user of the kubeconfig to use, instead of the context's.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The user to act as.
    #[arg(long = "as", value_name = "USER")]
    act_as: Option<String>,

    /// A group to act as; may be repeated.
    #[arg(long, value_name = "GROUP", requires = "act_as")]
    as_group: Vec<String>,

    #[command(flatten)]
    flags: Flags,

    /// An embedded API server with a small living cluster, in this process. Without a kubeconfig, watch
    /// and top show it on a terminal; all other commands, and watch and top in a pipe, are an error.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context", "cluster", "user", "as_group"])]
    #[arg(conflicts_with_all = ["server", "token", "certificate_authority", "tls_server_name"])]
    embedded: bool,
}

impl Options {
    /// Reads the kubeconfig that these options select.
    pub(crate) fn kubeconfig(&self) -> Option<Kubeconfig> {
        Sources::find(self).ok()??.read().ok()
    }
}

/// A cluster to connect to.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// The namespace for commands that name none.
    pub(crate) namespace: String,
    pub(crate) place: Place,
    demo: Option<Demo>,
}

/// The location of a cluster, for messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The server's address.
    pub(crate) address: String,
    /// The source of the address: a kubeconfig and a context.
    pub(crate) origin: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.address, self.origin)
    }
}

/// The embedded demo cluster. It runs until this is dropped.
struct Demo {
    /// Whether the user asked for it, as opposed to a fallback.
    asked: bool,
    server: ApiServer,
    life: JoinHandle<()>,
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.life.abort();
    }
}

impl Cluster {
    /// Connects to the selected cluster, without falling back to the demo cluster: users rely on
    /// the answers of these commands. The error is a message for the user.
    pub(crate) async fn connect(options: &Options) -> Result<Self, String> {
        match Self::find(options).await? {
            Some(cluster) => Ok(cluster),
            None => {
                Err("there is no kubeconfig ($KUBECONFIG, ~/.kube/config), and this is no pod\n\
                         name one with --kubeconfig FILE; --embedded shows a small living cluster \
                         instead"
                    .to_owned())
            }
        }
    }

    /// Connects to the selected cluster. If there is none and standard output is a terminal, where
    /// a person sees the notice, falls back to the demo cluster. A program that reads the output
    /// must not take a simulated cluster for a real one.
    pub(crate) async fn connect_or_embedded(options: &Options) -> Result<Self, String> {
        if !io::stdout().is_terminal() {
            return Self::connect(options).await;
        }
        Ok(Self::find(options).await?.unwrap_or_else(|| Self::embedded(options)))
    }

    async fn find(options: &Options) -> Result<Option<Self>, String> {
        if options.embedded {
            return Ok(Some(Self::embedded(options)));
        }
        options.flags.check()?;
        if let Some(sources) = Sources::find(options)? {
            return Self::from_kubeconfig(&sources, options).await.map(Some);
        }
        if options.flags.name_a_server() {
            return Self::from_kubeconfig(&Sources(Vec::new()), options).await.map(Some);
        }
        if in_cluster() {
            return Self::from_service_account(options).await.map(Some);
        }
        for (flag, value) in
            [("context", &options.context), ("cluster", &options.cluster), ("user", &options.user)]
        {
            if let Some(value) = value {
                return Err(format!(
                    "--{flag} {value}: there is no kubeconfig to find it in\n\
                     name one with --kubeconfig FILE or $KUBECONFIG, or put it at ~/.kube/config"
                ));
            }
        }
        if let Some(flag) = options.flags.without_server() {
            return Err(format!(
                "{flag}: there is no kubeconfig with a server that it could apply to\n\
                 name the server with --server URL, or a kubeconfig with --kubeconfig FILE"
            ));
        }
        Ok(None)
    }

    /// Returns the notice that this is the demo cluster, unless the user asked for it.
    pub(crate) fn notice(&self) -> Option<String> {
        self.demo.as_ref().filter(|demo| !demo.asked).map(|_| {
            "no kubeconfig ($KUBECONFIG, ~/.kube/config), and this is no pod: showing a small\n\
             living cluster on an embedded API server. `serve --demo` is one for kubectl."
                .to_owned()
        })
    }

    /// Returns whether this is the embedded cluster.
    pub(crate) fn is_embedded(&self) -> bool {
        self.demo.is_some()
    }

    /// Returns the server of the embedded cluster.
    pub(crate) fn server(&self) -> Option<&ApiServer> {
        self.demo.as_ref().map(|demo| &demo.server)
    }

    /// Returns whether commands show all namespaces by default. They do for the embedded cluster,
    /// which is small; a real one may be large.
    pub(crate) fn shows_everything(&self) -> bool {
        self.is_embedded()
    }

    /// Connects to a test's server in the same process, which works while time is paused.
    #[cfg(test)]
    pub(crate) fn of(server: &ApiServer) -> Self {
        let place = Place { address: "embedded".to_owned(), origin: "in this process".to_owned() };
        Self { client: server.client(), namespace: "default".to_owned(), place, demo: None }
    }

    fn embedded(options: &Options) -> Self {
        let server = demo::cluster(None);
        let client = match &options.act_as {
            Some(user) => server.client_as(user.as_str()),
            None => server.client(),
        };
        let life = tokio::spawn(demo::live(server.clone(), None));
        Self {
            client,
            namespace: "default".to_owned(),
            place: Place { address: "embedded".to_owned(), origin: "in this process".to_owned() },
            demo: Some(Demo { asked: options.embedded, server, life }),
        }
    }

    async fn from_kubeconfig(sources: &Sources, options: &Options) -> Result<Self, String> {
        let mut kubeconfig = sources.read()?;
        let context = options.context.clone().or_else(|| kubeconfig.current_context.clone());
        let mut chosen = KubeConfigOptions {
            context: options.context.clone(),
            cluster: options.cluster.clone(),
            user: options.user.clone(),
        };
        let contexts: Vec<_> = kubeconfig.contexts.iter().map(|each| each.name.clone()).collect();
        let clusters: Vec<_> = kubeconfig.clusters.iter().map(|each| each.name.clone()).collect();
        let users: Vec<_> = kubeconfig.auth_infos.iter().map(|each| each.name.clone()).collect();
        sources.must_have("context", options.context.as_ref(), &contexts)?;
        sources.must_have("cluster", options.cluster.as_ref(), &clusters)?;
        sources.must_have("user", options.user.as_ref(), &users)?;
        options.flags.apply(&mut kubeconfig, &mut chosen);
        let proxy = proxy::named(&kubeconfig, context.as_deref(), options.cluster.as_deref());
        let config = Config::from_custom_kubeconfig(kubeconfig, &chosen).await;
        let mut config = config.map_err(|error| sources.unusable(&error, &contexts))?;
        // A proxy from the kubeconfig always applies; one from the environment may be for other
        // servers.
        config.proxy_url = proxy.or_else(|| proxy::of_environment(&config.cluster_url));
        let mut origin = match context {
            Some(context) if !context.is_empty() => format!("context {context} of {sources}"),
            _ => sources.to_string(),
        };
        if options.flags.name_a_server() {
            let other = if sources.0.is_empty() { String::new() } else { format!(", {origin}") };
            origin = format!("--server{other}");
        }
        if let Some(host) = config.proxy_url.as_ref().and_then(Uri::host) {
            origin.push_str(&format!(", through the proxy {host}"));
        }
        Self::new(config, origin, options).await
    }

    async fn from_service_account(options: &Options) -> Result<Self, String> {
        let mut config = Config::incluster().map_err(|error| {
            format!("this is a pod, but its service account cannot be used: {error}")
        })?;
        options.flags.apply_in_pod(&mut config);
        Self::new(config, "this pod's service account".to_owned(), options).await
    }

    async fn new(mut config: Config, origin: String, options: &Options) -> Result<Self, String> {
        if options.act_as.is_some() {
            config.auth_info.impersonate.clone_from(&options.act_as);
            config.auth_info.impersonate_groups =
                Some(options.as_group.clone()).filter(|groups| !groups.is_empty());
        }
        if config.cluster_url.scheme().is_none() {
            config.cluster_url = with_scheme(&config)
                .ok_or_else(|| format!("{origin} names no server: {}", config.cluster_url))?;
        }
        let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let namespace = config.default_namespace.clone();
        let place = Place { address, origin };
        let client = match plugin::take(&mut config) {
            Some(exec) => plugin::client(config, exec, &place).await?,
            None => kube_informer::client(config)
                .map_err(|error| credentials::unmade(&error, &place))?,
        };
        Ok(Self { client, namespace, place, demo: None })
    }
}

/// The files from which the kubeconfig is read.
#[derive(Debug)]
struct Sources(Vec<PathBuf>);

impl Sources {
    /// Finds the kubeconfig from the flag, the environment or the default path, if there is one.
    fn find(options: &Options) -> Result<Option<Self>, String> {
        if let Some(file) = &options.kubeconfig {
            return Self::named(std::slice::from_ref(file), "--kubeconfig").map(Some);
        }
        if let Some(list) = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
            let files = std::env::split_paths(&list).filter(|file| !file.as_os_str().is_empty());
            return Self::named(&files.collect::<Vec<_>>(), "KUBECONFIG").map(Some);
        }
        let home = std::env::home_dir().map(|home| home.join(".kube").join("config"));
        Ok(home.filter(|file| file.exists()).map(|file| Self(vec![file])))
    }

    /// Keeps the files that exist. As in kubectl, some of them may be missing, but not all.
    fn named(files: &[PathBuf], by: &str) -> Result<Self, String> {
        let there: Vec<PathBuf> = files.iter().filter(|file| file.exists()).cloned().collect();
        if there.is_empty() {
            let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            return Err(format!(
                "there is no kubeconfig {}, which {by} names\n\
                 name one that exists, or use --embedded to try things without a cluster",
                names.join(", ")
            ));
        }
        Ok(Self(there))
    }

    fn read(&self) -> Result<Kubeconfig, String> {
        let mut merged: Option<Kubeconfig> = None;
        for file in &self.0 {
            let read = Kubeconfig::read_from(file).map_err(|error| unreadable(file, &error))?;
            merged = Some(match merged {
                None => read,
                Some(before) => before.merge(read).map_err(|error| unreadable(file, &error))?,
            });
        }
        Ok(merged.unwrap_or_default())
    }

    fn must_have(&self, what: &str, name: Option<&String>, known: &[String]) -> Result<(), String> {
        let Some(name) = name.filter(|name| !known.contains(name)) else { return Ok(()) };
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(format!("{self} has no {what} {name:?}\nits {what}s are: {known}"))
    }

    fn unusable(&self, error: &dyn fmt::Display, contexts: &[String]) -> String {
        let mut text = format!("the kubeconfig {self} cannot be used: {error}");
        if contexts.is_empty() {
            text.push_str("\nit has no contexts: `kubectl config set-context` makes one");
        } else {
            text.push_str(&format!("\nits contexts are: {}", contexts.join(", ")));
        }
        text
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|file| file.display().to_string()).collect();
        f.write_str(&names.join(", "))
    }
}

fn unreadable(file: &Path, error: &dyn fmt::Display) -> String {
    format!("the kubeconfig {} cannot be read: {error}", file.display())
}

/// Adds a scheme to an address such as `10.0.0.1:6443`. Like kubectl, assumes HTTPS if any TLS
/// option is set.
fn with_scheme(config: &Config) -> Option<Uri> {
    let user = &config.auth_info;
    let tls = config.root_cert.is_some()
        || config.accept_invalid_certs
        || config.tls_server_name.is_some()
        || user.client_certificate.is_some()
        || user.client_certificate_data.is_some();
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{}", config.cluster_url.authority()?).parse().ok()
}

fn in_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty())
}

//! `serve`: the embedded API server as a process of its own.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use embedded_apiserver::{ApiServer, Identity, Listening};
use jiff::Timestamp;

use crate::demo;
use crate::signals::Stop;

/// Runs an embedded Kubernetes API server until Ctrl-C or SIGTERM
///
/// It serves Kubernetes' own kinds and custom resources from memory: everything is gone when it ends.
/// When it is ready it prints one line with its address and the kubeconfig:
///
///   kubectl-informer serve --listen 127.0.0.1:0 --kubeconfig /tmp/embedded &
///   kubectl --kubeconfig /tmp/embedded get namespaces
///
/// It can be broken on purpose while it runs, by whoever has its token:
///
///   export KUBECONFIG=/tmp/embedded
///   echo 'watch pods half-open' | kubectl create --raw /embedded/faults -f -
///   echo 'down=10s' | kubectl create --raw /embedded/faults -f -
///   kubectl get --raw /embedded/faults
///   kubectl delete --raw /embedded/faults
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The address to listen on, one that only this machine can reach. Port 0 picks a free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6443")]
    listen: String,

    /// Where to write a kubeconfig for the server. It holds the administrator's token and the key of
    /// the server's certificate (which `kubectl config view` does not hide), so that only you may read
    /// it. It stays when the server ends: one that is started with the same file takes token and
    /// certificate from it, so that clients go on. Remove it for new ones. A file that something else
    /// wrote is not replaced.
    #[arg(long, value_name = "FILE", default_value = "embedded.kubeconfig")]
    kubeconfig: PathBuf,

    /// Objects to begin with: a file of YAML documents, or JSON, as for `kubectl create -f`. They are
    /// created in their order, so that a `CustomResourceDefinition` comes before its objects.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Lets pods run: they are scheduled, become ready, and take their time to end. Otherwise they
    /// stay Pending, and are gone at once when they are deleted.
    #[arg(long)]
    pods_run: bool,

    /// Serves a small living cluster: deployments, pods, jobs and a custom resource, in which something
    /// happens about once a second. Pods run, as with --pods-run; it reacts to what is deleted or
    /// patched (`kubectl patch`).
    #[arg(long)]
    demo: bool,

    /// Something to go wrong on purpose: which requests, when, how often,
    /// and what. May be given several times; more can be added while it
    /// runs (see above).
    ///
    ///   --fault 'watch pods after-events=10 half-open'
    ///   --fault 'list status=429 retry-after=5 times=3'
    ///   --fault 'any latency=200ms always'
    ///   --fault 'flaky-network=0.1'
    ///
    /// `kubectl get --raw /embedded` says what there is, while it runs.
    #[arg(long = "fault", value_name = "RULE", verbatim_doc_comment)]
    faults: Vec<String>,

    /// Serves HTTP without TLS. kubectl sends no token without TLS, so that everybody on this machine
    /// is let in without one, unless --token is given.
    #[arg(long)]
    plain: bool,

    /// The administrator's bearer token. Other users of this machine may see the arguments of a
    /// command: better leave it to the server, which makes one up, or keeps that of the kubeconfig.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is a secret.
        f.debug_struct("Options").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// Serves until it is told to stop. The error is what to tell the user.
pub(crate) async fn serve(options: &Options) -> Result<(), String> {
    // From here on a signal ends the server in an orderly way, however early it comes.
    let mut stop = Stop::new()?;
    let identity = earlier_identity(&options.kubeconfig)?;
    let server = start(options, identity.as_ref())?;
    if options.demo {
        demo::populate(&server, None);
    }
    if let Some(data) = &options.data {
        load(&server, data)?;
    }
    inject(&server, &options.faults)?;
    let listening = listen(&server, options, identity).await?;
    listening.write_kubeconfig(&options.kubeconfig).map_err(|error| {
        format!("{error}\nsay where to write it with --kubeconfig FILE; its directory must exist")
    })?;
    announce(&listening, &options.kubeconfig)?;
    tell(&format!("{}; Ctrl-C ends it", how_to_use(&options.kubeconfig)));
    tokio::select! {
        biased;
        () = stop.requested() => {}
        () = demo::live(server, None), if options.demo => {}
    }
    listening.shutdown().await;
    // In the place of the ^C that terminals show.
    tell("\r\x1b[Kended: its objects are gone");
    Ok(())
}

/// Says something to whoever sits there; programs read the line on standard output.
fn tell(text: &str) {
    let mut err = io::stderr();
    if err.is_terminal() {
        // With nobody left to read it, there is nobody to tell.
        let _ = writeln!(err, "{text}");
    }
}

/// What to type where kubectl is.
fn how_to_use(kubeconfig: &Path) -> String {
    let path = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    let path = path.display().to_string();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    if path.chars().all(plain) {
        format!("export KUBECONFIG={path}")
    } else {
        format!("export KUBECONFIG='{}'", path.replace('\'', "'\\''"))
    }
}

fn start(options: &Options, identity: Option<&Identity>) -> Result<ApiServer, String> {
    let mut builder = if options.demo {
        demo::builder(None)
    } else {
        ApiServer::builder().pods_run(options.pods_run)
    };
    let first_version = first_version(Timestamp::now(), identity);
    builder = builder.first_version(first_version).control_path(true);
    match &options.token {
        Some(token) if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            return Err("--token must be visible ASCII characters, at least one, because it is \
                        sent in an HTTP header"
                .to_owned());
        }
        Some(token) => builder = builder.token(token),
        None => {
            builder = builder.anonymous(options.plain);
            if let Some(identity) = identity {
                builder = builder.token(identity.token());
            }
        }
    }
    Ok(builder.build())
}

/// Returns a version above all that a server gave out which clients may take this one for.
///
/// The kubeconfig of that server says which they are. Without one, versions are the time since 2026
/// began in microseconds: no server writes a million objects per second, so that none gets ahead of
/// the clock.
fn first_version(now: Timestamp, earlier: Option<&Identity>) -> u64 {
    const BEGIN: Timestamp = Timestamp::constant(1_767_225_600, 0);
    let clock = u64::try_from(now.duration_since(BEGIN).as_micros()).unwrap_or(1);
    clock.max(earlier.map_or(1, Identity::first_version))
}

fn load(server: &ApiServer, path: &Path) -> Result<(), String> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read the data file {shown}: {error}"))?;
    let loaded = server.load_yaml(&text);
    loaded.map_err(|error| format!("the data file {shown} was not loaded: {error}"))?;
    Ok(())
}

fn inject(server: &ApiServer, rules: &[String]) -> Result<(), String> {
    for rule in rules {
        let injected = server.faults().inject_text(rule);
        injected.map_err(|problem| format!("--fault '{rule}': {problem}"))?;
    }
    Ok(())
}

async fn listen(
    server: &ApiServer,
    options: &Options,
    identity: Option<Identity>,
) -> Result<Listening, String> {
    let mut listener = server.listener().plain(options.plain);
    if let Some(identity) = identity {
        listener = listener.identity(identity);
    }
    listener.bind(&options.listen).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                "{error}\nend what uses the port, or choose another: --listen 127.0.0.1:0 picks \
                     a free one"
            )
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "--listen {}: only addresses of this machine alone, and ports that you may \
                     use, are served: try --listen 127.0.0.1:6443",
                options.listen
            )
        }
        _ => {
            format!(
                "--listen {}: {error}\ngive an address and a port, such as 127.0.0.1:6443",
                options.listen
            )
        }
    })
}

/// Who the server was that wrote the kubeconfig: this one is to be the same to its clients. None if
/// there is no such file, or nothing of use in it.
///
/// What is already there is replaced only if it is one of ours: somebody's own, with the way to all
/// their clusters, is too easily named by mistake.
fn earlier_identity(path: &Path) -> Result<Option<Identity>, String> {
    match read(path) {
        Ok((bytes, _)) if bytes.is_empty() => Ok(None),
        Ok((bytes, private)) if bytes.starts_with(Listening::KUBECONFIG_MARK.as_bytes()) => {
            let text = str::from_utf8(&bytes).ok().filter(|_| private);
            Ok(text.and_then(Identity::from_kubeconfig))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(_) => Err(format!(
            "{} exists, and is no kubeconfig that an embedded API server has written\nremove it, or \
             choose another file with --kubeconfig FILE",
            path.display()
        )),
        Err(error) => Err(format!("cannot write the kubeconfig {}: {error}", path.display())),
    }
}

/// Returns the contents of a file, and whether it is this user's alone. Secrets that others may know,
/// or may have put there, are not to be used again.
fn read(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    #[cfg(unix)]
    let private = {
        use std::os::unix::fs::MetadataExt as _;

        const OF_OTHERS: u32 = 0o077;
        let metadata = file.metadata()?;
        let ours = metadata.uid() == rustix::process::geteuid().as_raw();
        ours && metadata.mode() & OF_OTHERS == 0
    };
    #[cfg(not(unix))]
    let private = true;
    Ok((bytes, private))
}

fn announce(listening: &Listening, kubeconfig: &Path) -> Result<(), String> {
    let line = format!(
        "embedded Kubernetes API server on {}, kubeconfig {}",
        listening.url(),
        kubeconfig.display()
    );
    let mut out = io::stdout();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        // Nobody reads; the kubeconfig says it as well.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| format!("cannot write to standard output: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_go_forward_even_if_the_clock_goes_back() {
        let at = |micros| {
            Timestamp::from_microsecond(1_767_225_600_000_000_i64.saturating_add(micros)).unwrap()
        };
        assert_eq!(first_version(at(5), None), 5);
        assert_eq!(first_version(at(-5), None), 1);
        let text = format!(
            "{}\n# Its resourceVersions are below 7000\nclusters: [{{cluster: {{}}}}]\n\
             users: [{{user: {{token: t}}}}]\n",
            Listening::KUBECONFIG_MARK
        );
        let earlier = Identity::from_kubeconfig(&text).unwrap();
        assert_eq!(first_version(at(5), Some(&earlier)), 7000);
        assert_eq!(first_version(at(8000), Some(&earlier)), 8000);
    }

    #[test]
    fn what_is_to_be_pasted_is_quoted() {
        assert_eq!(how_to_use(Path::new("/a/b-c.d")), "export KUBECONFIG=/a/b-c.d");
        assert_eq!(how_to_use(Path::new("/a b/it's")), "export KUBECONFIG='/a b/it'\\''s'");
    }
}

//! `serve`: the embedded API server as a separate process.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use embedded_apiserver::{ApiServer, Identity, Listening};
use jiff::Timestamp;

use crate::signals::Stop;
use crate::{demo, ui};

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

    #[command(flatten)]
    ui: ui::Options,

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

/// Serves until stopped. The error is a message for the user.
pub(crate) async fn serve(options: &Options) -> Result<(), String> {
    // From here on, a signal stops the server gracefully, however early it arrives.
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
    // It is shown by informers in this process, which suffer from faults like any client.
    let ui = options.ui.serve_demo(&server).await?;
    if let Some(ui) = &ui {
        print(&ui.line())?;
    }
    tell(&format!("{}; Ctrl-C ends it", how_to_use(&options.kubeconfig)));
    tokio::select! {
        biased;
        () = stop.requested() => {}
        () = demo::live(server, None), if options.demo => {}
    }
    listening.shutdown().await;
    // Overwrites the `^C` that terminals show.
    tell("\r\x1b[Kended: its objects are gone");
    Ok(())
}

/// Prints a message for the user, if standard error is a terminal. Programs read the line on
/// standard output instead.
fn tell(text: &str) {
    let mut err = io::stderr();
    if err.is_terminal() {
        // If standard error is closed, the message cannot be delivered.
        let _ = writeln!(err, "{text}");
    }
}

/// Returns the command that makes kubectl use this server.
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

/// Returns a version above all that an earlier server issued, if clients may take this server for
/// that one.
///
/// That server's kubeconfig contains an upper bound of its versions. Without one, the version is
/// the number of microseconds since the beginning of 2026: no server writes a million objects per
/// second, so that none gets ahead of the clock.
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

/// Reads the identity of the server that wrote the kubeconfig, so that this server has the same
/// identity for its clients. Returns `None` if the file does not exist or contains nothing usable.
///
/// An existing file is replaced only if an embedded API server has written it: a user could too
/// easily name their own kubeconfig by mistake and lose access to all their clusters.
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

/// Returns the contents of a file, and whether only this user has access to it. Secrets that others
/// may know, or may have planted, must not be reused.
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
    print(&line)
}

/// Prints a line for programs and people.
fn print(line: &str) -> Result<(), String> {
    let mut out = io::stdout();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        // The reader has closed the pipe. The kubeconfig has the same information.
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

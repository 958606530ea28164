//! Credentials from a plugin such as `aws eks get-token`. As in client-go, it runs once, and again
//! only when the credentials expire or the server rejects them.

use std::io::{self, IsTerminal as _};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use jiff::Timestamp;
use kube_client::client::Body;
use kube_client::config::{ExecConfig, ExecInteractiveMode};
use kube_client::{Client, Config};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Mutex, oneshot};
use tower_service::Service;

use super::Place;
use super::credentials::{ended_with, not_started, printed_none, unmade};

/// Removes the plugin from a configuration that would get its credentials from one. As in kube's
/// client, credentials in the kubeconfig itself take precedence.
pub(super) fn take(config: &mut Config) -> Option<ExecConfig> {
    let user = &mut config.auth_info;
    let others = user.auth_provider.is_some()
        || (user.username.is_some() && user.password.is_some())
        || user.token.is_some()
        || user.token_file.is_some();
    user.exec.take().filter(|_| !others)
}

/// Runs the plugin and returns a client that uses its credentials.
pub(super) async fn client(
    config: Config,
    exec: ExecConfig,
    place: &Place,
) -> Result<Client, String> {
    let namespace = config.default_namespace.clone();
    let plugin = Plugin { config, exec, place: place.clone() };
    let current = plugin.run().await?;
    let plugin = Authenticated { plugin: Arc::new(plugin), current: Arc::new(Mutex::new(current)) };
    Ok(Client::new(plugin, namespace))
}

/// A plugin, and the configuration without its credentials.
struct Plugin {
    config: Config,
    exec: ExecConfig,
    place: Place,
}

/// The credentials of one run, and a client that uses them.
#[derive(Clone)]
struct Current {
    client: Client,
    /// The token, which is added to each request, so that a new token needs no new connection. A
    /// certificate, in contrast, is part of the client.
    authorization: Option<HeaderValue>,
    certificate: Option<String>,
    expires: Option<Timestamp>,
    /// Whether the server has rejected these credentials.
    refused: bool,
    run: u64,
}

impl Current {
    fn is_valid(&self) -> bool {
        !self.refused && self.expires.is_none_or(|expires| Timestamp::now() <= expires)
    }
}

/// A service that sends requests with the plugin's credentials.
#[derive(Clone)]
struct Authenticated {
    plugin: Arc<Plugin>,
    current: Arc<Mutex<Current>>,
}

impl Authenticated {
    async fn send(self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let used = {
            // Requests that arrive while the plugin runs wait for its result.
            let mut current = self.current.lock().await;
            if !current.is_valid() {
                *current = self.plugin.run_again(&current).await?;
            }
            current.clone()
        };
        if let Some(authorization) = used.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        let response = used.client.send(request).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let mut current = self.current.lock().await;
            current.refused |= current.run == used.run;
        }
        Ok(response)
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for Authenticated {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

/// The part of an `ExecCredential` that a plugin fills in.
#[derive(Deserialize)]
struct ExecCredential {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Plugin {
    async fn run(&self) -> Result<Current, String> {
        self.current(self.status().await?, None)
    }

    async fn run_again(&self, before: &Current) -> Result<Current, String> {
        self.current(self.status().await?, Some(before))
    }

    fn current(&self, status: Status, before: Option<&Current>) -> Result<Current, String> {
        let certificate = status.client_certificate_data.zip(status.client_key_data);
        let text = certificate.as_ref().map(|(certificate, _)| certificate.clone());
        let client = match before.filter(|before| before.certificate == text) {
            Some(before) => before.client.clone(),
            None => self.with_certificate(certificate)?,
        };
        let authorization = status.token.map(|token| format!("Bearer {token}").try_into());
        let mut authorization: Option<HeaderValue> =
            authorization.transpose().map_err(|_| printed_none(&self.exec, &self.place))?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        Ok(Current {
            client,
            authorization,
            certificate: text,
            expires: status.expiration_timestamp,
            refused: false,
            run: before.map_or(0, |before| before.run + 1),
        })
    }

    fn with_certificate(&self, certificate: Option<(String, String)>) -> Result<Client, String> {
        let mut config = self.config.clone();
        if let Some((certificate, key)) = certificate {
            config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
            config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
        }
        kube_informer::client(config).map_err(|error| unmade(&error, &self.place))
    }

    /// Runs the plugin on a separate thread. It may take as long as a person takes to log in, and
    /// an interrupted command does not wait for it.
    async fn status(&self) -> Result<Status, String> {
        let mut command = self.command();
        let (finished, output) = oneshot::channel();
        std::thread::spawn(move || finished.send(command.output()));
        let ended = output.await.unwrap_or_else(|_| Err(io::Error::other("its thread has ended")));
        let Output { status, stdout, stderr } =
            ended.map_err(|cause| not_started(&cause, &self.exec, &self.place))?;
        if !status.success() {
            return Err(ended_with(status, &stderr, &self.exec, &self.place));
        }
        // client-go accepts YAML here too.
        let text = String::from_utf8_lossy(&stdout);
        let credential = serde_saphyr::from_str::<ExecCredential>(&text).ok();
        let status = credential.and_then(|credential| credential.status);
        let given = |status: &Status| {
            status.token.is_some()
                || (status.client_certificate_data.is_some() && status.client_key_data.is_some())
        };
        status.filter(given).ok_or_else(|| printed_none(&self.exec, &self.place))
    }

    fn command(&self) -> Command {
        let exec = &self.exec;
        let mut command = Command::new(exec.command.as_deref().unwrap_or_default());
        command.args(exec.args.iter().flatten());
        for variable in exec.env.iter().flatten() {
            if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
                command.env(name, value);
            }
        }
        let may_ask = exec.interactive_mode != Some(ExecInteractiveMode::Never);
        let interactive = may_ask && io::stdin().is_terminal();
        command.stdin(if interactive { Stdio::inherit() } else { Stdio::null() });
        // A plugin that waits for the user to log in prints its instructions to standard error.
        command.stderr(if may_ask { Stdio::inherit() } else { Stdio::piped() });
        command.stdout(Stdio::piped());
        let mut spec = json!({ "interactive": interactive });
        if exec.provide_cluster_info {
            spec["cluster"] = serde_json::to_value(&exec.cluster).unwrap_or(Value::Null);
        }
        let info = json!({
            "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec,
        });
        command.env("KUBERNETES_EXEC_INFO", info.to_string());
        command
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::PathBuf;

    use embedded_apiserver::{ApiServer, Listening};
    use kube_client::config::{KubeConfigOptions, Kubeconfig};

    use super::*;

    /// A server that requires a token, and a file that counts the runs of a plugin.
    struct Counted {
        _listening: Listening,
        config: Config,
        token: String,
        directory: PathBuf,
    }

    impl Counted {
        async fn start(name: &str) -> Self {
            let directory = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&directory);
            std::fs::create_dir_all(&directory).unwrap();
            let server = ApiServer::builder().build();
            let listening = server.listener().bind("127.0.0.1:0").await.unwrap();
            let file = directory.join("kubeconfig");
            listening.write_kubeconfig(&file).unwrap();
            let kubeconfig = Kubeconfig::read_from(&file).unwrap();
            let mut config =
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                    .await
                    .unwrap();
            let token = config.auth_info.token.take().unwrap();
            // The text of a secret is available only by serializing it.
            let token = serde_json::to_value(kube_client::config::AuthInfo {
                token: Some(token),
                ..Default::default()
            });
            let token = token.unwrap()["token"].as_str().unwrap().to_owned();
            Self { _listening: listening, config, token, directory }
        }

        /// Returns a client whose plugin prints the first of these statuses on its first run, and
        /// so on.
        async fn client(&self, statuses: &[Value]) -> Client {
            for (run, status) in statuses.iter().enumerate() {
                let credential = json!({ "kind": "ExecCredential", "status": status });
                let file = self.directory.join(format!("run-{}", run + 1));
                std::fs::write(file, credential.to_string()).unwrap();
            }
            let directory = self.directory.display();
            let script =
                format!("cd '{directory}'; echo >>runs; cat run-$(wc -l <runs | tr -d ' ')");
            let exec = json!({
                "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
                "args": ["-c", script], "interactiveMode": "Never",
            });
            let place = Place { address: String::new(), origin: String::new() };
            let exec = serde_json::from_value(exec).unwrap();
            client(self.config.clone(), exec, &place).await.unwrap()
        }

        fn runs(&self) -> usize {
            std::fs::read_to_string(self.directory.join("runs")).unwrap().lines().count()
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }

    async fn get(client: &Client) -> StatusCode {
        let request = Request::get("/api/v1/namespaces").body(Body::empty()).unwrap();
        client.send(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn runs_again_only_after_refusal_or_expiry() {
        let server = Counted::start("plugin-refused").await;
        let client = server
            .client(&[
                json!({ "token": "wrong" }),
                json!({ "token": server.token, "expirationTimestamp": "2020-01-01T00:00:00Z" }),
                json!({ "token": server.token, "expirationTimestamp": "2199-01-01T00:00:00Z" }),
            ])
            .await;
        assert_eq!(server.runs(), 1);
        assert_eq!((get(&client).await, server.runs()), (StatusCode::UNAUTHORIZED, 1));
        assert_eq!((get(&client).await, server.runs()), (StatusCode::OK, 2));
        // By now, the credentials of the second run have expired.
        for _ in 0..3 {
            assert_eq!((get(&client).await, server.runs()), (StatusCode::OK, 3));
        }
    }

    #[tokio::test]
    async fn runs_once_for_a_certificate() {
        let server = Counted::start("plugin-certificate").await;
        let key = rcgen::generate_simple_self_signed(vec!["person".to_owned()]).unwrap();
        let client = server
            .client(&[json!({
                "token": server.token, "clientCertificateData": key.cert.pem(),
                "clientKeyData": key.signing_key.serialize_pem(),
            })])
            .await;
        assert_eq!((get(&client).await, get(&client).await), (StatusCode::OK, StatusCode::OK));
        assert_eq!(server.runs(), 1);
    }
}

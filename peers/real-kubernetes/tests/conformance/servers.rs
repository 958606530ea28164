//! The two servers.

use anyhow::Result;
use embedded_apiserver::{ApiServer, Denial, Listening};
use kube::Client;
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig, NamedAuthInfo};
use real_kubernetes::RealKubernetes;
use tokio::sync::OnceCell;

use crate::http::Http;

/// An embedded server on a socket, so that clients reach both servers in the same way.
pub(crate) struct Embedded {
    pub(crate) http: Http,
    pub(crate) server: ApiServer,
    _socket: Listening,
}

impl Embedded {
    pub(crate) async fn start() -> Result<Self> {
        const TOKEN: &str = "a-token-of-the-reader";
        // Starts at a later version: version 1 has expired, as on a real server. The real server runs without
        // kube-controller-manager, so nothing collects garbage there.
        let server = ApiServer::builder()
            .first_version(1000)
            .garbage_collection(false)
            .show_managed_fields(true)
            .build();
        server.access().add_token(TOKEN, "reader");
        server.access().deny(Denial::all().user("reader"));
        let socket = server.listen("127.0.0.1:0").await?;
        let kubeconfig = Kubeconfig::from_yaml(&socket.kubeconfig())?;
        let mut of_reader = kubeconfig.clone();
        for NamedAuthInfo { auth_info, .. } in &mut of_reader.auth_infos {
            let token = Some(TOKEN.to_owned().into());
            *auth_info = Some(AuthInfo { token, ..AuthInfo::default() });
        }
        let options = KubeConfigOptions::default();
        let reader = Config::from_custom_kubeconfig(of_reader, &options).await?;
        let http = Http::new(kubeconfig, Client::try_from(reader)?).await?;
        Ok(Self { http, server, _socket: socket })
    }
}

/// Returns the real server, if its programs are available. All tests share it and do not disturb it; it ends with the
/// process.
pub(crate) async fn real() -> Result<Option<Http>> {
    static SHARED: OnceCell<Option<RealKubernetes>> = OnceCell::const_new();
    let Some(kubernetes) = SHARED.get_or_try_init(start).await? else { return Ok(None) };
    Ok(Some(clients(kubernetes).await?))
}

/// Returns new clients of a real server. A client belongs to the runtime that first uses it.
pub(crate) async fn clients(kubernetes: &RealKubernetes) -> Result<Http> {
    let kubeconfig = Kubeconfig::read_from(kubernetes.kubeconfig())?;
    Http::new(kubeconfig, kubernetes.reader().await?).await
}

/// Starts it, and restarts it once: its watch cache is then empty, and version 1 is too old.
async fn start() -> Result<Option<RealKubernetes>> {
    let Some(mut kubernetes) = RealKubernetes::start().await? else { return Ok(None) };
    kubernetes.kill9()?;
    kubernetes.start_again().await?;
    Ok(Some(kubernetes))
}

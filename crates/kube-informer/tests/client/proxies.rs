//! Servers behind proxies.

use std::net::SocketAddr;

use embedded_apiserver::ApiServer;
use kube::Config;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::{config, is_answered, listen};

/// A proxy that records its requests.
struct Proxy {
    address: SocketAddr,
    asked: mpsc::UnboundedReceiver<Vec<String>>,
    _tasks: JoinSet<()>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Connect,
    Socks,
}

impl Proxy {
    async fn start(kind: Kind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, asked) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connected = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let sender = sender.clone();
                connected.spawn(async move {
                    let mut client = BufReader::new(client);
                    let (target, said) = match kind {
                        Kind::Connect => connect(&mut client).await,
                        Kind::Socks => socks(&mut client).await,
                    };
                    sender.send(said).unwrap();
                    let mut server = TcpStream::connect(target).await.unwrap();
                    // Either side may close it in any way.
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { address, asked, _tasks: tasks }
    }
}

/// `CONNECT host:port HTTP/1.1`, headers, an empty line.
async fn connect(client: &mut BufReader<TcpStream>) -> (SocketAddr, Vec<String>) {
    let mut said = Vec::new();
    loop {
        let mut line = String::new();
        client.read_line(&mut line).await.unwrap();
        match line.trim_end() {
            "" => break,
            line => said.push(line.to_owned()),
        }
    }
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    (said[0].split(' ').nth(1).unwrap().parse().unwrap(), said)
}

/// RFC 1928: methods, none required; connect to an IPv4 address, done.
async fn socks(client: &mut BufReader<TcpStream>) -> (SocketAddr, Vec<String>) {
    assert_eq!(client.read_u8().await.unwrap(), 5);
    let methods = client.read_u8().await.unwrap();
    client.read_exact(&mut vec![0; methods.into()]).await.unwrap();
    client.write_all(&[5, 0]).await.unwrap();
    let mut head = [0; 4];
    client.read_exact(&mut head).await.unwrap();
    assert_eq!(head, [5, 1, 0, 1]);
    let mut ip = [0; 4];
    client.read_exact(&mut ip).await.unwrap();
    let target = SocketAddr::from((ip, client.read_u16().await.unwrap()));
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    (target, vec![target.to_string()])
}

/// HTTP/2 passes through, because it is inside TLS, which the proxy cannot see.
async fn shares_a_connection_through(proxy: &mut Proxy, config: Config) -> Vec<String> {
    let client = kube_informer::client(config).unwrap();
    let answers = futures::future::join_all((0..10).map(|_| is_answered(&client))).await;
    assert_eq!(answers, [true; 10]);
    let asked = proxy.asked.recv().await.unwrap();
    assert!(proxy.asked.is_empty());
    asked
}

#[tokio::test]
async fn http_proxies_connect_and_are_told_who_asks() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    let mut proxy = Proxy::start(Kind::Connect).await;
    let mut config = config(&listening, &listening.url()).await;
    // The password is p@ss.
    let url = format!("http://me:p%40ss@{}", proxy.address);
    config.proxy_url = Some(url.parse().unwrap());
    let asked = shares_a_connection_through(&mut proxy, config).await;
    assert!(asked[0].starts_with(&format!("CONNECT {} ", listening.addr())), "{asked:?}");
    let told = |line: &String| line.eq_ignore_ascii_case("proxy-authorization: basic bWU6cEBzcw==");
    assert!(asked.iter().any(told), "{asked:?}");
}

#[tokio::test]
async fn socks_proxies_connect() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    let mut proxy = Proxy::start(Kind::Socks).await;
    let mut config = config(&listening, &listening.url()).await;
    config.proxy_url = Some(format!("socks5://{}", proxy.address).parse().unwrap());
    let asked = shares_a_connection_through(&mut proxy, config).await;
    assert_eq!(asked, [listening.addr().to_string()]);
}

#[tokio::test]
async fn without_tls_a_proxy_connects_too() {
    let server = ApiServer::start();
    let plain = server.listener().plain(true).bind("127.0.0.1:0").await.unwrap();
    let mut proxy = Proxy::start(Kind::Connect).await;
    let mut config = config(&plain, &plain.url()).await;
    config.proxy_url = Some(format!("http://{}", proxy.address).parse().unwrap());
    assert!(is_answered(&kube_informer::client(config).unwrap()).await);
    assert!(proxy.asked.recv().await.is_some());
}

#[tokio::test]
async fn other_proxies_are_errors() {
    let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
    config.proxy_url = Some("gopher://127.0.0.1:1".parse().unwrap());
    let error = kube_informer::client(config).err().unwrap();
    assert!(matches!(error, kube::Error::ProxyProtocolUnsupported { .. }), "{error:?}");
}

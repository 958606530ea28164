//! Servers behind proxies.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _, copy};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::errors::kubeconfig;
use crate::process::{Cluster, Ended, ended, tool};
use crate::support::{Serving, directory};

/// A proxy that connects any client to any server, and reports the requested targets.
struct Proxy {
    address: String,
    asked: Receiver<String>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, asked) = channel();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                thread::spawn(move || {
                    let target = target(&client);
                    // The test may be over.
                    let _ = sender.send(target.clone());
                    tunnel(&client, &target);
                });
            }
        });
        Self { address, asked }
    }
}

/// Reads the target that the client wants to connect to.
fn target(client: &TcpStream) -> String {
    let mut lines = BufReader::new(client).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    assert!(lines.any(|line| line.is_empty()), "the request ends");
    first.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap().to_owned()
}

fn tunnel(mut client: &TcpStream, target: &str) {
    // Names are not resolved: every target is on this machine.
    let address: Option<SocketAddr> = target.parse().ok();
    let Some(server) = address.and_then(|address| TcpStream::connect(address).ok()) else {
        let _ = client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
        return;
    };
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || copy(&mut from, &mut to));
    // Either side may end the connection in any way.
    let _ = copy(&mut &server, &mut client);
}

/// A proxy in the kubeconfig takes precedence over the environment.
#[test]
fn a_proxy_that_the_kubeconfig_names_is_gone_through() {
    let cluster = Cluster(Serving::start("watch-proxy-named", &[]));
    let text = fs::read_to_string(cluster.0.kubeconfig()).unwrap();
    let proxy = Proxy::start();
    let named = format!("proxy-url: http://{}\n    server: ", proxy.address);
    let file = cluster.0.directory.join("through-proxy");
    fs::write(&file, text.replacen("server: ", &named, 1)).unwrap();
    let arguments = ["watch", "namespaces,pods,nodes", "-o", "name", "--count", "1"];
    let mut command = tool(&cluster.0.directory, &arguments, Some(&file));
    command.env("HTTPS_PROXY", "http://127.0.0.1:1").env("NO_PROXY", "127.0.0.0/8");
    let run = ended(command);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "namespace/default\n"), "{run:?}");
    let asked = proxy.asked.recv().unwrap();
    assert!(text.contains(&format!("https://{asked}")), "{asked}");
    assert!(proxy.asked.try_recv().is_err(), "everything goes over one connection");
}

/// A proxy in the environment is for the rest of the world.
#[test]
fn this_machine_is_reached_without_a_proxy() {
    let cluster = Cluster(Serving::start("watch-proxy-local", &[]));
    let mut command = cluster.tool(&["watch", "namespaces", "-o", "name", "--count", "1"]);
    command.env("HTTPS_PROXY", "http://127.0.0.1:1").env_remove("NO_PROXY");
    let run = ended(command);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "namespace/default\n"), "{run:?}");
}

#[test]
fn others_are_reached_through_the_proxy_of_the_environment() {
    let place = directory("watch-proxy-elsewhere");
    let file = place.join("elsewhere");
    fs::write(&file, kubeconfig("https://cluster.invalid:6443")).unwrap();
    let proxy = Proxy::start();
    // `NO_PROXY` may include the proxy's own address.
    for (environment, rules) in [
        (format!("http://{}", proxy.address), "other.invalid"),
        (proxy.address.clone(), "127.0.0.1"),
    ] {
        let run = through(&place, &file, &environment, rules);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert_eq!(proxy.asked.recv().unwrap(), "cluster.invalid:6443");
        assert!(run.stderr.contains("through the proxy 127.0.0.1"), "{run:?}");
    }
    let run = through(&place, &file, "gopher://127.0.0.1", "");
    assert!(run.stderr.contains("by http, https or socks5, not by gopher"), "{run:?}");
}

fn through(place: &Path, file: &Path, proxy: &str, rules: &str) -> Ended {
    let mut command = tool(place, &["watch", "pods"], Some(file));
    command.env("HTTPS_PROXY", proxy).env("NO_PROXY", rules);
    ended(command)
}

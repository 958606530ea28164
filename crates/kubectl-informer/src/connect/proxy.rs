//! Decides whether a server is reached through a proxy, by the rules of Go programs.
//!
//! kube-client can do so too, but applies `$NO_PROXY` to the proxy instead of the server.

use std::net::IpAddr;

use http::Uri;
use kube_client::config::Kubeconfig;

/// Returns the proxy that the kubeconfig names for this cluster, or else for the context's cluster.
pub(super) fn named(
    kubeconfig: &Kubeconfig,
    context: Option<&str>,
    cluster: Option<&str>,
) -> Option<Uri> {
    let of_context = || {
        let named = kubeconfig.contexts.iter().find(|each| Some(&*each.name) == context)?;
        Some(&*named.context.as_ref()?.cluster)
    };
    let cluster = cluster.or_else(of_context)?;
    let named = kubeconfig.clusters.iter().find(|each| each.name == cluster)?;
    named.cluster.as_ref()?.proxy_url.as_ref()?.parse().ok()
}

/// Returns the proxy that the environment names, if it applies to this server. It applies only to
/// HTTPS: for plain HTTP, a different variable would.
pub(super) fn of_environment(server: &Uri) -> Option<Uri> {
    let proxy = set("HTTPS_PROXY").or_else(|| set("https_proxy"))?;
    let rules = set("NO_PROXY").or_else(|| set("no_proxy")).unwrap_or_default();
    let port = server.port_u16().unwrap_or(443);
    let bypassed = is_bypassed(server.host().unwrap_or_default(), port, &rules);
    let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
    proxy.parse().ok().filter(|_| server.scheme_str() == Some("https") && !bypassed)
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns whether the environment's proxies do not apply to this host, because it is the local
/// machine or `$NO_PROXY` names it.
fn is_bypassed(host: &str, port: u16, no_proxy: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    no_proxy.split(',').map(str::trim).any(|rule| matches(rule, &host, address, port))
}

fn matches(rule: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if rule == "*" {
        return true;
    }
    if let Some(address) = address {
        if let Some((net, prefix)) = rule.split_once('/') {
            return within(address, net, prefix).unwrap_or(false);
        }
        if rule.trim_start_matches('[').trim_end_matches(']').parse() == Ok(address) {
            return true;
        }
    }
    let name = match rule.rsplit_once(':') {
        Some((name, only)) if only.parse() == Ok(port) => name,
        Some((_, only)) if only.bytes().all(|byte| byte.is_ascii_digit()) => return false,
        _ => rule,
    };
    let name = name.trim_start_matches('*').to_lowercase();
    match name.strip_prefix('.') {
        // `.example.com` matches subdomains only; `example.com` matches itself too.
        Some(_) => name.len() > 1 && host.ends_with(&name),
        None => !name.is_empty() && (host == name || host.ends_with(&format!(".{name}"))),
    }
}

/// Returns whether an address is in a network such as `10.0.0.0/8`.
fn within(address: IpAddr, net: &str, prefix: &str) -> Option<bool> {
    let (bits, net, length) = match (address, net.parse().ok()?) {
        (IpAddr::V4(address), IpAddr::V4(net)) => {
            (u128::from(address.to_bits()), u128::from(net.to_bits()), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(net)) => (address.to_bits(), net.to_bits(), 128),
        _ => return Some(false),
    };
    let prefix: u32 = prefix.parse().ok().filter(|prefix| *prefix <= length)?;
    // The prefixes are equal if they differ in none of their bits.
    Some((bits ^ net).checked_shr(length - prefix).unwrap_or(0) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_never_behind_a_proxy() {
        for host in ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "LOCALHOST"] {
            assert!(is_bypassed(host, 6443, ""), "{host}");
        }
        assert!(!is_bypassed("10.0.0.1", 6443, ""));
        assert!(!is_bypassed("example.com", 6443, ""));
    }

    #[test]
    fn no_proxy_is_read_as_go_reads_it() {
        for (host, rules, expected) in [
            ("k8s.example.com", "example.com", true),
            ("example.com", "example.com", true),
            ("notexample.com", "example.com", false),
            ("k8s.example.com", ".example.com", true),
            ("example.com", ".example.com", false),
            ("k8s.example.com", "*.example.com", true),
            ("k8s.example.com", "a.b, K8S.example.com ,c", true),
            ("k8s.example.com", "example.com:6443", true),
            ("k8s.example.com", "example.com:443", false),
            ("anything", "*", true),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("11.1.2.3", "10.0.0.0/8", false),
            ("10.1.2.3", "0.0.0.0/0", true),
            ("10.1.2.3", "10.1.2.3/32", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.3:6443", true),
            ("10.1.2.3", "10.1.2.3/99", false),
            ("fd00::7", "fd00::/8", true),
            ("fe80::7", "fd00::/8", false),
            ("fd00::7", "10.0.0.0/8", false),
            ("fd00::7", "::/0", true),
            ("example.com", "", false),
            ("example.com", ",,.,", false),
        ] {
            assert_eq!(is_bypassed(host, 6443, rules), expected, "{host} {rules}");
        }
    }
}

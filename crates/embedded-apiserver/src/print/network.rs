//! Services, endpoints, ingresses and network policies.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, default_name, int, items, maybe_int, name, text as string, text_or};
use super::selector::{labels, selector};
use super::{AGE, NAME, Printer, text, wide};

/// The number of list items that are shown, followed by the number of others.
const SHOWN: usize = 3;

pub(super) static SERVICE: Printer = Printer {
    columns: &[
        NAME,
        text("Type", "How the service is exposed."),
        text("Cluster-IP", "The address within the cluster."),
        text("External-IP", "The addresses from outside the cluster."),
        text("Port(s)", "The ports, each with its port on the nodes if it has one."),
        AGE,
        wide("Selector", "Which pods the service leads to."),
    ],
    cells: service,
};

fn service(service: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &service["spec"];
    let cluster_ip = text_or(&spec["clusterIPs"][0], text_or(&spec["clusterIP"], "<none>"));
    vec![
        name(service).into(),
        service_type(service).into(),
        cluster_ip.into(),
        external_ip(service).into(),
        service_ports(items(&spec["ports"])).into(),
        age(service, now).into(),
        labels(&spec["selector"]).into(),
    ]
}

fn service_type(service: &Value) -> &str {
    text_or(&service["spec"]["type"], "ClusterIP")
}

fn external_ip(service: &Value) -> String {
    let spec = &service["spec"];
    let mut addresses = match service_type(service) {
        "ClusterIP" | "NodePort" => Vec::new(),
        "LoadBalancer" => balancers(service),
        "ExternalName" => return string(&spec["externalName"]).to_owned(),
        _ => return "<unknown>".to_owned(),
    };
    addresses.extend(items(&spec["externalIPs"]).iter().map(string));
    match (addresses.is_empty(), service_type(service)) {
        (false, _) => addresses.join(","),
        (true, "LoadBalancer") => "<pending>".to_owned(),
        (true, _) => "<none>".to_owned(),
    }
}

/// Returns the addresses or names of load balancers, sorted and without duplicates.
fn balancers(object: &Value) -> Vec<&str> {
    let addresses: BTreeSet<_> = items(&object["status"]["loadBalancer"]["ingress"])
        .iter()
        .map(|ingress| text_or(&ingress["ip"], string(&ingress["hostname"])))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect()
}

/// Returns `80:30080/TCP,53/UDP`.
fn service_ports(ports: &[Value]) -> String {
    if ports.is_empty() {
        return "<none>".to_owned();
    }
    let ports: Vec<_> = ports
        .iter()
        .map(|port| {
            let (number, protocol) = (int(&port["port"]), text_or(&port["protocol"], "TCP"));
            match int(&port["nodePort"]) {
                node_port @ 1.. => format!("{number}:{node_port}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    ports.join(",")
}

pub(super) static INGRESS: Printer = Printer {
    columns: &[
        NAME,
        text("Class", "Which controller serves the ingress."),
        text("Hosts", "The hosts that requests may be for."),
        text("Address", "Where the load balancers are."),
        text("Ports", "The ports that are open."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        vec![
            name(object).into(),
            spec["ingressClassName"].as_str().unwrap_or("<none>").into(),
            hosts(items(&spec["rules"])).into(),
            balancers(object).join(",").into(),
            if items(&spec["tls"]).is_empty() { "80" } else { "80, 443" }.into(),
            age(object, now).into(),
        ]
    },
};

fn hosts(rules: &[Value]) -> String {
    let mut hosts = Vec::new();
    let mut more = false;
    for rule in rules {
        // A rule for all hosts counts as one more, although it has no host to show.
        more |= hosts.len() == SHOWN;
        if !more && !string(&rule["host"]).is_empty() {
            hosts.push(string(&rule["host"]));
        }
    }
    if hosts.is_empty() {
        return "*".to_owned();
    }
    let hidden = if more { rules.len() - SHOWN } else { 0 };
    with_hidden(&hosts.join(","), hidden)
}

pub(super) static ENDPOINTS: Printer = Printer {
    columns: &[NAME, text("Endpoints", "The addresses that are ready."), AGE],
    cells: |object, now| {
        let endpoints = endpoints(items(&object["subsets"]));
        vec![name(object).into(), endpoints.into(), age(object, now).into()]
    },
};

fn endpoints(subsets: &[Value]) -> String {
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut count = 0;
    let mut shown = Vec::new();
    for subset in subsets {
        let addresses = items(&subset["addresses"]).iter().map(|address| string(&address["ip"]));
        let ports = items(&subset["ports"]);
        count += addresses.len() * ports.len().max(1);
        // The product of the two may be huge, but only the first few are needed.
        if ports.is_empty() {
            shown.extend(addresses.map(str::to_owned).take(SHOWN - shown.len()));
        } else {
            let pairs = ports
                .iter()
                .flat_map(|port| addresses.clone().map(|address| socket(address, port)));
            shown.extend(pairs.take(SHOWN - shown.len()));
        }
    }
    with_hidden(&shown.join(","), count - shown.len())
}

fn socket(address: &str, port: &Value) -> String {
    let port = int(&port["port"]);
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

pub(super) static ENDPOINT_SLICE: Printer = Printer {
    columns: &[
        NAME,
        text("AddressType", "Whether the addresses are IPv4, IPv6 or names."),
        text("Ports", "The ports of every endpoint."),
        text("Endpoints", "The addresses."),
        AGE,
    ],
    cells: |object, now| {
        let ports = items(&object["ports"]).iter().map(slice_port);
        let endpoints = items(&object["endpoints"])
            .iter()
            .flat_map(|endpoint| items(&endpoint["addresses"]))
            .map(|address| string(address).to_owned());
        vec![
            name(object).into(),
            string(&object["addressType"]).into(),
            some_of(ports).into(),
            some_of(endpoints).into(),
            age(object, now).into(),
        ]
    },
};

/// Returns a port's number, or its name, or `*` for all ports.
fn slice_port(port: &Value) -> String {
    match (maybe_int(&port["port"]), port["name"].as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}

fn some_of(mut texts: impl Iterator<Item = String>) -> String {
    let shown: Vec<_> = texts.by_ref().take(SHOWN).collect();
    let text = with_hidden(&shown.join(","), texts.count());
    if text.is_empty() { "<unset>".to_owned() } else { text }
}

fn with_hidden(shown: &str, hidden: usize) -> String {
    if hidden == 0 { shown.to_owned() } else { format!("{shown} + {hidden} more...") }
}

pub(super) static INGRESS_CLASS: Printer = Printer {
    columns: &[
        NAME,
        text("Controller", "Who serves the ingresses of this class."),
        text("Parameters", "Where more is said about it."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        vec![
            default_name(object, &[DEFAULT_INGRESS_CLASS]).into(),
            string(&spec["controller"]).into(),
            parameters(&spec["parameters"]).into(),
            age(object, now).into(),
        ]
    },
};

/// The annotation of the default ingress class.
const DEFAULT_INGRESS_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

fn parameters(value: &Value) -> String {
    if !value.is_object() {
        return "<none>".to_owned();
    }
    let group = value["apiGroup"].as_str().map(|group| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", string(&value["kind"]), string(&value["name"]))
}

pub(super) static POLICY: Printer = Printer {
    columns: &[NAME, text("Pod-Selector", "Which pods it is about."), AGE],
    cells: |object, now| {
        let pods = selector(&object["spec"]["podSelector"]);
        vec![name(object).into(), pods.into(), age(object, now).into()]
    },
};

#[cfg(test)]
mod tests;

use serde_json::json;

use super::super::fixtures::{assert_columns, assert_rows};
use super::*;

fn metadata() -> Value {
    json!({"name": "web", "creationTimestamp": "2025-12-31T23:57:00Z"})
}

#[test]
fn services_have_the_columns_of_kubectl() {
    assert_columns(
        "",
        "services",
        &[
            ("Name", "string", 0),
            ("Type", "string", 0),
            ("Cluster-IP", "string", 0),
            ("External-IP", "string", 0),
            ("Port(s)", "string", 0),
            ("Age", "string", 0),
            ("Selector", "string", 1),
        ],
    );
}

#[test]
fn services_show_where_they_can_be_reached() {
    let cases = [
        (
            "within the cluster",
            json!({
                "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
                "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                "selector": {"b": "2", "a": "1"},
            }),
            json!(["web", "ClusterIP", "10.0.0.1", "<none>", "80/TCP,53/UDP", "3m", "a=1,b=2"]),
        ),
        (
            "at addresses of its own",
            json!({"clusterIP": "None", "externalIPs": ["192.0.2.1", "192.0.2.2"], "ports": [{"port": 80}]}),
            json!(["web", "ClusterIP", "None", "192.0.2.1,192.0.2.2", "80/TCP", "3m", "<none>"]),
        ),
        (
            "on the nodes",
            json!({"type": "NodePort", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30080}]}),
            json!(["web", "NodePort", "10.0.0.1", "<none>", "80:30080/TCP", "3m", "<none>"]),
        ),
        (
            "under another name",
            json!({"type": "ExternalName", "externalName": "example.com"}),
            json!(["web", "ExternalName", "<none>", "example.com", "<none>", "3m", "<none>"]),
        ),
        (
            "behind a load balancer that is not there yet",
            json!({"type": "LoadBalancer"}),
            json!(["web", "LoadBalancer", "<none>", "<pending>", "<none>", "3m", "<none>"]),
        ),
        (
            "in a way nobody knows",
            json!({"type": "Pigeon", "ports": {}, "clusterIPs": [1], "externalIPs": "x"}),
            json!(["web", "Pigeon", "<none>", "<unknown>", "<none>", "3m", "<none>"]),
        ),
    ];
    for (behaviour, spec, expected) in cases {
        let object = json!({"metadata": metadata(), "spec": spec});
        assert_rows("", "services", [(behaviour, object, expected)]);
    }
}

#[test]
fn services_behind_load_balancers_show_these_first() {
    let status = json!({"loadBalancer": {"ingress": [
        {"ip": "192.0.2.9"}, {"hostname": "lb.example.com"}, {"ip": "192.0.2.9"}, {},
    ]}});
    let row =
        |external| json!(["web", "LoadBalancer", "<none>", external, "<none>", "3m", "<none>"]);
    assert_rows(
        "",
        "services",
        [
            (
                "alone",
                json!({"metadata": metadata(), "spec": {"type": "LoadBalancer"}, "status": status}),
                row("192.0.2.9,lb.example.com"),
            ),
            (
                "with others",
                json!({
                    "metadata": metadata(), "status": status,
                    "spec": {"type": "LoadBalancer", "externalIPs": ["192.0.2.1"]},
                }),
                row("192.0.2.9,lb.example.com,192.0.2.1"),
            ),
        ],
    );
}

#[test]
fn ingresses_show_their_hosts_and_addresses() {
    let columns =
        ["Name", "Class", "Hosts", "Address", "Ports", "Age"].map(|name| (name, "string", 0));
    assert_columns("networking.k8s.io", "ingresses", &columns);
    let host = |host| json!({"host": host});
    let cases = [
        (
            "with TLS, behind load balancers",
            json!({
                "ingressClassName": "nginx", "rules": [host("a"), host("b"), {}], "tls": [{}],
            }),
            json!(["web", "nginx", "a,b", "192.0.2.1,192.0.2.2", "80, 443", "3m"]),
        ),
        (
            "with many hosts",
            json!({"rules": [host("a"), host("b"), host("c"), {}, host("d")]}),
            json!(["web", "<none>", "a,b,c + 2 more...", "192.0.2.1,192.0.2.2", "80", "3m"]),
        ),
        ("bare", json!(null), json!(["web", "<none>", "*", "192.0.2.1,192.0.2.2", "80", "3m"])),
    ];
    for (behaviour, spec, expected) in cases {
        let object = json!({
            "metadata": metadata(), "spec": spec,
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.2"}, {"ip": "192.0.2.1"}]}},
        });
        assert_rows("networking.k8s.io", "ingresses", [(behaviour, object, expected)]);
    }
}

#[test]
fn endpoints_show_the_first_addresses_with_their_ports() {
    assert_columns("", "endpoints", &["Name", "Endpoints", "Age"].map(|name| (name, "string", 0)));
    let addresses = json!([{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]);
    let cases = [
        ("none", json!(null), "<none>"),
        (
            "none that is ready",
            json!([{"notReadyAddresses": addresses, "ports": [{"port": 80}]}]),
            "",
        ),
        (
            "one port",
            json!([{"addresses": addresses, "ports": [{"port": 80}]}]),
            "10.0.0.1:80,[fd00::1]:80",
        ),
        ("no port", json!([{"addresses": addresses}]), "10.0.0.1,fd00::1"),
        (
            "more than fit",
            json!([
                {"addresses": addresses, "ports": [{"port": 80}, {"port": 81}]},
                {"addresses": addresses},
            ]),
            "10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 3 more...",
        ),
    ];
    for (behaviour, subsets, expected) in cases {
        let object = json!({"metadata": metadata(), "subsets": subsets});
        assert_rows("", "endpoints", [(behaviour, object, json!(["web", expected, "3m"]))]);
    }
}

#[test]
fn endpoint_slices_show_the_first_ports_and_addresses() {
    let columns =
        ["Name", "AddressType", "Ports", "Endpoints", "Age"].map(|name| (name, "string", 0));
    assert_columns("discovery.k8s.io", "endpointslices", &columns);
    assert_rows(
        "discovery.k8s.io",
        "endpointslices",
        [
            (
                "many",
                json!({
                    "metadata": metadata(), "addressType": "IPv4",
                    "ports": [{"port": 80, "name": "http"}, {"name": "any"}, {}],
                    "endpoints": [{"addresses": ["a", "b"]}, {"addresses": ["c", "d", "e"]}],
                }),
                json!(["web", "IPv4", "80,any,*", "a,b,c + 2 more...", "3m"]),
            ),
            (
                "none",
                json!({"metadata": metadata()}),
                json!(["web", "", "<unset>", "<unset>", "3m"]),
            ),
        ],
    );
}

#[test]
fn ingress_classes_show_who_serves_them() {
    assert_rows(
        "networking.k8s.io",
        "ingressclasses",
        [
            (
                "the default one",
                json!({
                    "metadata": {"name": "a", "annotations": {
                        "ingressclass.kubernetes.io/is-default-class": "true",
                    }},
                    "spec": {
                        "controller": "example.com/c",
                        "parameters": {"apiGroup": "example.com", "kind": "Config", "name": "x"},
                    },
                }),
                json!(["a (default)", "example.com/c", "Config.example.com/x", "<unknown>"]),
            ),
            ("bare", json!({"metadata": {"name": "a"}}), json!(["a", "", "<none>", "<unknown>"])),
        ],
    );
}

#[test]
fn network_policies_show_their_pods() {
    assert_rows(
        "networking.k8s.io",
        "networkpolicies",
        [
            (
                "some pods",
                json!({"spec": {"podSelector": {"matchLabels": {"app": "web"}}}}),
                json!(["", "app=web", "<unknown>"]),
            ),
            ("all pods", json!({"spec": {"podSelector": {}}}), json!(["", "<none>", "<unknown>"])),
        ],
    );
}

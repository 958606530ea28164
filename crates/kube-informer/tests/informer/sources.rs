//! Builders of informers with a custom source do not have options that the source would ignore.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::discovery::Scope;
use kube_informer::{FromSource, InformerBuilder, SharedInformer};

use super::scene::{maps_of, server};

#[derive(PartialEq, Debug)]
struct Absent;

/// A method of the builder would take precedence over these, and return a builder.
trait WithoutRequestOptions: Sized {
    fn labels(self, _: &str) -> Absent {
        Absent
    }
    fn fields(self, _: &str) -> Absent {
        Absent
    }
    fn namespace(self, _: &str) -> Absent {
        Absent
    }
    fn namespaces(self, _: [&str; 1]) -> Absent {
        Absent
    }
    fn all_namespaces(self) -> Absent {
        Absent
    }
    fn scope(self, _: &Scope) -> Absent {
        Absent
    }
    fn keep_managed_fields(self) -> Absent {
        Absent
    }
    fn list_timeout(self, _: std::time::Duration) -> Absent {
        Absent
    }
    fn protobuf(self, _: bool) -> Absent {
        Absent
    }
}

impl WithoutRequestOptions for InformerBuilder<ConfigMap, FromSource> {}

#[tokio::test]
async fn sources_of_the_programs_own_are_not_told_what_to_list() {
    let server = server();
    let builder = || SharedInformer::<ConfigMap>::from_source(maps_of(&server));
    let absent: [Absent; 9] = [
        builder().labels("a=b"),
        builder().fields("a=b"),
        builder().namespace("a"),
        builder().namespaces(["a"]),
        builder().all_namespaces(),
        builder().scope(&Scope::Cluster),
        builder().keep_managed_fields(),
        builder().list_timeout(std::time::Duration::ZERO),
        builder().protobuf(false),
    ];
    assert!(absent.iter().all(|absent| *absent == Absent));
}

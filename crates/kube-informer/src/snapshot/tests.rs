use proptest::prelude::*;

use super::file::{read, write};
use super::*;
use crate::Transform;

fn manifest(objects: u64) -> Manifest {
    let content = Content {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        resource: "deployments".to_owned(),
        namespace: String::new(),
        labels: "app=web".to_owned(),
        fields: String::new(),
        metadata_only: false,
        managed_fields: false,
        transform: Some(String::new()),
    };
    Manifest { content, cluster: "u-1".to_owned(), resource_version: "7".to_owned(), objects }
}

fn objects(count: u64) -> Vec<Object> {
    let object = |n: u64| {
        let json = format!(
            r#"{{"metadata":{{"name":"web-{n}","namespace":"shop","uid":"u-{n}","resourceVersion":"{n}",
                "labels":{{"app":"web"}}}},"data":"{}"}}"#,
            "x".repeat(n as usize % 50)
        );
        Object::from_json(json).unwrap()
    };
    (0..count).map(object).collect()
}

fn packer() -> Packer {
    Packer::new(Transform::default(), None, false)
}

struct File(PathBuf);

impl File {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("kube-informer-{:016x}", fastrand::u64(..))))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_snapshot_round_trips() {
    let file = File::new();
    assert!(read(&file.0, &packer()).unwrap().is_none());
    let written = objects(300);
    write(&file.0, &manifest(300), &written, &packer()).unwrap();
    let (found, read) = read(&file.0, &packer()).unwrap().expect("it is there");
    assert_eq!((found, read.len()), (manifest(300), 300));
    for (read, written) in read.iter().zip(&written) {
        assert!(read.same_content(written) && read.key() == written.key());
        assert_eq!(read.labels().get("app"), Some("web"));
    }
}

/// Packed, plain and decoded, with objects of two dictionaries, in JSON and in protobuf.
#[test]
fn a_snapshot_is_the_same_however_objects_are_kept() {
    let packed = || packer().train_on(64);
    let plain = || packer().with_plain_bodies();
    let decoded = || {
        let decoder = |json: &[u8]| -> Result<Arc<dyn std::any::Any + Send + Sync>> {
            Ok(Arc::new(crate::object::decode::<serde_json::Value>(json)?))
        };
        Packer::new(Transform::default(), Some(decoder), false).train_on(64)
    };
    let pod = |n: usize| {
        serde_json::json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("web-{n}"), "namespace": "shop", "uid": format!("u-{n}"), "generation": n,
                "resourceVersion": format!("{n}"), "labels": {"app": "web", "n": format!("{}", n % 7)},
                "deletionTimestamp": "2026-03-02T12:00:00Z",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                                     "uid": "u", "controller": true}],
            },
            "spec": {"nodeName": format!("node-{}", n % 5), "containers": [{"name": "web", "image": "web:1",
                     "resources": {}}]},
        })
    };
    let types = crate::object::Types { api_version: "v1".to_owned(), kind: "Pod".to_owned() };
    for write_with in [packed(), plain(), decoded()] {
        let written: Vec<Object> = (0..1000)
            .map(|n| {
                let json = pod(n);
                if n % 2 == 0 || !write_with.takes_protobuf() {
                    return write_with.pack(json.to_string().as_bytes(), None).unwrap();
                }
                let body = kube_schema::to_vec(&json).unwrap();
                let message = kube_schema::Envelope::parse(&body).unwrap().raw;
                write_with.pack_protobuf(message, &types).unwrap()
            })
            .collect();
        let file = File::new();
        write(&file.0, &manifest(1000), &written, &write_with).unwrap();
        for read_with in [packed(), plain(), decoded()] {
            let (_, found) = read(&file.0, &read_with).unwrap().expect("it is there");
            for (found, written) in found.iter().zip(&written) {
                assert!(found.same_content(written) && found.key() == written.key());
                assert_eq!(found.labels(), written.labels());
                assert_eq!(found.controller(), written.controller());
                assert_eq!(found.generation(), written.generation());
                assert_eq!(found.deletion_timestamp(), written.deletion_timestamp());
                let spec = |object: &Object| object.field::<String>("spec.nodeName").unwrap();
                assert_eq!(spec(found), spec(written));
            }
        }
    }
}

#[test]
fn i19_a_snapshot_whose_count_is_wrong_is_not_read() {
    let file = File::new();
    for claimed in [0, 2, 4, u64::MAX] {
        write(&file.0, &manifest(claimed), &objects(3), &packer()).unwrap();
        assert!(read(&file.0, &packer()).unwrap_err().is_snapshot(), "{claimed}");
    }
}

#[test]
fn i19_a_frame_that_asks_for_much_memory_is_not_read() {
    let file = File::new();
    write(&file.0, &manifest(3), &objects(3), &packer()).unwrap();
    let bytes = std::fs::read(&file.0).unwrap();
    let (format, frame) = bytes.split_at(b"kube-informer snapshot 1\n".len());
    let content = zstd::decode_all(frame).unwrap();
    for (window_log, is_read) in [(20, true), (27, false)] {
        let mut frame = zstd::Encoder::new(Vec::new(), 1).unwrap();
        frame.window_log(window_log).unwrap();
        std::io::Write::write_all(&mut frame, &content).unwrap();
        std::fs::write(&file.0, [format, &frame.finish().unwrap()].concat()).unwrap();
        assert_eq!(read(&file.0, &packer()).is_ok(), is_read, "{window_log}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is changed, cut off or added, what is read is what was written, or an error.
    #[test]
    fn i19_a_damaged_snapshot_is_an_error(
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
        cut in any::<bool>(),
        more in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let file = File::new();
        write(&file.0, &manifest(40), &objects(40), &packer()).unwrap();
        let mut bytes = std::fs::read(&file.0).unwrap();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= flip;
        }
        bytes.extend(&more);
        std::fs::write(&file.0, &bytes).unwrap();
        match read(&file.0, &packer()) {
            Err(error) => prop_assert!(error.is_snapshot(), "{error}"),
            // Some bits of a frame's header say nothing of its content.
            Ok(found) => {
                let (found, read) = found.expect("it is there");
                prop_assert_eq!(found, manifest(40));
                prop_assert!(read.iter().zip(objects(40)).all(|(a, b)| a.same_content(&b)));
            }
        }
    }

    #[test]
    fn i19_any_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let file = File::new();
        let mut whole = b"kube-informer snapshot 1\n".to_vec();
        whole.extend(zstd::encode_all(&bytes[..], 1).unwrap());
        for bytes in [&bytes, &whole] {
            std::fs::write(&file.0, bytes).unwrap();
            prop_assert!(read(&file.0, &packer()).unwrap_err().is_snapshot());
        }
    }
}

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
fn what_was_written_is_read() {
    let file = File::new();
    assert!(read(&file.0, &packer()).unwrap().is_none());
    let written = objects(300);
    write(&file.0, &manifest(300), &written).unwrap();
    let (found, read) = read(&file.0, &packer()).unwrap().expect("it is there");
    assert_eq!((found, read.len()), (manifest(300), 300));
    for (read, written) in read.iter().zip(&written) {
        assert!(read.same_content(written) && read.key() == written.key());
        assert_eq!(read.labels().get("app"), Some("web"));
    }
}

#[test]
fn i19_a_snapshot_whose_count_is_wrong_is_not_read() {
    let file = File::new();
    for claimed in [0, 2, 4, u64::MAX] {
        write(&file.0, &manifest(claimed), &objects(3)).unwrap();
        assert!(read(&file.0, &packer()).unwrap_err().is_snapshot(), "{claimed}");
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
        write(&file.0, &manifest(40), &objects(40)).unwrap();
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

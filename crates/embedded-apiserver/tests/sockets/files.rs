//! The kubeconfig as a file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use embedded_apiserver::ApiServer;

/// Returns an empty directory for this test.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[tokio::test]
async fn only_the_owner_reads_the_kubeconfig() {
    let directory = directory("kubeconfig-mode");
    let path = directory.join("config");
    let server = ApiServer::start();
    let listening = server.listen("127.0.0.1:0").await.unwrap();
    fs::write(&path, "something that everybody may read").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    for _ in 0..2 {
        listening.write_kubeconfig(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), listening.kubeconfig());
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_written_is_named() {
    let directory = directory("kubeconfig-errors");
    let server = ApiServer::start();
    let listening = server.listen("127.0.0.1:0").await.unwrap();
    for path in [directory.join("missing/config"), directory.clone()] {
        let error = listening.write_kubeconfig(&path).unwrap_err().to_string();
        assert!(error.contains(&*path.to_string_lossy()), "{error}");
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[tokio::test]
async fn no_token_is_shown_by_accident() {
    let builder = ApiServer::builder().token("very-secret");
    let server = builder.clone().build();
    let listening = server.listen("127.0.0.1:0").await.unwrap();
    assert!(listening.kubeconfig().contains("very-secret"));
    let shown = format!("{listening:?} {server:?} {builder:?} {:?}", server.listener());
    assert!(!shown.contains("very-secret"), "{shown}");
}

//! Informers that start from the snapshot of an earlier run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use embedded_apiserver::{ApiServer, Denial, Fault, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::{FromFactory, InformerBuilder, Result, SharedInformer, SharedInformerFactory};
use serde_json::json;

use super::running::Book;
use super::scene::{Errors, Maps, agrees, asked, count, seconds, server, settle, within};

/// A directory that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("kube-informer-{:016x}", fastrand::u64(..)));
        fs::create_dir(&folder).expect("the folder is new");
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("maps.snapshot")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it can be read");
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Builder = InformerBuilder<ConfigMap, FromFactory>;

/// One run of a program with an informer of config maps.
struct Run {
    factory: SharedInformerFactory,
    informer: SharedInformer<ConfigMap>,
    book: Book,
    errors: Errors,
}

impl Run {
    async fn of(server: &ApiServer, options: impl FnOnce(Builder) -> Builder) -> Self {
        let errors = Errors::default();
        let factory = SharedInformerFactory::new(server.client());
        let builder = factory.builder_for::<ConfigMap>().seed(1).on_error(errors.recorder());
        let informer = options(builder).build();
        let book = Book::keep(&informer);
        factory.start();
        informer.wait_for_sync().await.expect("all is well");
        settle().await;
        Self { factory, informer, book, errors }
    }

    async fn warm(server: &ApiServer, path: &Path) -> Self {
        Self::of(server, |builder| builder.warm_start(path)).await
    }

    async fn end(self, snapshot: &Path) -> Result<()> {
        let taken = self.informer.snapshot(snapshot).await;
        self.factory.shutdown().await;
        taken
    }

    fn agrees(&self, server: &ApiServer) -> bool {
        agrees(server, &self.informer.lister()) && self.book.is_right(&self.informer)
    }
}

/// A server with some maps, and a snapshot of them.
async fn scene(folder: &Folder) -> ApiServer {
    let server = server();
    for name in ["changed", "same", "removed"] {
        server.add(name, "1");
    }
    let run = Run::warm(&server, &folder.file()).await;
    assert_eq!(run.errors.len(), 0, "a first run has no snapshot, and that is no error");
    run.end(&folder.file()).await.expect("a snapshot can be taken");
    server.clear_record();
    server
}

#[tokio::test(start_paused = true)]
async fn a_warm_start_lists_nothing_and_is_told_what_it_has_missed() {
    let folder = Folder::new();
    let server = scene(&folder).await;
    let version = server.version();
    server.change("changed", "2");
    server.remove("removed");
    server.add("added", "1");
    let run = Run::warm(&server, &folder.file()).await;
    assert_eq!(asked(&server), [format!("watch rv={version}")]);
    let news = run.book.news();
    let initially = ["add changed initially", "add removed initially", "add same initially"];
    let (mut first, then) = (news[..3].to_vec(), &news[3..]);
    first.sort();
    assert_eq!(first, initially);
    assert_eq!(then, ["synced", "update changed", "delete removed", "add added"]);
    assert!(run.agrees(&server) && run.informer.is_live());
    assert_eq!(run.errors.len(), 0);
    let changed = run.informer.lister().namespace("default").get("changed").expect("it is there");
    assert_eq!(changed.decode().unwrap().data.as_ref().unwrap()["value"], "2");
    seconds(400).await;
    assert_eq!(count(&server, Verb::List), 0);
}

#[tokio::test(start_paused = true)]
async fn l2_what_an_earlier_run_knew_is_not_taken_for_fresh() {
    let folder = Folder::new();
    let server = scene(&folder).await;
    server.faults().on(Verb::Watch).always().inject(Fault::Refused);
    let run = Run::warm(&server, &folder.file()).await;
    assert!(run.informer.has_synced() && run.informer.lister().len() == 3);
    assert_eq!((run.informer.is_live(), run.informer.staleness()), (false, None));
    server.faults().clear();
    within(Duration::from_secs(60), "live", || run.informer.is_live()).await;
    within(Duration::from_secs(70), "fresh", || run.informer.staleness().is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn r11_a_snapshot_that_is_too_old_leads_to_a_list() {
    let folder = Folder::new();
    let server = scene(&folder).await;
    server.remove("removed");
    server.add("added", "1");
    server.store().compact(server.store().revision());
    let run = Run::warm(&server, &folder.file()).await;
    within(Duration::from_secs(10), "listed", || run.agrees(&server)).await;
    assert!(run.errors.last().error.is_expired());
    settle().await;
    assert_eq!(
        run.book.news()[4..],
        ["miss removed", "add added", "repeat changed", "repeat same"]
    );
}

#[tokio::test(start_paused = true)]
async fn i21_a_server_that_was_restored_since_is_noticed() {
    let folder = Folder::new();
    let server = server();
    let backup = server.store().snapshot();
    for name in ["a", "b"] {
        server.add(name, "1");
    }
    Run::warm(&server, &folder.file()).await.end(&folder.file()).await.expect("all is well");
    server.restore_silently(&backup);
    server.add("c", "1");
    let run = Run::warm(&server, &folder.file()).await;
    within(Duration::from_secs(10), "listed", || run.agrees(&server)).await;
    assert!(run.errors.last().error.is_regressed());
}

/// Starts from a snapshot that does not match: the informer lists, and reports why.
async fn lists_since(
    server: &ApiServer,
    folder: &Folder,
    options: impl FnOnce(Builder) -> Builder,
    why: &str,
) {
    server.clear_record();
    let path = folder.file();
    let run = Run::of(server, |builder| options(builder).warm_start(path)).await;
    let report = run.errors.last();
    let text = report.error.to_string();
    assert!(text.contains(why) && report.error.is_snapshot(), "{text}");
    assert_eq!(asked(server)[0], "stream", "{why}");
    assert!(!run.informer.lister().is_empty() && run.informer.is_live());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_something_else_leads_to_a_list() {
    let folder = Folder::new();
    let server = scene(&folder).await;
    let labels = "its label selector is \"\", but the informer's is \"value=1\"";
    lists_since(&server, &folder, |builder| builder.labels("value=1"), labels).await;
    let fields = |builder: Builder| builder.fields("metadata.name=same");
    lists_since(&server, &folder, fields, "field selector").await;
    lists_since(&server, &folder, |builder| builder.namespace("default"), "namespace").await;
    lists_since(&server, &folder, |builder| builder.drop_fields(["data"]), "transform").await;
    lists_since(&server, &folder, InformerBuilder::keep_managed_fields, "managedFields").await;
    let map = |builder: Builder| builder.map(|_| {});
    lists_since(&server, &folder, map, "whose transform is a function").await;
    let several = |builder: Builder| builder.namespaces(["default", "other"]);
    lists_since(&server, &folder, several, "several namespaces").await;

    let another = ApiServer::builder().seed(8).build();
    another.add("same", "1");
    lists_since(&another, &folder, |builder| builder, "another cluster").await;
}

#[tokio::test(start_paused = true)]
async fn a_damaged_snapshot_leads_to_a_list() {
    let folder = Folder::new();
    let server = scene(&folder).await;
    let whole = fs::read(folder.file()).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for damaged in [&whole[..whole.len() - 1], &whole[..10], b"", &flipped] {
        fs::write(folder.file(), damaged).unwrap();
        lists_since(&server, &folder, |builder| builder, "the snapshot").await;
    }
}

#[tokio::test(start_paused = true)]
async fn transformed_objects_are_not_transformed_again() {
    let folder = Folder::new();
    let server = server();
    server.add("a", "1");
    let lean = |builder: Builder| {
        builder.drop_fields(["metadata.labels", "metadata.uid"]).warm_start(folder.file())
    };
    let run = Run::of(&server, lean).await;
    let before = run.informer.lister().list()[0].clone();
    run.end(&folder.file()).await.expect("all is well");
    server.clear_record();
    let run = Run::of(&server, lean).await;
    let after = &run.informer.lister().list()[0];
    assert_eq!(asked(&server).len(), 1);
    assert!(after.same_version(&before) && !after.uid().is_empty());
    assert_eq!(after.to_json().unwrap(), before.to_json().unwrap());
    assert!(after.labels().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_replaces_the_last_one_and_is_private() {
    let folder = Folder::new();
    let server = scene(&folder).await;
    server.add("later", "1");
    let run = Run::warm(&server, &folder.file()).await;
    run.end(&folder.file()).await.expect("it replaces the last one");
    assert_eq!(folder.names(), ["maps.snapshot"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(folder.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let run = Run::warm(&server, &folder.file()).await;
    assert_eq!(run.informer.lister().len(), 4);
    let nowhere = folder.0.join("not there").join("maps.snapshot");
    let error = run.end(&nowhere).await.unwrap_err();
    assert!(error.is_snapshot() && error.to_string().contains("not there"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn secrets_are_written_only_if_that_is_asked_for() {
    let folder = Folder::new();
    let server = server();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "default"}, "data": {"key": "aHVudGVyMg=="},
    });
    server.create(secret).expect("it is new");
    let factory = SharedInformerFactory::new(server.client());
    let secrets = factory.builder_for::<Secret>().warm_start(folder.file()).build();
    factory.start();
    secrets.wait_for_sync().await.expect("all is well");
    let error = secrets.snapshot(folder.file()).await.unwrap_err();
    assert!(error.is_snapshot() && error.to_string().contains("snapshot_with_secrets"), "{error}");
    assert_eq!(folder.names(), [""; 0]);
    secrets.snapshot_with_secrets(folder.file()).await.expect("it was insisted on");
    assert_eq!(folder.names(), ["maps.snapshot"]);
}

#[tokio::test(start_paused = true)]
async fn there_is_no_snapshot_of_what_is_not_complete() {
    let folder = Folder::new();
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer::<ConfigMap>();
    let error = maps.snapshot(folder.file()).await.unwrap_err();
    assert!(error.is_snapshot() && error.to_string().contains("before it has synced"), "{error}");
    let own = SharedInformer::<ConfigMap>::from_source(super::scene::maps_of(&server)).build();
    let error = own.snapshot(folder.file()).await.unwrap_err();
    assert!(error.is_snapshot() && error.to_string().contains("a custom source"), "{error}");
    server.access().deny(Denial::verbs([Verb::Get]).resource("namespaces"));
    factory.start();
    maps.wait_for_sync().await.expect("all is well");
    let error = maps.snapshot(folder.file()).await.unwrap_err();
    assert!(error.to_string().contains("permission to get the namespace kube-system"), "{error}");
    assert_eq!(folder.names(), [""; 0]);
}

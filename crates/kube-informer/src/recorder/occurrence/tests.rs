use super::*;

fn reference(name: &str, namespace: Option<&str>) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ObjectReference::default()
    }
}

fn occurrence(name: &str, note: &str) -> Occurrence {
    let about = reference(name, Some("shop"));
    Occurrence::new(about, None, EventType::Normal, ("Up", "Start"), note).unwrap()
}

#[test]
fn ev1_an_event_is_one_of_events_k8s_io() {
    let mut new = occurrence("web-0", "hello");
    new.time = "2026-03-01T12:00:00.5Z".parse().unwrap();
    new.related = Some(reference("other", None));
    let source = Source { controller: "x.io/c".to_owned(), instance: "i".to_owned() };
    let expected = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "n", "namespace": "shop"},
        "eventTime": "2026-03-01T12:00:00.500000Z",
        "reportingController": "x.io/c", "reportingInstance": "i",
        "type": "Normal", "reason": "Up", "action": "Start", "note": "hello",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "namespace": "shop"},
        "related": {"apiVersion": "v1", "kind": "Pod", "name": "other"},
    });
    assert_eq!(new.event("n", "hello", &source), expected);
}

#[test]
fn ev8_an_event_the_server_would_refuse_is_an_error() {
    let long = "x".repeat(129);
    for (reason, action) in [("", "Start"), ("Up", ""), (&long, "Start"), ("Up", &long)] {
        let about = reference("a", None);
        let error = Occurrence::new(about, None, EventType::Normal, (reason, action), "");
        assert!(error.unwrap_err().is_invalid());
    }
    for about in [reference("", None), ObjectReference { kind: None, ..reference("a", None) }] {
        assert!(Occurrence::new(about, None, EventType::Normal, ("Up", "Start"), "").is_err());
    }
}

#[test]
fn ev8_notes_are_cut_between_characters() {
    assert_eq!(occurrence("a", &"名".repeat(1024)).note.len(), 1023);
    let source = Source { controller: "c".to_owned(), instance: "i".to_owned() };
    let long = format!("prefix{}", "名".repeat(1024));
    let event = occurrence("a", "").event("n", &long, &source);
    assert!((1022..=1024).contains(&event["note"].as_str().unwrap().len()));
}

#[test]
fn cluster_scoped_objects_have_their_events_in_default() {
    let new = |namespace| {
        let about = reference("a", namespace);
        Occurrence::new(about, None, EventType::Normal, ("Up", "Start"), "").unwrap()
    };
    assert_eq!(new(None).namespace(), "default");
    assert_eq!(new(Some("")).namespace(), "default");
    assert_eq!(new(Some("shop")).namespace(), "shop");
}

#[test]
fn names_of_events_can_be_names() {
    assert_eq!(occurrence("web-0", "").event_name(255), "web-0.ff");
    for name in ["system:node", "Web", &"x".repeat(253)] {
        let named = occurrence(name, "").event_name(255);
        assert!(is_subdomain(&named), "{named}");
    }
}

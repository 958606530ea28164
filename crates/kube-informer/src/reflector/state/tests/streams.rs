//! Lists that are streamed.

use super::*;

#[test]
fn w1_versions_of_first_and_later_streaming_lists() {
    let mut machine = streaming();
    let options = watch(&mut machine);
    assert!(options.send_initial_events && options.resource_version.is_none());
    let end = Seen::Bookmark { initial_events_end: true };
    assert_eq!(machine.seen(ZERO, end, &version("7")), Effect::Replace(version("7")));
    machine.failed(ZERO, &expired());
    wait(&mut machine, ZERO);
    let options = watch(&mut machine);
    assert!(options.send_initial_events);
    assert_eq!(options.resource_version, Some(version("7")));
}

#[test]
fn w2_w3_only_the_end_bookmark_ends_the_initial_events() {
    let mut machine = streaming();
    assert_eq!(machine.seen(ZERO, Seen::Added, &version("3")), Effect::Gather);
    assert_eq!(machine.seen(ZERO, Seen::Changed, &version("9")), Effect::Gather);
    let plain = Seen::Bookmark { initial_events_end: false };
    assert_eq!(machine.seen(ZERO, plain, &version("9")), Effect::Ignore);
    let end = Seen::Bookmark { initial_events_end: true };
    assert_eq!(machine.seen(ZERO, end, &version("9")), Effect::Replace(version("9")));
    assert_eq!(machine.seen(ZERO, Seen::Changed, &version("10")), Effect::Apply);
}

#[test]
fn w4_the_version_is_not_taken_from_initial_events() {
    let mut machine = streaming();
    machine.seen(ZERO, Seen::Added, &version("30"));
    assert!(machine.last().is_empty());
}

#[test]
fn w6_streams_that_end_early_are_replaced_by_a_list() {
    let mut machine = streaming();
    for _ in 0..3 {
        assert!(watch(&mut machine).send_initial_events);
        machine.opened(ZERO);
        machine.seen(ZERO, Seen::Added, &version("3"));
        let error = machine.ended(secs(2)).expect("not complete");
        machine.failed(ZERO, &error);
        assert!(wait(&mut machine, ZERO) >= Duration::from_millis(800));
    }
    assert_eq!(list(&mut machine).resource_version, Some(version("0")));
    machine.page(&version("7"), None);
    // It is not held against the server for ever.
    machine.failed(ZERO, &expired());
    wait(&mut machine, ZERO);
    assert!(watch(&mut machine).send_initial_events);
}

#[test]
fn w7_429_and_connection_refused_retry_the_stream() {
    let mut machine = streaming();
    for error in [too_many(None), Error::new(Cause::Refused, "")] {
        assert!(matches!(machine.failed(ZERO, &error).0, Next::Relist { .. }));
        wait(&mut machine, ZERO);
        assert!(watch(&mut machine).send_initial_events);
    }
}

#[test]
fn w8_expired_or_too_large_streams_the_most_recent() {
    for error in [api(410, "Expired", false), too_large()] {
        let mut machine = streaming();
        machine.seen(ZERO, Seen::Bookmark { initial_events_end: true }, &version("7"));
        machine.failed(ZERO, &expired());
        wait(&mut machine, ZERO);
        assert_eq!(watch(&mut machine).resource_version, Some(version("7")));
        machine.failed(ZERO, &error);
        let options = watch(&mut machine);
        assert!(options.send_initial_events && options.resource_version.is_none());
    }
}

#[test]
fn w9_an_unsupported_streaming_list_falls_back_to_lists() {
    for code in [400, 406, 415, 422] {
        let mut machine = streaming();
        let (next, _) = machine.failed(ZERO, &api(code, "Invalid", false));
        assert_eq!(next, Next::FallBackToList);
        list(&mut machine);
        machine.page(&version("7"), None);
        machine.failed(ZERO, &expired());
        wait(&mut machine, ZERO);
        list(&mut machine);
    }
}

#[test]
fn w11_a_stream_without_an_end_bookmark_times_out() {
    let mut machine = streaming();
    machine.opened(secs(100));
    machine.seen(secs(110), Seen::Added, &version("3"));
    // Other events do not show that the list goes on.
    machine.seen(secs(120), Seen::Changed, &version("4"));
    let (patience, error) = silence(&machine, secs(120));
    assert_eq!(patience, secs(20));
    assert_eq!(machine.failed(secs(140), &error).0, Next::FallBackToList);
    list(&mut machine);
}

#[test]
fn w11_a_stream_of_ever_new_objects_has_a_deadline_too() {
    let mut machine = streaming();
    machine.opened(ZERO);
    for second in 0..299 {
        machine.seen(secs(second), Seen::Added, &version("3"));
    }
    assert_eq!(silence(&machine, secs(299)).0, secs(1));
}

#[test]
fn w12_a_stream_that_ends_is_followed_by_a_watch() {
    let mut machine = streaming();
    machine.opened(ZERO);
    machine.seen(ZERO, Seen::Bookmark { initial_events_end: true }, &version("7"));
    assert_eq!(machine.ended(secs(60)), None);
    let options = watch(&mut machine);
    assert!(!options.send_initial_events);
    assert_eq!(options.resource_version, Some(version("7")));
}

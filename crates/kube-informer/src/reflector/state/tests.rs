use kube_core::Status;

use super::*;
use crate::list_watch::WatchOptions;
use crate::reflector::table::{Fault, classify};
use crate::wire::RETRY_AFTER_MAX;

mod doubt;
mod health;
mod random;
mod streams;

const ZERO: Duration = Duration::ZERO;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn version(text: &str) -> ResourceVersion {
    text.into()
}

fn api(code: u16, reason: &str, in_stream: bool) -> Error {
    let status = Box::new(Status::failure("", reason).with_code(code));
    Error::new(Cause::Api { status, retry_after: None, in_stream }, reason)
}

fn expired() -> Error {
    api(410, "Expired", true)
}

fn too_many(retry_after: Option<Duration>) -> Error {
    let status = Box::new(Status::failure("", "TooManyRequests").with_code(429));
    Error::new(Cause::Api { status, retry_after, in_stream: false }, "429")
}

fn too_large() -> Error {
    let status = Status::failure("Too large resource version: 9, current: 1", "Timeout");
    let status = Box::new(status.with_code(504));
    Error::new(Cause::Api { status, retry_after: None, in_stream: false }, "too large")
}

fn broken() -> Error {
    Error::new(Cause::Broken, "reset")
}

fn machine(streaming: bool, seed: u64) -> Machine {
    Machine::new(Settings { streaming, ..Settings::default() }, seed)
}

fn listing() -> Machine {
    machine(false, 1)
}

fn streaming() -> Machine {
    machine(true, 1)
}

/// The error with which a watch or stream is given up if nothing more arrives, and the time until
/// then.
fn silence(machine: &Machine, now: Duration) -> (Duration, Error) {
    match machine.patience(now) {
        Some((patience, Alarm::Silence)) => (patience, machine.silence()),
        other => panic!("not silence: {other:?}"),
    }
}

/// A machine that has listed at a version and watches from there.
fn watching(at: &str) -> Machine {
    let mut machine = listing();
    assert_eq!(machine.page(&version(at), None), Effect::Replace(version(at)));
    machine.opened(ZERO);
    machine
}

fn list(machine: &mut Machine) -> ListOptions {
    match machine.request() {
        Request::List(options) => options,
        other => panic!("not a list: {other:?}"),
    }
}

fn watch(machine: &mut Machine) -> WatchOptions {
    match machine.request() {
        Request::Watch(options) => options,
        other => panic!("not a watch: {other:?}"),
    }
}

/// How long the machine waits; its next request follows.
fn wait(machine: &mut Machine, now: Duration) -> Duration {
    let Request::Wait { until } = machine.request() else { return ZERO };
    machine.waited(until);
    until.checked_sub(now).expect("not in the past")
}

#[test]
fn r20_versions_of_first_and_later_lists() {
    let mut machine = listing();
    assert_eq!(list(&mut machine).resource_version, Some(version("0")));
    machine.page(&version("7"), None);
    machine.opened(ZERO);
    machine.failed(ZERO, &expired());
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).resource_version, Some(version("7")));
    machine.failed(ZERO, &api(410, "Expired", false));
    assert_eq!(list(&mut machine).resource_version, None);
}

#[test]
fn r21_a_relist_is_never_from_an_older_version_than_was_seen() {
    let mut machine = watching("7");
    machine.seen(ZERO, Seen::Changed, &version("9"));
    machine.failed(ZERO, &expired());
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).resource_version, Some(version("9")));
    // If a server responds with an older version all the same, it is asked for the most recent one.
    assert!(matches!(machine.page(&version("8"), None), Effect::Fail(_)));
    let Effect::Fail(error) = machine.page(&version("8"), None) else { unreachable!() };
    assert_eq!(machine.failed(ZERO, &error).0, Next::Relist { after: ZERO });
    assert_eq!(list(&mut machine).resource_version, None);
}

#[test]
fn i21_the_most_recent_list_wins_even_if_it_is_older() {
    let mut machine = watching("900");
    let Effect::Fail(error) = machine.seen(ZERO, Seen::Changed, &version("5")) else { panic!() };
    machine.failed(ZERO, &error);
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).resource_version, None);
    assert_eq!(machine.page(&version("6"), None), Effect::Replace(version("6")));
    assert_eq!(watch(&mut machine).resource_version, Some(version("6")));
}

#[test]
fn r22_pages_are_asked_for_where_the_server_reads_its_storage() {
    let mut machine = listing();
    assert_eq!(list(&mut machine).limit, Some(500));
    machine.page(&version("7"), None);
    machine.failed(ZERO, &expired());
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).limit, None, "served from the cache");
    machine.failed(ZERO, &api(410, "Expired", false));
    assert_eq!(list(&mut machine).limit, Some(500), "the most recent comes from storage");
}

#[test]
fn r22_a_server_that_pages_version_0_always_gets_pages() {
    let mut machine = listing();
    machine.page(&version("7"), Some("next".into()));
    machine.page(&version("7"), None);
    machine.failed(ZERO, &expired());
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).limit, Some(500));
}

#[test]
fn r22_a_page_size_that_was_asked_for_is_always_used() {
    let settings = Settings { streaming: false, page_objects: Some(3), ..Settings::default() };
    let mut machine = Machine::new(settings, 1);
    assert_eq!(list(&mut machine).limit, Some(3));
    machine.page(&version("7"), None);
    machine.failed(ZERO, &expired());
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).limit, Some(3));
}

#[test]
fn r23_a_token_is_sent_without_a_version() {
    let mut machine = listing();
    assert_eq!(machine.page(&version("7"), Some("next".into())), Effect::Gather);
    let options = list(&mut machine);
    assert_eq!(options.continue_token.as_deref(), Some("next"));
    assert_eq!(options.resource_version, None);
    assert_eq!(machine.page(&version("8"), None), Effect::Replace(version("7")));
}

#[test]
fn r24_an_expired_token_causes_one_list_without_pages() {
    let mut machine = listing();
    machine.page(&version("7"), Some("next".into()));
    let (next, _) = machine.failed(ZERO, &api(410, "Expired", false));
    assert_eq!(next, Next::Relist { after: ZERO });
    let options = list(&mut machine);
    assert_eq!((options.limit, options.continue_token), (None, None));
    assert_eq!(options.resource_version, Some(version("0")));
}

#[test]
fn r25_expired_or_too_large_is_retried_once_without_a_pause() {
    for error in [api(410, "Gone", false), too_large()] {
        let mut machine = listing();
        assert_eq!(machine.failed(ZERO, &error).0, Next::Relist { after: ZERO });
        assert_eq!(list(&mut machine).resource_version, None);
        let (Next::Relist { after }, attempt) = machine.failed(ZERO, &error) else { panic!() };
        assert!(after >= Duration::from_millis(800), "{after:?}");
        assert_eq!(attempt, 2);
    }
}

#[test]
fn r29_a_list_that_came_clears_what_was_wrong() {
    let mut machine = watching("7");
    machine.failed(ZERO, &api(410, "Expired", false));
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).resource_version, None);
    machine.page(&version("8"), None);
    machine.opened(ZERO);
    machine.failed(ZERO, &expired());
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).resource_version, Some(version("8")));
}

/// As in client-go: some aggregated servers have no versions.
#[test]
fn r29_a_list_without_a_version_is_taken_and_watched_from_none() {
    let mut machine = listing();
    assert_eq!(machine.page(&version(""), None), Effect::Replace(version("")));
    assert_eq!(watch(&mut machine).resource_version, None);
    machine.opened(ZERO);
    // It starts with the existing objects, in no particular order.
    assert_eq!(machine.seen(ZERO, Seen::Added, &version("9")), Effect::Apply);
    assert_eq!(machine.seen(ZERO, Seen::Added, &version("3")), Effect::Apply);
    // A delete between two such watches is seen only by a list.
    assert_eq!(machine.ended(secs(400)), None);
    assert_eq!(list(&mut machine).resource_version, Some(version("0")));
}

#[test]
fn a_watch_from_no_version_goes_on_from_the_first_that_it_gets() {
    let mut machine = listing();
    machine.page(&version(""), None);
    machine.opened(ZERO);
    machine.seen(ZERO, Seen::Added, &version("9"));
    machine.seen(ZERO, Seen::Changed, &version("11"));
    assert_eq!(machine.ended(secs(400)), None);
    assert_eq!(watch(&mut machine).resource_version, Some(version("11")));
}

#[test]
fn i19_pages_whose_tokens_repeat_are_given_up_with_a_pause() {
    let mut machine = listing();
    assert_eq!(machine.page(&version("7"), Some("again".into())), Effect::Gather);
    let Effect::Fail(error) = machine.page(&version("7"), Some("again".into())) else { panic!() };
    assert!(matches!(machine.failed(ZERO, &error).0, Next::Relist { after } if after > ZERO));
}

/// There once were 100,000 requests without a pause.
#[test]
fn r24_tokens_that_always_expire_are_asked_for_with_pauses() {
    let mut machine = listing();
    let (mut now, mut requests) = (ZERO, 0);
    while now < secs(600) {
        if let Request::Wait { until } = machine.request() {
            now = until;
            machine.waited(now);
            continue;
        }
        requests += 1;
        assert_eq!(machine.page(&version("7"), Some("next".into())), Effect::Gather);
        machine.failed(now, &api(410, "Expired", false));
    }
    assert!(requests < 40, "{requests} requests");
}

#[test]
fn r3_a_watch_is_asked_to_end_after_five_to_ten_minutes() {
    let mut machine = watching("7");
    let timeouts: Vec<_> = (0..100).map(|_| watch(&mut machine).timeout.unwrap()).collect();
    assert!(timeouts.iter().all(|timeout| (secs(300)..secs(600)).contains(timeout)));
    assert!(timeouts.windows(2).any(|pair| pair[0] != pair[1]), "they are spread");
}

#[test]
fn r40_a_watch_starts_at_the_last_version() {
    let mut machine = watching("7");
    machine.seen(ZERO, Seen::Changed, &version("8"));
    machine.seen(ZERO, Seen::Bookmark { initial_events_end: false }, &version("12"));
    assert_eq!(machine.ended(secs(5)), None);
    let options = watch(&mut machine);
    assert_eq!(options.resource_version, Some(version("12")));
    assert!(!options.send_initial_events);
}

#[test]
fn r43_connection_refused_and_429_keep_the_version_and_back_off() {
    let mut machine = watching("7");
    for attempt in 1..20 {
        let error = if attempt % 2 == 0 { too_many(None) } else { Error::new(Cause::Refused, "") };
        let (Next::Resume { after }, failures) = machine.failed(ZERO, &error) else { panic!() };
        assert!(after >= Duration::from_millis(800) && after < secs(60));
        assert_eq!(failures, attempt);
        wait(&mut machine, ZERO);
        assert_eq!(watch(&mut machine).resource_version, Some(version("7")));
    }
}

#[test]
fn retry_after_is_waited_for_but_not_for_a_day() {
    let mut machine = watching("7");
    machine.failed(ZERO, &too_many(Some(secs(17))));
    let waited = wait(&mut machine, ZERO);
    assert!(waited >= secs(17) && waited < secs(20), "{waited:?}");
    machine.failed(ZERO, &too_many(Some(secs(86_400))));
    assert!(wait(&mut machine, ZERO) <= secs(330));
}

#[test]
fn r45_a_watch_that_ends_normally_is_begun_again_at_once() {
    let mut machine = watching("7");
    assert_eq!(machine.ended(secs(1)), None);
    assert_eq!(watch(&mut machine).resource_version, Some(version("7")));
}

#[test]
fn r46_a_watch_that_ends_at_once_fails_without_a_relist() {
    let mut machine = watching("7");
    let error = machine.ended(Duration::from_millis(999)).expect("an error");
    let (Next::Resume { after }, 1) = machine.failed(ZERO, &error) else { panic!() };
    assert!(after >= Duration::from_millis(800));
}

#[test]
fn r46_short_watches_are_reopened_once_a_second() {
    let mut machine = watching("7");
    machine.opened(secs(10));
    machine.seen(secs(10), Seen::Changed, &version("8"));
    let end = secs(10) + Duration::from_millis(300);
    assert_eq!(machine.ended(end), None);
    assert_eq!(machine.request(), Request::Wait { until: secs(11) });
    machine.waited(secs(11));
    assert_eq!(watch(&mut machine).resource_version, Some(version("8")));
}

#[test]
fn r47_r50_410_in_the_stream_relists_from_the_last_version() {
    let mut machine = watching("7");
    let (Next::Relist { after }, _) = machine.failed(ZERO, &expired()) else { panic!() };
    assert!(after >= Duration::from_millis(800), "not all clients at once");
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).resource_version, Some(version("7")));
}

#[test]
fn http_410_on_a_watch_relists_the_most_recent() {
    let mut machine = watching("7");
    machine.failed(ZERO, &api(410, "Expired", false));
    wait(&mut machine, ZERO);
    assert_eq!(list(&mut machine).resource_version, None);
}

#[test]
fn r47_r49_repeated_server_errors_lead_to_a_relist() {
    let mut machine = watching("7");
    let error = api(500, "InternalError", true);
    let kinds: Vec<_> = (0..5)
        .map(|_| {
            let (next, _) = machine.failed(ZERO, &error);
            wait(&mut machine, ZERO);
            matches!(next, Next::Poll { .. })
        })
        .collect();
    assert_eq!(kinds, [false, false, false, false, true]);
    assert_eq!(list(&mut machine).resource_version, Some(version("7")));
}

#[test]
fn r58_a_store_read_error_causes_a_relist() {
    let mut machine = watching("7");
    let (next, _) = machine.failed(ZERO, &api(500, "StoreReadError", true));
    assert!(matches!(next, Next::Relist { .. }));
}

#[test]
fn r56_initial_objects_of_a_watch_from_0_set_no_version() {
    let mut machine = watching("0");
    assert_eq!(machine.seen(ZERO, Seen::Added, &version("40")), Effect::Apply);
    assert_eq!(machine.seen(ZERO, Seen::Added, &version("20")), Effect::Apply);
    assert_eq!(machine.last(), &version("0"));
    machine.seen(ZERO, Seen::Changed, &version("41"));
    assert_eq!(machine.last(), &version("41"));
    machine.seen(ZERO, Seen::Added, &version("42"));
    assert_eq!(machine.last(), &version("42"));
}

#[test]
fn r53_a_bookmark_moves_the_version() {
    let mut machine = watching("7");
    let bookmark = Seen::Bookmark { initial_events_end: false };
    assert_eq!(machine.seen(ZERO, bookmark, &version("70")), Effect::Apply);
    assert_eq!(machine.last(), &version("70"));
}

#[test]
fn silence_is_noticed_after_75_s_and_resumed_at_once() {
    let mut machine = watching("7");
    machine.seen(secs(10), Seen::Bookmark { initial_events_end: false }, &version("8"));
    let (patience, error) = silence(&machine, secs(10));
    assert_eq!(patience, secs(75));
    assert_eq!(machine.failed(secs(85), &error).0, Next::Resume { after: ZERO });
    assert_eq!(watch(&mut machine).resource_version, Some(version("8")));
    // A second time in a row is no coincidence: the server may have been restored from a backup,
    // and be waiting for a version that it will not have for a long time.
    machine.opened(secs(85));
    machine.asking_version();
    let (_, error) = silence(&machine, secs(160));
    assert!(matches!(machine.failed(secs(160), &error).0, Next::Relist { after } if after > ZERO));
}

#[test]
fn a_404_is_asked_for_again_soon_and_then_ever_more_slowly() {
    for mut machine in [listing(), streaming(), watching("7")] {
        machine.failed(ZERO, &api(404, "NotFound", false));
        assert!(wait(&mut machine, ZERO) < secs(2));
        for _ in 0..8 {
            machine.failed(ZERO, &api(404, "NotFound", false));
        }
        assert!(wait(&mut machine, ZERO) >= secs(30));
    }
}

#[test]
fn a_resource_that_was_gone_is_listed_again() {
    let mut machine = watching("7");
    let (next, _) = machine.failed(ZERO, &api(404, "NotFound", false));
    assert!(matches!(next, Next::Relist { .. }));
}

#[test]
fn the_first_401_is_retried_at_once_with_fresh_credentials() {
    let mut machine = watching("7");
    let error = api(401, "Unauthorized", false);
    assert_eq!(machine.failed(ZERO, &error).0, Next::Resume { after: ZERO });
    assert!(matches!(machine.failed(ZERO, &error).0, Next::Resume { after } if after > ZERO));
}

#[test]
fn r26_too_large_is_known_by_its_cause_and_by_its_words() {
    assert_eq!(classify(&too_large()), Fault::TooLarge);
    let status: Status = serde_json::from_value(serde_json::json!({
        "code": 504, "reason": "Timeout", "message": "…",
        "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}]},
    }))
    .unwrap();
    let cause = Cause::Api { status: Box::new(status), retry_after: None, in_stream: false };
    assert_eq!(classify(&Error::new(cause, "")), Fault::TooLarge);
    assert_eq!(classify(&api(504, "Timeout", false)), Fault::Server);
}

#[test]
fn r27_gone_and_expired_are_the_same() {
    assert_eq!(classify(&api(410, "Gone", false)), classify(&api(410, "Expired", false)));
    assert_eq!(classify(&api(410, "", true)), Fault::Expired { in_stream: true });
}

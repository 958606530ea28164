//! A watch that is quiet after another has failed: its server may have been restored from a backup.

use super::*;

/// The server has never sent a bookmark, and that is known.
fn without_bookmarks() -> Machine {
    let mut machine = watching("6");
    machine.seen(ZERO, Seen::Changed, &version("7"));
    for _ in 0..2 {
        let (patience, error) = silence(&machine, ZERO);
        assert_eq!(patience, secs(75));
        machine.failed(ZERO, &error);
        wait(&mut machine, ZERO);
        machine.opened(ZERO);
        answer(&mut machine, ZERO, "7");
    }
    assert!(silence(&machine, ZERO).0 > secs(600));
    machine
}

/// Back on a watch after the connection was lost, at ten seconds.
fn reconnected(mut machine: Machine) -> Machine {
    assert!(matches!(machine.failed(ZERO, &broken()).0, Next::Resume { .. }));
    wait(&mut machine, ZERO);
    machine.opened(secs(10));
    assert_eq!(watch(&mut machine).resource_version, Some(version("7")));
    machine
}

/// Lets the machine ask for the server's version, which it does within two to four seconds.
fn ask(machine: &mut Machine, now: Duration) {
    let Some((patience, Alarm::AskVersion)) = machine.patience(now) else {
        panic!("it does not ask")
    };
    assert!((ASK_VERSION_AFTER..=ASK_VERSION_AFTER * 2).contains(&patience), "{patience:?}");
    machine.asking_version();
}

fn answer(machine: &mut Machine, now: Duration, at: &str) {
    ask(machine, now);
    assert_eq!(machine.server_is_at(&version(at)), Effect::Ignore);
}

/// Before, this took 80 s and more.
#[test]
fn i21_a_server_that_went_back_is_noticed_within_seconds() {
    let mut machine = reconnected(watching("7"));
    ask(&mut machine, secs(10));
    let Effect::Fail(error) = machine.server_is_at(&version("5")) else { panic!("not noticed") };
    assert!(
        matches!(machine.failed(secs(14), &error).0, Next::Relist { after } if after < secs(2))
    );
    wait(&mut machine, secs(14));
    assert_eq!(list(&mut machine).resource_version, None, "the most recent");
}

#[test]
fn i21_a_machine_that_resumes_an_earlier_run_doubts_the_server() {
    let mut machine = machine(true, 1);
    machine.resume_from(version("7"));
    assert_eq!(watch(&mut machine).resource_version, Some(version("7")));
    machine.opened(ZERO);
    ask(&mut machine, ZERO);
    let Effect::Fail(error) = machine.server_is_at(&version("5")) else { panic!("not noticed") };
    assert!(matches!(machine.failed(ZERO, &error).0, Next::Relist { .. }));
}

#[test]
fn l3_a_version_is_asked_for_once_each_time_a_watch_is_reopened() {
    let mut machine = watching("7");
    assert_eq!(silence(&machine, ZERO).0, secs(75), "not where all is well");
    machine = reconnected(machine);
    ask(&mut machine, secs(10));
    // No answer: that is not asked again either.
    assert_eq!(silence(&machine, secs(20)).0, secs(65));
    machine = reconnected(machine);
    answer(&mut machine, secs(10), "8");
    assert_eq!(machine.ended(secs(100)), None);
    machine.opened(secs(100));
    assert_eq!(silence(&machine, secs(100)).0, secs(75));
}

#[test]
fn a_watch_that_brings_something_is_not_asked_about() {
    let mut machine = reconnected(watching("7"));
    machine.seen(secs(11), Seen::Changed, &version("8"));
    assert_eq!(silence(&machine, secs(11)).0, secs(75));
}

#[test]
fn i21_silence_after_a_failure_causes_a_relist() {
    for machine in [watching("7"), without_bookmarks()] {
        let mut machine = reconnected(machine);
        ask(&mut machine, secs(10));
        let (patience, error) = silence(&machine, secs(10));
        assert_eq!(patience, secs(75));
        assert!(matches!(machine.failed(secs(85), &error).0, Next::Relist { .. }));
        wait(&mut machine, secs(85));
        assert_eq!(list(&mut machine).resource_version, Some(version("7")));
    }
}

#[test]
fn only_a_list_or_an_event_ends_the_doubt() {
    let mut machine = reconnected(without_bookmarks());
    assert_eq!(machine.ended(secs(40)), None);
    machine.opened(secs(40));
    assert_eq!(watch(&mut machine).resource_version, Some(version("7")));
    ask(&mut machine, secs(40));
    let (patience, error) = silence(&machine, secs(40));
    assert_eq!(patience, secs(75));
    assert!(matches!(machine.failed(secs(115), &error).0, Next::Relist { .. }));
    wait(&mut machine, secs(115));
    machine.page(&version("7"), None);
    machine.opened(secs(120));
    assert!(silence(&machine, secs(120)).0 > secs(600));
    assert_eq!(machine.ended(secs(500)), None);
    machine.opened(secs(500));
    assert!(silence(&machine, secs(500)).0 > secs(600));
}

#[test]
fn an_event_ends_the_doubt() {
    let mut machine = reconnected(without_bookmarks());
    machine.seen(secs(20), Seen::Changed, &version("8"));
    assert!(silence(&machine, secs(20)).0 > secs(600));
    assert_eq!(machine.ended(secs(40)), None);
    assert_eq!(watch(&mut machine).resource_version, Some(version("8")));
}

#[test]
fn a_server_without_bookmarks_is_not_taken_for_dead_for_ever() {
    let mut machine = without_bookmarks();
    machine.seen(secs(400), Seen::Changed, &version("8"));
    assert!(silence(&machine, secs(400)).0 > secs(600));
    machine.seen(secs(460), Seen::Bookmark { initial_events_end: false }, &version("8"));
    assert_eq!(silence(&machine, secs(460)).0, secs(75));
}

/// A proxy that begins to swallow what comes on watches that have worked: the cache would freeze.
#[test]
fn l1_a_watch_that_outlives_its_timeout_is_dead() {
    let mut machine = without_bookmarks();
    let (patience, error) = silence(&machine, ZERO);
    assert!(matches!(machine.failed(patience, &error).0, Next::Relist { .. }));
    let now = patience + wait(&mut machine, patience);
    assert_eq!(list(&mut machine).resource_version, Some(version("7")));
    machine.item(&version("8"));
    machine.page(&version("9"), None);
    machine.opened(now);
    assert_eq!(silence(&machine, now).0, secs(75), "watches are known to bring nothing");
}

/// A server that has just started refuses what it allows, until it has read its roles.
#[test]
fn l3_forbidden_is_retried_with_growing_pauses() {
    for mut machine in [listing(), streaming(), watching("7")] {
        machine.failed(ZERO, &api(403, "Forbidden", false));
        assert!(wait(&mut machine, ZERO) < secs(2));
        for _ in 0..8 {
            machine.failed(ZERO, &api(403, "Forbidden", false));
        }
        assert!(wait(&mut machine, ZERO) >= secs(30));
    }
}

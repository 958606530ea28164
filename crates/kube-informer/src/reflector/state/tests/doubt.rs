//! A watch that is quiet after another has failed: its server may have been restored from a backup.

use super::*;

/// The server has never sent a bookmark, and that is known.
fn without_bookmarks() -> Machine {
    let mut machine = watching("7");
    for _ in 0..2 {
        let (_, error) = machine.patience(ZERO).unwrap();
        machine.failed(ZERO, &error);
        wait(&mut machine, ZERO);
        machine.opened(ZERO);
    }
    assert!(machine.patience(ZERO).unwrap().0 > secs(600));
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

#[test]
fn i21_silence_after_a_failure_is_listed_with_and_without_bookmarks() {
    for machine in [watching("7"), without_bookmarks()] {
        let mut machine = reconnected(machine);
        let (patience, error) = machine.patience(secs(10)).unwrap();
        assert_eq!(patience, secs(75));
        assert!(matches!(machine.failed(secs(85), &error).0, Next::Relist { .. }));
        wait(&mut machine, secs(85));
        assert_eq!(list(&mut machine).resource_version, Some(version("7")));
    }
}

#[test]
fn an_end_without_an_event_does_not_end_the_doubt_and_a_list_does() {
    let mut machine = reconnected(without_bookmarks());
    assert_eq!(machine.ended(secs(40)), None);
    machine.opened(secs(40));
    assert_eq!(watch(&mut machine).resource_version, Some(version("7")));
    let (patience, error) = machine.patience(secs(40)).unwrap();
    assert_eq!(patience, secs(75));
    assert!(matches!(machine.failed(secs(115), &error).0, Next::Relist { .. }));
    wait(&mut machine, secs(115));
    machine.page(&version("7"), None);
    machine.opened(secs(120));
    assert!(machine.patience(secs(120)).unwrap().0 > secs(600));
    assert_eq!(machine.ended(secs(500)), None);
    machine.opened(secs(500));
    assert!(machine.patience(secs(500)).unwrap().0 > secs(600));
}

#[test]
fn an_event_ends_the_doubt() {
    let mut machine = reconnected(without_bookmarks());
    machine.seen(secs(20), Seen::Changed, &version("8"));
    assert!(machine.patience(secs(20)).unwrap().0 > secs(600));
    assert_eq!(machine.ended(secs(40)), None);
    assert_eq!(watch(&mut machine).resource_version, Some(version("8")));
}

/// A server that has just started refuses what it allows, until it has read its roles.
#[test]
fn l3_forbidden_is_asked_for_again_soon_and_then_ever_more_slowly() {
    for mut machine in [listing(), streaming(), watching("7")] {
        machine.failed(ZERO, &api(403, "Forbidden", false));
        assert!(wait(&mut machine, ZERO) < secs(2));
        for _ in 0..8 {
            machine.failed(ZERO, &api(403, "Forbidden", false));
        }
        assert!(wait(&mut machine, ZERO) >= secs(30));
    }
}

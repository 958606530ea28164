//! When failures are consecutive, and what is done where watches do not work at all.

use super::*;
use crate::reflector::table::STREAM_FAILURES_MAX;

/// Runs a server whose every watch does the same for an hour; returns the time during which a watch was
/// open, and the lists that were made.
fn hour(
    machine: &mut Machine,
    watch: impl Fn(&mut Machine, Duration) -> Duration,
) -> (Duration, u32) {
    let (mut now, mut live, mut lists, mut server) = (ZERO, ZERO, 0, 1000_u64);
    while now < secs(3600) {
        match machine.request() {
            Request::Wait { until } => {
                now = now.max(until);
                machine.waited(now);
            }
            Request::List(_) => {
                lists += 1;
                server += 10;
                machine.item(&version(&server.to_string()));
                machine.page(&version(&server.to_string()), None);
            }
            Request::Watch(_) => {
                machine.opened(now);
                let lasted = watch(machine, now);
                now += lasted;
                live += lasted;
            }
        }
    }
    (live, lists)
}

/// Measured before: not live for 1,928 of 3,600 s.
#[test]
fn l1_a_quiet_watch_that_is_cut_every_35_s_is_resumed_at_once() {
    let mut machine = listing();
    let (live, lists) = hour(&mut machine, |machine, now| {
        machine.asking_version();
        assert_eq!(machine.failed(now + secs(35), &broken()), (Next::Resume { after: ZERO }, 1));
        secs(35)
    });
    assert!(live >= secs(3600) && lists == 1, "{live:?} live, {lists} lists");
}

/// Before: a list every 1.2 s.
#[test]
fn l3_repeated_410s_after_an_event_back_off() {
    let errors: [fn() -> Error; 3] =
        [expired, || api(410, "Gone", false), || regressed(&version("1"), &version("2"))];
    for error in errors {
        let mut machine = listing();
        let (_, lists) = hour(&mut machine, |machine, now| {
            let next = machine.last().as_str().parse::<u64>().unwrap() + 1;
            machine.seen(now, Seen::Changed, &version(&next.to_string()));
            machine.failed(now, &error());
            ZERO
        });
        // One every 30 to 60 s, once they are slow.
        assert!((60..130).contains(&lists), "{lists} lists");
    }
}

#[test]
fn r12_failures_are_consecutive_until_a_watch_has_lasted() {
    let mut machine = watching("7");
    for attempt in 1..=4 {
        assert_eq!(machine.failed(ZERO, &api(503, "", true)).1, attempt);
        wait(&mut machine, ZERO);
        machine.opened(ZERO);
        // One event is not health.
        machine.seen(ZERO, Seen::Changed, &version("8"));
    }
    machine.seen(HEALTHY_WATCH, Seen::Changed, &version("9"));
    assert_eq!(machine.failed(secs(4), &api(503, "", false)).1, 1);
}

/// client-go does not pause at all here.
#[test]
fn a_watch_cut_after_every_event_is_resumed_once_a_second() {
    let mut machine = watching("100");
    let (_, lists) = hour(&mut machine, |machine, now| {
        let next = machine.last().as_str().parse::<u64>().unwrap() + 1;
        machine.seen(now, Seen::Changed, &version(&next.to_string()));
        let second = Duration::from_secs(1);
        assert_eq!(machine.failed(now, &broken()), (Next::Resume { after: second }, 1));
        ZERO
    });
    assert_eq!(lists, 0);
    assert_eq!(machine.last(), &version("3700"));
    // Events that were known before are no progress.
    let now = secs(3600) + wait(&mut machine, secs(3600));
    machine.opened(now);
    assert_eq!(machine.seen(now, Seen::Changed, &version("3700")), Effect::Apply);
    let paused: Vec<_> = (0..2).map(|_| machine.failed(now, &broken()).0).collect();
    assert!(paused.iter().all(|next| *next != Next::Resume { after: secs(1) }), "{paused:?}");
}

#[test]
fn r12_a_server_that_expires_a_version_does_not_count_as_down() {
    let mut machine = watching("7");
    for _ in 0..8 {
        machine.failed(ZERO, &Error::new(Cause::Refused, ""));
        wait(&mut machine, ZERO);
        machine.opened(ZERO);
    }
    machine.failed(ZERO, &expired());
    assert!(wait(&mut machine, ZERO) < secs(2));
}

#[test]
fn lists_that_work_where_watches_do_not_are_polled() {
    // RBAC without `watch`, a proxy that answers with an error or not at all.
    for error in [api(403, "Forbidden", false), Error::new(Cause::Timeout, ""), api(502, "", false)]
    {
        let mut machine = streaming();
        // Streams are watches.
        let refused = |request| matches!(request, Request::Watch(_));
        let mut tries = 0;
        while refused(machine.request()) {
            machine.failed(ZERO, &error);
            wait(&mut machine, ZERO);
            tries += 1;
        }
        assert_eq!(tries, STREAM_FAILURES_MAX);
        machine.page(&version("7"), None);
        let nexts: Vec<_> = (0..7)
            .map(|_| {
                let (next, _) = machine.failed(ZERO, &error);
                wait(&mut machine, ZERO);
                if let Next::Poll { .. } = next {
                    list(&mut machine);
                    machine.page(&version("7"), None);
                }
                next
            })
            .collect();
        let (first, rest) = nexts.split_at(4);
        assert!(first.iter().all(|next| matches!(next, Next::Resume { .. })), "{nexts:?}");
        assert!(rest.iter().all(|next| matches!(next, Next::Poll { .. })), "{nexts:?}");
        // A watch that works ends that.
        machine.opened(ZERO);
        machine.seen(secs(10), Seen::Changed, &version("8"));
        assert!(matches!(machine.failed(secs(10), &error).0, Next::Resume { .. }));
    }
}

/// Each has a cause that a list would not survive either.
#[test]
fn l3_a_server_that_is_down_is_not_polled() {
    for error in [Error::new(Cause::Refused, ""), too_many(None), api(401, "Unauthorized", false)] {
        let mut machine = watching("7");
        for _ in 0..20 {
            assert!(matches!(machine.failed(ZERO, &error).0, Next::Resume { .. }), "{error:?}");
            wait(&mut machine, ZERO);
        }
    }
}

/// A proxy that swallows what comes on watches: they open, and nothing ever comes.
#[test]
fn watches_that_never_bring_anything_are_polled() {
    let mut machine = listing();
    let (live, lists) = hour(&mut machine, |machine, now| {
        machine.asking_version();
        let (patience, error) = silence(machine, now);
        assert_eq!(patience, SILENCE_MAX);
        machine.failed(now + patience, &error);
        patience
    });
    assert!((25..50).contains(&lists), "{lists} lists, {live:?} open");
}

/// A quiet resource of a server without bookmarks looks the same, but for the lists.
#[test]
fn l3_watches_that_have_nothing_to_bring_are_not_polled() {
    let mut machine = listing();
    machine.page(&version("7"), None);
    let (mut now, mut lists) = (ZERO, 0);
    while now < secs(3600) {
        match machine.request() {
            Request::Wait { until } => {
                now = until;
                machine.waited(now);
            }
            Request::List(_) => {
                lists += 1;
                machine.item(&version("5"));
                // Other resources have changed meanwhile.
                machine.page(&version("90"), None);
            }
            Request::Watch(_) => {
                machine.opened(now);
                machine.asking_version();
                let (patience, error) = silence(&machine, now);
                now += patience;
                machine.failed(now, &error);
            }
        }
    }
    assert!(lists < 8, "{lists} lists");
}

/// As `r29`: client-go lists again if the store refuses.
#[test]
fn r29_a_store_that_rejects_a_list_gets_the_next_one() {
    let mut machine = listing();
    let mut pauses = Vec::new();
    for _ in 0..8 {
        machine.page(&version("7"), None);
        let (Next::Relist { .. }, _) = machine.failed(ZERO, &Error::new(Cause::Store, "")) else {
            panic!("not listed again")
        };
        pauses.push(wait(&mut machine, ZERO));
        assert!(matches!(machine.request(), Request::List(_)));
    }
    assert!(pauses[0] >= Duration::from_millis(800) && pauses[7] >= secs(30), "{pauses:?}");
}

#[test]
fn r11_delays_and_timeouts_can_be_set() {
    let mut settings = Settings { streaming: false, ..Settings::default() };
    settings.delays = Delays::new(secs(5), secs(8));
    settings.set_watch_timeout(secs(20));
    let mut machine = Machine::new(settings, 1);
    machine.page(&version("7"), None);
    let timeout = watch(&mut machine).timeout.unwrap();
    assert!((secs(20)..secs(40)).contains(&timeout), "{timeout:?}");
    for (least, most) in [(5, 10), (8, 16), (8, 16)] {
        machine.failed(ZERO, &Error::new(Cause::Refused, ""));
        let pause = wait(&mut machine, ZERO);
        assert!((secs(least)..secs(most)).contains(&pause), "{pause:?}");
    }
}

#[test]
fn r51_what_says_nothing_is_no_event_and_moves_no_version() {
    let mut machine = watching("7");
    assert_eq!(machine.seen(ZERO, Seen::Nothing, &version("")), Effect::Apply);
    assert_eq!(machine.last(), &version("7"));
    assert!(machine.ended(Duration::from_millis(999)).is_some(), "as if nothing had come");
    // But the connection lives.
    let mut machine = watching("7");
    machine.seen(secs(70), Seen::Nothing, &version(""));
    assert!(machine.patience(secs(80)).is_some_and(|(patience, _)| patience > secs(60)));
}

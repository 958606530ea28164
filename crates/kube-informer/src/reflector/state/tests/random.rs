//! Any sequence of things that can happen, and what must hold whatever they are.

use proptest::prelude::*;

use super::*;

/// The next random input.
#[derive(Clone, Debug)]
enum Happens {
    /// The request succeeds; the version of the response is this much newer, or older.
    Well {
        newer: i64,
        more: bool,
    },
    Event {
        kind: u8,
        newer: i64,
    },
    End,
    Fault(u8),
    Time(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => (-2..5_i64, any::<bool>()).prop_map(|(newer, more)| Happens::Well { newer, more }),
        4 => (0..4_u8, -2..5_i64).prop_map(|(kind, newer)| Happens::Event { kind, newer }),
        1 => Just(Happens::End),
        2 => (0..14_u8).prop_map(Happens::Fault),
        2 => (0..200_u64).prop_map(Happens::Time),
    ]
}

fn fault(number: u8) -> Error {
    match number {
        0 => expired(),
        1 => api(410, "Gone", false),
        2 => too_large(),
        3 => too_many(Some(secs(3))),
        4 => api(401, "Unauthorized", false),
        5 => api(403, "Forbidden", false),
        6 => api(404, "NotFound", false),
        7 => api(422, "Invalid", false),
        8 => api(500, "InternalError", true),
        9 => api(500, "StoreReadError", true),
        10 => Error::new(Cause::Refused, ""),
        11 => broken(),
        12 => Error::new(Cause::Timeout, ""),
        _ => Error::protocol(""),
    }
}

/// The machine with a clock, and what is checked at every step.
struct World {
    machine: Machine,
    now: Duration,
    /// The server's version, as far as it has reported it.
    server: i64,
    requests: Vec<Duration>,
    open: bool,
    synced: bool,
}

impl World {
    fn new(streaming: bool, seed: u64) -> Self {
        let machine = machine(streaming, seed);
        Self { machine, now: ZERO, server: 100, requests: vec![], open: false, synced: false }
    }

    fn fail(&mut self, error: &Error) {
        let before = self.machine.last().clone();
        self.machine.failed(self.now, error);
        self.open = false;
        assert_eq!(&before, self.machine.last(), "a failure does not move the version");
    }

    fn effect(&mut self, effect: Effect, asked: Option<ResourceVersion>) {
        match effect {
            Effect::Replace(version) => {
                // not older than what was seen, unless the most recent was asked for.
                if let Some(asked) = asked {
                    assert!(asked == "0" || version >= asked, "{version} for {asked}");
                }
                assert_eq!(&version, self.machine.last());
                self.synced = true;
            }
            Effect::Fail(error) => self.fail(&error),
            Effect::Apply => assert!(self.synced, "nothing is handed on before the first list"),
            Effect::Gather | Effect::Ignore => {}
        }
    }

    fn at(&mut self, newer: i64) -> ResourceVersion {
        self.server = (self.server + newer).max(1);
        version(&self.server.to_string())
    }

    fn step(&mut self, happens: &Happens) {
        let request = self.machine.request();
        match (happens, &request) {
            (Happens::Time(seconds), _) => self.pass(secs(*seconds)),
            (_, Request::Wait { until }) => {
                // L2: what waits waits for a time, not for ever.
                assert!(*until <= self.now + RETRY_AFTER_MAX + secs(60));
                self.now = self.now.max(*until);
                self.machine.waited(self.now);
            }
            (Happens::Fault(number), _) => self.fail(&fault(*number)),
            (Happens::Well { newer, more }, Request::List(options)) => {
                self.requests.push(self.now);
                let at = self.at(*newer);
                let effect = self.machine.page(&at, more.then(|| "token".to_owned()));
                self.effect(effect, options.resource_version.clone());
            }
            (Happens::Well { .. }, Request::Watch(_)) if !self.open => {
                self.requests.push(self.now);
                self.machine.opened(self.now);
                self.open = true;
            }
            (Happens::Event { kind, newer }, Request::Watch(options)) if self.open => {
                let seen = match kind {
                    0 => Seen::Added,
                    1 => Seen::Changed,
                    2 => Seen::Bookmark { initial_events_end: false },
                    _ => Seen::Bookmark { initial_events_end: true },
                };
                let at = self.at(*newer);
                let before = self.machine.last().clone();
                let effect = self.machine.seen(self.now, seen, &at);
                if !options.send_initial_events {
                    // I2: within a history the version only grows.
                    assert!(before.is_empty() || *self.machine.last() >= before);
                }
                self.effect(effect, options.resource_version.clone());
            }
            (Happens::End, Request::Watch(_)) if self.open => {
                self.open = false;
                if let Some(error) = self.machine.ended(self.now) {
                    self.fail(&error);
                }
            }
            _ => {}
        }
    }

    /// Time goes by; a watch that nothing comes on is given up in time.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        if !self.open {
            return;
        }
        match self.machine.patience(self.now) {
            Some((Duration::ZERO, Alarm::Silence)) => self.fail(&self.machine.silence()),
            Some((Duration::ZERO, Alarm::AskVersion)) => {
                self.machine.asking_version();
                let at = self.at(0);
                let effect = self.machine.server_is_at(&at);
                // I21: it fails only if the server went back.
                let back = at < *self.machine.last();
                assert_eq!(matches!(effect, Effect::Fail(_)), back);
                self.effect(effect, None);
            }
            _ => {}
        }
    }

    /// L1: from wherever it is, a healthy server is mirrored within a bounded time and few requests.
    fn heal(&mut self) {
        let began = self.now;
        for _ in 0..20 {
            match self.machine.request() {
                Request::Wait { until } => {
                    self.now = self.now.max(until);
                    self.machine.waited(self.now);
                }
                Request::List(options) => {
                    let at = self.at(1);
                    let effect = self.machine.page(&at, None);
                    self.effect(effect, options.resource_version);
                }
                Request::Watch(options) => {
                    self.machine.opened(self.now);
                    self.open = true;
                    let seen = if options.send_initial_events {
                        Seen::Bookmark { initial_events_end: true }
                    } else {
                        Seen::Changed
                    };
                    let at = self.at(1);
                    let effect = self.machine.seen(self.now, seen, &at);
                    let done = effect == Effect::Apply;
                    self.effect(effect, options.resource_version);
                    if done {
                        assert!(self.now <= began + RETRY_AFTER_MAX + secs(200));
                        return;
                    }
                }
            }
        }
        panic!("not watching after twenty steps: {:?}", self.machine);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_inputs_keep_versions_and_converge(
        streaming: bool,
        seed: u64,
        world in proptest::collection::vec(happens(), 0..120),
    ) {
        let mut state = World::new(streaming, seed);
        for happens in &world {
            state.step(happens);
        }
        state.heal();
    }

    #[test]
    fn l3_a_failing_server_gets_a_request_per_15_s_at_most(
        streaming: bool,
        seed: u64,
        faults in proptest::collection::vec(3..13_u8, 200),
    ) {
        let mut machine = machine(streaming, seed);
        let (mut now, mut requests) = (ZERO, 0);
        for number in faults {
            match machine.request() {
                Request::Wait { until } => {
                    now = until;
                    machine.waited(now);
                }
                Request::List(_) | Request::Watch(_) => {
                    requests += 1;
                    machine.failed(now, &fault(number));
                }
            }
        }
        // The first few come quickly.
        prop_assert!(now >= secs(15) * (requests - 8), "{requests} requests in {now:?}");
    }
}

use k8s_openapi::api::core::v1::ObjectReference;

use super::super::bucket::BURST;
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

struct Scene {
    correlator: Correlator,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        Self { correlator: Correlator::default(), now: Instant::now() }
    }

    fn observe(&mut self, object: &str, reason: &str, note: &str) -> Verdict {
        self.observe_at_version(object, reason, note, "1").0
    }

    fn observe_at_version(
        &mut self,
        object: &str,
        reason: &str,
        note: &str,
        version: &str,
    ) -> (Verdict, Option<Write>) {
        let reference = ObjectReference {
            kind: Some("Pod".to_owned()),
            name: Some(object.to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectReference::default()
        };
        let mut new =
            Occurrence::new(reference, None, EventType::Normal, (reason, "Act"), note).unwrap();
        new.at = self.now;
        let source = Source { controller: "c".to_owned(), instance: "i".to_owned() };
        self.correlator.observe(&new, &source)
    }

    /// Lets time pass, and returns what is written in it: the name of the event and its count.
    fn pass(&mut self, time: Duration) -> Vec<(String, u64)> {
        let end = self.now + time;
        let mut written = vec![];
        while let Some(due) = self.correlator.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            written.extend(self.correlator.due(self.now).iter().map(short));
        }
        self.now = end;
        written
    }
}

fn short(write: &Write) -> (String, u64) {
    let event = write.event();
    let name = event["regarding"]["name"].as_str().unwrap();
    (name.to_owned(), event["series"]["count"].as_u64().unwrap_or(1))
}

fn written(verdict: &Verdict) -> Option<(String, u64)> {
    match verdict {
        Verdict::Write(write) => Some(short(write)),
        _ => None,
    }
}

fn series(count: u64) -> Vec<(String, u64)> {
    vec![("a".to_owned(), count)]
}

#[test]
fn ev2_repetitions_become_a_series() {
    let mut scene = Scene::new();
    let first = scene.observe("a", "Up", "hello");
    assert!(matches!(&first, Verdict::Write(Write::Create(_))));
    let second = scene.observe("a", "Up", "hello");
    assert!(matches!(&second, Verdict::Write(Write::Series(_))));
    let (Verdict::Write(first), Verdict::Write(second)) = (&first, &second) else { panic!() };
    assert_eq!(first.event()["metadata"], second.event()["metadata"]);
    assert_eq!(short(second).1, 2);
    assert_eq!(scene.observe("a", "Up", "hello"), Verdict::Counted);
    // Three and more are written when the series is over.
    assert_eq!(scene.pass(5 * MINUTE), []);
    assert_eq!(scene.pass(MINUTE), series(3));
    assert_eq!(scene.pass(60 * MINUTE), []);
    assert_eq!(scene.correlator.next_due(), None, "and it is forgotten");
}

#[test]
fn ev3_a_series_ends_after_six_quiet_minutes() {
    let mut scene = Scene::new();
    scene.observe("a", "Up", "hello");
    scene.now += Duration::from_millis(359_999);
    assert_eq!(written(&scene.observe("a", "Up", "hello")).unwrap().1, 2);
    // From the last one, not from the first.
    scene.now += Duration::from_millis(359_999);
    assert_eq!(scene.observe("a", "Up", "hello"), Verdict::Counted);
    scene.now += SERIES_QUIET_MAX;
    assert!(matches!(scene.observe("a", "Up", "hello"), Verdict::Write(Write::Create(_))));
}

#[test]
fn ev4_a_long_series_is_written_every_thirty_minutes() {
    let mut scene = Scene::new();
    scene.observe("a", "Up", "hello");
    scene.observe("a", "Up", "hello");
    let mut seen = vec![];
    for _ in 0..65 {
        seen.extend(scene.pass(MINUTE));
        scene.observe("a", "Up", "hello");
    }
    let counts: Vec<u64> = seen.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [31, 61]);
    assert_eq!(scene.pass(SERIES_QUIET_MAX), series(67));
}

#[test]
fn ev5_the_version_of_the_object_does_not_matter() {
    let mut scene = Scene::new();
    scene.observe_at_version("a", "Up", "hello", "1");
    let again = scene.observe_at_version("a", "Up", "hello", "2").0;
    assert!(matches!(&again, Verdict::Write(Write::Series(_))));
    // Anything else does.
    assert!(matches!(scene.observe("b", "Up", "hello"), Verdict::Write(Write::Create(_))));
    assert!(matches!(scene.observe("a", "Down", "hello"), Verdict::Write(Write::Create(_))));
    assert!(matches!(scene.observe("a", "Up", "bye"), Verdict::Write(Write::Create(_))));
}

#[test]
fn ev6_similar_events_are_combined_from_the_tenth_on() {
    let mut scene = Scene::new();
    for nth in 1..SIMILAR_MAX {
        let Verdict::Write(write) = scene.observe("a", "Up", &nth.to_string()) else { panic!() };
        assert_eq!(write.event()["note"], nth.to_string());
    }
    let Verdict::Write(tenth) = scene.observe("a", "Up", "10") else { panic!() };
    assert_eq!(tenth.event()["note"], "(combined from similar events): 10");
    let Verdict::Write(Write::Series(next)) = scene.observe("a", "Up", "11") else { panic!() };
    assert_eq!(next["metadata"], tenth.event()["metadata"]);
    // Those that have an event of their own go on with it.
    let Verdict::Write(Write::Series(own)) = scene.observe("a", "Up", "3") else { panic!() };
    assert_eq!(own["note"], "3");
    // Other reasons have nothing to do with it, and it ends.
    let Verdict::Write(other) = scene.observe("a", "Down", "12") else { panic!() };
    assert_eq!(other.event()["note"], "12");
    scene.pass(SIMILAR_WITHIN + Duration::from_secs(1));
    let Verdict::Write(later) = scene.observe("a", "Up", "13") else { panic!() };
    assert_eq!(later.event()["note"], "13");
}

#[test]
fn ev7_events_about_an_object_are_limited() {
    let mut scene = Scene::new();
    let reasons: Vec<String> = (0..=BURST + 1).map(|nth| format!("R{nth}")).collect();
    for reason in &reasons[..BURST as usize] {
        assert!(written(&scene.observe("a", reason, "")).is_some(), "{reason}");
    }
    assert_eq!(scene.observe("a", &reasons[25], ""), Verdict::Limited);
    // Repetitions of what was written cost nothing, and other objects have limits of their own.
    assert!(written(&scene.observe("a", &reasons[0], "")).is_some());
    assert!(written(&scene.observe("b", "Up", "")).is_some());
    scene.now += Duration::from_secs(299);
    assert_eq!(scene.observe("a", &reasons[25], ""), Verdict::Limited);
    scene.now += Duration::from_secs(1);
    assert!(written(&scene.observe("a", &reasons[25], "")).is_some());
    assert_eq!(scene.observe("a", &reasons[26], ""), Verdict::Limited);
}

#[test]
fn ev9_what_is_remembered_is_bounded_and_no_count_is_lost() {
    let mut scene = Scene::new();
    for _ in 0..3 {
        scene.observe("a", "Up", "");
    }
    let mut forgotten = vec![];
    for nth in 0..2 * REMEMBERED_MAX {
        scene.now += Duration::from_millis(1);
        let (_, write) = scene.observe_at_version(&format!("o{nth}"), "Up", "", "1");
        forgotten.extend(write.as_ref().map(short));
    }
    assert_eq!(forgotten, series(3));
    let Correlator { events, similar, buckets, .. } = &scene.correlator;
    assert_eq!([events.len(), similar.len(), buckets.len()], [REMEMBERED_MAX; 3]);
}

#[test]
fn events_of_one_moment_have_different_names() {
    let mut scene = Scene::new();
    let mut names = std::collections::BTreeSet::new();
    for nth in 0..20 {
        let Verdict::Write(write) = scene.observe("a", &format!("R{nth}"), "") else { panic!() };
        names.insert(write.event()["metadata"]["name"].to_string());
    }
    assert_eq!(names.len(), 20);
}

#[test]
fn ev12_every_count_that_was_not_written_can_be_asked_for() {
    let mut scene = Scene::new();
    for _ in 0..4 {
        scene.observe("a", "Up", "");
    }
    let asked = scene.correlator.unwritten(scene.now);
    assert_eq!(asked.iter().map(short).collect::<Vec<_>>(), series(4));
    assert_eq!(scene.correlator.unwritten(scene.now), []);
    assert_eq!(scene.pass(SERIES_QUIET_MAX), []);
}

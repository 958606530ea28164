use super::*;

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn condition(type_: &str, status: &str, second: u8) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: "Because".to_owned(),
        message: "so".to_owned(),
        observed_generation: None,
        last_transition_time: at(&format!("2026-03-01T12:00:{second:02}Z")).into(),
    }
}

fn seconds(conditions: &Conditions) -> Vec<(String, i8)> {
    let list: Vec<Condition> = conditions.into();
    let second = |time: Timestamp| time.to_zoned(jiff::tz::TimeZone::UTC).second();
    list.into_iter().map(|one| (one.type_, second(one.last_transition_time.0))).collect()
}

#[test]
fn transition_time_changes_only_with_the_status() {
    let mut conditions = Conditions::default();
    assert!(conditions.set_condition(condition("Ready", "False", 1)));
    assert!(!conditions.set_condition(condition("Ready", "False", 2)));
    let other_words = Condition { message: "new".to_owned(), ..condition("Ready", "False", 3) };
    assert!(conditions.set_condition(other_words));
    assert_eq!(seconds(&conditions), [("Ready".to_owned(), 1)]);
    assert_eq!(conditions.get("Ready").unwrap().message, "new");
    assert!(conditions.set_condition(condition("Ready", "True", 4)));
    assert_eq!(seconds(&conditions), [("Ready".to_owned(), 4)]);
    assert!(conditions.set_condition(condition("Ready", "Unknown", 5)));
    assert_eq!(seconds(&conditions), [("Ready".to_owned(), 5)]);
}

#[test]
fn set_uses_the_time_of_the_call() {
    let before = Timestamp::now().as_second();
    let mut conditions = Conditions::default();
    assert!(conditions.set("Ready", ConditionStatus::Unknown, "Starting", ""));
    let set = conditions.get("Ready").unwrap();
    assert!(
        (before..=Timestamp::now().as_second()).contains(&set.last_transition_time.0.as_second())
    );
    assert_eq!(set.status, "Unknown");
}

#[test]
fn order_and_conditions_of_others_are_kept() {
    let list = json!([
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z",
         "lastProbeTime": "2026-03-01T12:00:09Z", "reason": "a", "message": "b"},
        "not a condition",
        {"type": "Odd", "status": 7},
        {"type": "Other", "status": "True"},
    ]);
    let mut conditions = Conditions::from_json(list.clone()).unwrap();
    assert!(conditions.set_condition(condition("New", "True", 2)));
    assert!(conditions.set_condition(condition("Ready", "False", 3)));
    let now = json!(conditions);
    assert_eq!(now[0]["lastProbeTime"], list[0]["lastProbeTime"]);
    assert_eq!(now[0]["lastTransitionTime"], "2026-03-01T12:00:03Z");
    assert_eq!((&now[1], &now[2], &now[3]), (&list[1], &list[2], &list[3]));
    assert_eq!((now[4]["type"].as_str(), now.as_array().unwrap().len()), (Some("New"), 5));
    // A condition that never had a time gets one, whatever its status was.
    assert!(conditions.set_condition(condition("Other", "True", 4)));
    assert_eq!(conditions.get("Other").unwrap(), condition("Other", "True", 4));
    assert!(conditions.get("Odd").is_none() && !conditions.is_true("Odd"));
}

#[test]
fn observed_generation_is_that_of_the_object() {
    let object: Object = Object::from_json(
        r#"{"metadata": {"name": "a", "generation": 4}, "status": {"conditions": null}}"#,
    )
    .unwrap();
    let mut conditions = Conditions::of(&object).unwrap();
    assert!(conditions.set_condition(condition("Ready", "True", 1)));
    assert_eq!(conditions.get("Ready").unwrap().observed_generation, Some(4));
    let own = Condition { observed_generation: Some(3), ..condition("Ready", "True", 1) };
    assert!(conditions.set_condition(own));
    assert_eq!(conditions.get("Ready").unwrap().observed_generation, Some(3));
    // A newer generation alone is a change, but not a transition.
    assert!(conditions.set_condition(condition("Ready", "True", 9)));
    assert_eq!(seconds(&conditions), [("Ready".to_owned(), 1)]);
}

#[test]
fn conditions_that_are_no_list_are_an_error() {
    let object: Object =
        Object::from_json(r#"{"metadata": {"name": "a"}, "status": {"conditions": "up"}}"#)
            .unwrap();
    assert!(Conditions::of(&object).unwrap_err().is_decode());
}

#[test]
fn long_messages_are_cut_between_characters() {
    let mut conditions = Conditions::default();
    conditions.set("Ready", false, "Failed", &"ü".repeat(MESSAGE_BYTES_MAX));
    assert_eq!(conditions.get("Ready").unwrap().message.len(), MESSAGE_BYTES_MAX);
    conditions.set("Ready", false, "Failed", &format!("a{}", "ü".repeat(MESSAGE_BYTES_MAX)));
    assert_eq!(conditions.get("Ready").unwrap().message.len(), MESSAGE_BYTES_MAX - 1);
}

#[test]
fn typed_lists_are_the_same_there_and_back() {
    let list = vec![condition("A", "True", 1), condition("B", "False", 2)];
    assert_eq!(Vec::from(&Conditions::from(list.clone())), list);
}

//! Conditions of a pod.

use serde_json::{Value, json};

use crate::object::Object;
use crate::print::read::{items, text};

/// A condition of a pod.
#[derive(Debug, Clone, Default)]
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) met: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Condition {
    pub(super) fn met(kind: &'static str) -> Self {
        Self { kind, met: true, ..Self::default() }
    }

    pub(super) fn unmet(kind: &'static str, reason: &'static str, message: String) -> Self {
        Self { kind, met: false, reason, message }
    }

    /// Returns the condition as JSON. The time of the last transition changes only if the status
    /// does.
    fn to_json(&self, old: Option<&Value>, generation: &Value, now: &str) -> Value {
        let status = if self.met { "True" } else { "False" };
        let since = old
            .filter(|old| text(&old["status"]) == status)
            .map_or(json!(now), |old| old["lastTransitionTime"].clone());
        let mut condition = json!({
            "type": self.kind, "status": status, "lastProbeTime": null,
            "lastTransitionTime": since,
        });
        for (field, value) in [("reason", self.reason), ("message", &self.message)] {
            if !value.is_empty() {
                condition[field] = value.into();
            }
        }
        if generation.is_i64() {
            condition["observedGeneration"] = generation.clone();
        }
        condition
    }
}

/// Replaces the conditions of the same types in a status. Others are retained, and come first.
pub(super) fn put(status: &mut Object, new: &[Condition], generation: &Value, now: &str) {
    let old = items(status.get("conditions").unwrap_or(&Value::Null));
    let find = |kind: &str| old.iter().find(|condition| text(&condition["type"]) == kind);
    let is_new = |old: &&Value| new.iter().any(|new| new.kind == text(&old["type"]));
    let kept = old.iter().filter(|old| !is_new(old)).cloned();
    let put = new.iter().map(|condition| condition.to_json(find(condition.kind), generation, now));
    let conditions: Vec<Value> = kept.chain(put).collect();
    status.insert("conditions".to_owned(), conditions.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_remembers_since_when_it_holds() {
        let mut status = Object::new();
        let read = |status: &Object, at: usize| status["conditions"][at].clone();
        put(&mut status, &[Condition::met("A"), Condition::met("B")], &json!(1), "t1");
        put(&mut status, &[Condition::met("A")], &json!(2), "t2");
        assert_eq!(read(&status, 0)["type"], "B");
        assert_eq!(read(&status, 1)["lastTransitionTime"], "t1");
        assert_eq!(read(&status, 1)["observedGeneration"], 2);
        let unmet = Condition::unmet("A", "Why", "because".to_owned());
        put(&mut status, &[unmet], &Value::Null, "t3");
        assert_eq!(
            read(&status, 1),
            json!({
                "type": "A", "status": "False", "reason": "Why", "message": "because",
                "lastProbeTime": null, "lastTransitionTime": "t3",
            })
        );
    }
}

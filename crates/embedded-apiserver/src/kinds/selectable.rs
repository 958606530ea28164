//! The values that field selectors compare with, where they differ from the field of that name.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Resource, events};

impl Resource {
    /// Returns whether objects can be selected by this field.
    pub(crate) fn is_selectable(&self, selector: &str) -> bool {
        match selector {
            "metadata.name" => true,
            // For built-in kinds without their own selectors, Kubernetes accepts it without effect.
            "metadata.namespace" => self.namespaced || (!self.custom && self.selectable.is_empty()),
            selector => self.selectable.iter().any(|field| field == selector),
        }
    }

    /// Returns the text that a field selector compares with. `object` is in its stored form.
    ///
    /// An absent field compares as its type's zero value, because Kubernetes selects on decoded
    /// objects, in which no field is absent.
    pub(crate) fn selected_text<'a>(
        &self,
        object: &'a Map<String, Value>,
        selector: &str,
    ) -> Cow<'a, str> {
        let found = field_text(object, self.stored_path(selector));
        match found.filter(|text| !(text.is_empty() && self.is_event_source(selector))) {
            Some(text) => text,
            None if self.is_event_source(selector) => text_at(object, "reportingComponent"),
            None => Cow::Borrowed(self.absent(selector)),
        }
    }

    /// Returns the name of this resource's selector in the stored resource.
    pub(crate) fn stored_name<'a>(&self, selector: &'a str) -> &'a str {
        match &*self.group {
            events::GROUP => events::core_field(selector).unwrap_or(selector),
            _ => selector,
        }
    }

    fn stored_path<'a>(&self, selector: &'a str) -> &'a str {
        match (&*self.group, &*self.plural, selector) {
            (events::GROUP, "events", selector) => events::core_field(selector).unwrap_or(selector),
            ("", "events", "source") => "source.component",
            ("batch", "jobs", "status.successful") => "status.succeeded",
            (_, _, selector) => selector,
        }
    }

    fn is_event_source(&self, selector: &str) -> bool {
        self.group.is_empty() && self.plural == "events" && selector == "source"
    }

    fn absent(&self, selector: &str) -> &'static str {
        match selector {
            _ if self.custom => "",
            "spec.unschedulable" | "spec.hostNetwork" => "false",
            "status.replicas" | "status.successful" => "0",
            _ => "",
        }
    }
}

/// Returns the text that a field compares as, or `None` if it is absent or not a string, number or
/// boolean.
pub(crate) fn field_text<'a>(object: &'a Map<String, Value>, path: &str) -> Option<Cow<'a, str>> {
    match at(object, path)? {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(flag) => Some(Cow::Borrowed(if *flag { "true" } else { "false" })),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

fn text_at<'a>(object: &'a Map<String, Value>, path: &str) -> Cow<'a, str> {
    Cow::Borrowed(at(object, path).and_then(Value::as_str).unwrap_or_default())
}

fn at<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let first = object.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::builtin::builtin;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("an object") };
        map
    }

    fn resource(group: &str, plural: &str) -> Resource {
        let mut all = builtin().into_iter();
        all.find(|r| r.group == group && r.plural == plural).expect("built in")
    }

    #[test]
    fn absent_fields_compare_as_zero_values() {
        let empty = Map::new();
        assert_eq!(resource("", "nodes").selected_text(&empty, "spec.unschedulable"), "false");
        assert_eq!(resource("", "pods").selected_text(&empty, "spec.nodeName"), "");
        assert_eq!(resource("batch", "jobs").selected_text(&empty, "status.successful"), "0");
    }

    #[test]
    fn a_job_is_selected_by_its_succeeded_pods() {
        let job = map(json!({"status": {"succeeded": 3}}));
        assert_eq!(resource("batch", "jobs").selected_text(&job, "status.successful"), "3");
    }

    #[test]
    fn the_source_of_an_event_is_its_component_or_else_who_reports_it() {
        let events = resource("", "events");
        let by = |event: Value| events.selected_text(&map(event), "source").into_owned();
        assert_eq!(by(json!({"source": {"component": "a"}, "reportingComponent": "b"})), "a");
        assert_eq!(by(json!({"source": {"component": ""}, "reportingComponent": "b"})), "b");
        assert_eq!(by(json!({"reportingComponent": "b"})), "b");
    }

    #[test]
    fn events_of_both_groups_are_selected_by_the_stored_object() {
        let event = map(json!({"involvedObject": {"name": "a"}}));
        assert_eq!(resource("", "events").selected_text(&event, "involvedObject.name"), "a");
        let new = resource("events.k8s.io", "events");
        assert_eq!(new.selected_text(&event, "regarding.name"), "a");
        assert!(!new.is_selectable("involvedObject.name"));
    }

    #[test]
    fn resources_of_the_cluster_with_selectors_of_their_own_have_none_for_a_namespace() {
        assert!(resource("", "pods").is_selectable("metadata.namespace"));
        assert!(!resource("", "nodes").is_selectable("metadata.namespace"));
        assert!(resource("storage.k8s.io", "storageclasses").is_selectable("metadata.namespace"));
    }
}

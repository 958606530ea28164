//! The status of an object: its conditions, and writing it only if it differs.

mod differs;

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::shown::beginning;
use crate::wire::{Api, Endpoint, Patch};
use crate::{Error, Kind, Object, Result};

use differs::differs;

/// The limit for messages in the schema of a condition, in bytes. A message is often the text of an error, and
/// a status that is rejected because of its length would say nothing at all.
const MESSAGE_BYTES_MAX: usize = 32 << 10;

/// The conditions of a status, in order.
///
/// [`set`](Self::set) follows Kubernetes' rules: `lastTransitionTime` changes only when the status does, there
/// is one condition of each type, and new ones are appended. Conditions of other writers and fields that are
/// not part of `metav1.Condition` are preserved.
///
/// It serializes as a list, and converts from and into a `Vec<Condition>`.
///
/// ```
/// use kube_informer::{Conditions, Object};
/// use serde_json::json;
///
/// let widget: Object = Object::from_json(
///     r#"{"metadata": {"name": "a", "generation": 3}, "status": {"conditions": [
///         {"type": "Ready", "status": "False", "reason": "Starting", "message": "",
///          "observedGeneration": 2, "lastTransitionTime": "2026-03-01T12:00:00Z"}]}}"#,
/// )?;
/// let mut conditions = Conditions::of(&widget)?;
/// assert!(conditions.set("Ready", false, "Waiting", "0 of 3 are up"));
/// let ready = conditions.get("Ready").unwrap();
/// assert_eq!(ready.observed_generation, Some(3));
/// assert_eq!(ready.last_transition_time.0, "2026-03-01T12:00:00Z".parse().unwrap());
///
/// assert!(!conditions.set("Ready", false, "Waiting", "0 of 3 are up"), "nothing is new");
/// assert!(conditions.set("Ready", true, "Running", "3 of 3 are up"));
/// assert!(conditions.is_true("Ready"));
/// let status = json!({"observedGeneration": 3, "conditions": conditions});
/// assert_eq!(status["conditions"][0]["reason"], "Running");
/// # Ok::<(), kube_informer::Error>(())
/// ```
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
#[serde(transparent)]
pub struct Conditions {
    list: Vec<Value>,
    #[serde(skip)]
    generation: Option<i64>,
}

/// The status of a condition. `true` and `false` convert.
///
/// ```
/// use kube_informer::ConditionStatus;
///
/// assert_eq!(ConditionStatus::from(true).as_str(), "True");
/// assert_eq!(ConditionStatus::Unknown.to_string(), "Unknown");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is not known whether the condition holds.
    Unknown,
}

impl ConditionStatus {
    /// Returns the status as the API writes it: `True`, `False` or `Unknown`.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(is: bool) -> Self {
        if is { ConditionStatus::True } else { ConditionStatus::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Conditions {
    /// Reads `status.conditions` of an object, which may be absent. Conditions that are set afterwards have the
    /// object's generation as their `observedGeneration`.
    ///
    /// # Errors
    ///
    /// If the field is not a list.
    pub fn of<K>(object: &Object<K>) -> Result<Self> {
        let list = object.field("status.conditions")?.unwrap_or_default();
        Ok(Self { list, generation: object.generation() })
    }

    /// Reads a JSON list of conditions; null is an empty list.
    ///
    /// ```
    /// use kube_informer::Conditions;
    /// use serde_json::json;
    ///
    /// let conditions = Conditions::from_json(json!([{"type": "Ready", "status": "True"}]))?;
    /// assert!(conditions.is_true("Ready"));
    /// assert!(Conditions::from_json(json!({"Ready": true})).unwrap_err().is_invalid());
    /// # Ok::<(), kube_informer::Error>(())
    /// ```
    pub fn from_json(list: Value) -> Result<Self> {
        match list {
            Value::Array(list) => Ok(Self { list, generation: None }),
            Value::Null => Ok(Self::default()),
            _ => Err(Error::invalid("conditions must be a list of objects")),
        }
    }

    /// Uses `generation` as the `observedGeneration` of conditions that are set from now on.
    ///
    /// ```
    /// use kube_informer::Conditions;
    ///
    /// let mut conditions = Conditions::default().observed_generation(Some(5));
    /// conditions.set("Ready", true, "Running", "");
    /// assert_eq!(conditions.get("Ready").unwrap().observed_generation, Some(5));
    /// ```
    pub fn observed_generation(self, generation: Option<i64>) -> Self {
        Self { generation, ..self }
    }

    /// Sets a condition as of now, and returns whether that changed anything.
    ///
    /// The reason is a word in `CamelCase` and must not be empty: schemas of custom resources reject anything
    /// else. A message of more than 32 KiB is truncated.
    pub fn set(
        &mut self,
        type_: &str,
        status: impl Into<ConditionStatus>,
        reason: &str,
        message: &str,
    ) -> bool {
        self.set_condition(Condition {
            type_: type_.to_owned(),
            status: status.into().to_string(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: None,
            last_transition_time: Timestamp::now().into(),
        })
    }

    /// Sets a condition, and returns whether that changed anything. Its `last_transition_time` is used only if
    /// the status changes; without an `observed_generation`, the object's generation is used.
    ///
    /// ```
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    /// use k8s_openapi::jiff::Timestamp;
    /// use kube_informer::Conditions;
    ///
    /// let mut conditions = Conditions::default();
    /// let ready = Condition {
    ///     type_: "Ready".to_owned(),
    ///     status: "True".to_owned(),
    ///     reason: "Running".to_owned(),
    ///     message: String::new(),
    ///     observed_generation: None,
    ///     last_transition_time: Timestamp::UNIX_EPOCH.into(),
    /// };
    /// assert!(conditions.set_condition(ready.clone()));
    /// assert!(!conditions.set_condition(Condition { last_transition_time: Timestamp::now().into(), ..ready }));
    /// ```
    pub fn set_condition(&mut self, condition: Condition) -> bool {
        let mut fields = Map::new();
        fields.insert("status".to_owned(), condition.status.into());
        fields.insert("reason".to_owned(), condition.reason.into());
        fields
            .insert("message".to_owned(), beginning(&condition.message, MESSAGE_BYTES_MAX).into());
        if let Some(generation) = condition.observed_generation.or(self.generation) {
            fields.insert("observedGeneration".to_owned(), generation.into());
        }
        let time = json!(condition.last_transition_time);
        let Some(known) = self.find_mut(&condition.type_) else {
            fields.insert("type".to_owned(), condition.type_.into());
            fields.insert("lastTransitionTime".to_owned(), time);
            self.list.push(fields.into());
            return true;
        };
        if known.get("status") != fields.get("status")
            || known.get("lastTransitionTime").is_none_or(Value::is_null)
        {
            fields.insert("lastTransitionTime".to_owned(), time);
        }
        let changed = fields.iter().any(|(name, value)| known.get(name) != Some(value));
        known.extend(fields);
        changed
    }

    /// Removes the conditions of a type, and returns whether there were any.
    ///
    /// ```
    /// use kube_informer::Conditions;
    ///
    /// let mut conditions = Conditions::default();
    /// conditions.set("Stalled", true, "NoQuota", "");
    /// assert!(conditions.remove("Stalled"));
    /// assert!(!conditions.remove("Stalled"));
    /// ```
    pub fn remove(&mut self, type_: &str) -> bool {
        let before = self.list.len();
        self.list.retain(|condition| condition["type"] != type_);
        self.list.len() < before
    }

    /// Returns the condition of a type; `None` if there is none, or if it is not a
    /// `metav1.Condition`.
    pub fn get(&self, type_: &str) -> Option<Condition> {
        typed(self.list.iter().find(|condition| condition["type"] == type_)?)
    }

    /// Returns whether there is a condition of this type with the status `True`.
    pub fn is_true(&self, type_: &str) -> bool {
        self.list
            .iter()
            .any(|condition| condition["type"] == type_ && condition["status"] == "True")
    }

    /// Returns the conditions as JSON, in order.
    pub fn as_json(&self) -> &[Value] {
        &self.list
    }

    fn find_mut(&mut self, type_: &str) -> Option<&mut Map<String, Value>> {
        let found = self.list.iter_mut().find(|condition| condition["type"] == type_);
        found.and_then(Value::as_object_mut)
    }
}

impl From<Vec<Condition>> for Conditions {
    fn from(list: Vec<Condition>) -> Self {
        Self {
            list: list.into_iter().map(|condition| json!(condition)).collect(),
            generation: None,
        }
    }
}

/// Skips entries that are not `metav1.Condition`s.
impl From<&Conditions> for Vec<Condition> {
    fn from(conditions: &Conditions) -> Self {
        conditions.list.iter().filter_map(typed).collect()
    }
}

fn typed(condition: &Value) -> Option<Condition> {
    serde_json::from_value(condition.clone()).ok()
}

/// Writes the status of an object, if it differs from that of the cached object.
///
/// `status` is a JSON merge patch of `/status`: members that it does not name stay the same, null removes a
/// member, and lists are replaced as a whole. Returns the object as the server has it now, whose
/// [`resource_version`](Object::resource_version) is the version to wait for to read your own write; `None` if
/// nothing had to be written.
///
/// The patch names the version of the cached object: if the object has changed since, nothing is written. A
/// status that was computed from an old state, with an old list of conditions, therefore never replaces a newer
/// one. To write twice in one reconcile, pass the object that the first call returned.
///
/// The `api` may cover all namespaces.
///
/// # Errors
///
/// - [`is_conflict`](Error::is_conflict): the object has changed. Retry once the cache has the newer state.
/// - [`is_not_found`](Error::is_not_found): the object is gone, or its resource has no status subresource.
/// - [`is_invalid`](Error::is_invalid): the `api` is for another resource.
/// - Any other error of a request.
///
/// # Examples
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::Api;
/// use kube_informer::{Conditions, Object, patch_status};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube_informer::Error> {
/// # let server = embedded_apiserver::ApiServer::start();
/// # let pod = server.create(json!({"apiVersion": "v1", "kind": "Pod",
/// #     "metadata": {"name": "web-0", "namespace": "default"},
/// #     "spec": {"containers": [{"name": "web", "image": "web:1"}]}})).unwrap();
/// # let pod: Object<Pod> = Object::from_json(pod.to_string())?;
/// let api: Api<Pod> = Api::all(server.client());
/// let mut conditions = Conditions::of(&pod)?;
/// conditions.set("example.com/Registered", true, "Registered", "");
/// let written = patch_status(&api, &pod, json!({"conditions": conditions})).await?.unwrap();
///
/// // The second time nothing is different, and nothing is sent.
/// assert!(patch_status(&api, &written, json!({"conditions": conditions})).await?.is_none());
/// # Ok(())
/// # }
/// ```
pub async fn patch_status<K: Kind + Clone>(
    api: &Api<K>,
    object: &Object<K>,
    status: Value,
) -> Result<Option<Object<K>>> {
    let endpoint = Endpoint::of(api, object)?;
    if !differs(object.field("status")?.as_ref(), &status) {
        return Ok(None);
    }
    let mut patch = json!({"status": status});
    if !object.resource_version().is_empty() {
        patch["metadata"] = json!({"resourceVersion": object.resource_version().as_str()});
    }
    let written = endpoint.patch(object.name(), &Patch::Status(patch)).await;
    match written {
        Ok(written) => Ok(Some(written.cast())),
        Err(error) => {
            Err(error.within(format!("the status of {} cannot be written", object.key())))
        }
    }
}

#[cfg(test)]
mod tests;

//! The tables: which messages there are, and of which fields they consist.

use std::fmt;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// Finds the message of a kind.
///
/// Kubernetes' options, `Status` and the documents of discovery are the same in every group and version.
///
/// ```
/// let pod = kube_schema::message("v1", "Pod").unwrap();
/// let spec = pod.field_named("spec").unwrap();
/// let kube_schema::Type::Message(spec) = spec.kind() else { panic!() };
/// assert_eq!(spec.to_string(), "core/v1.PodSpec");
/// assert_eq!(spec.field_named("nodeName").unwrap().number(), 10);
///
/// assert!(kube_schema::message("example.com/v1", "Widget").is_none());
/// ```
pub fn message(api_version: &str, kind: &str) -> Option<Message> {
    let find = |api_version: &str| {
        let wanted = (api_version, kind);
        let found =
            KINDS.binary_search_by(|row| (row.api_version.text(), row.kind.text()).cmp(&wanted));
        found.ok().map(|at| Message(KINDS[at].message))
    };
    find(api_version).or_else(|| is_everywhere(kind).then(|| find(META)).flatten())
}

/// Iterates over the kinds: apiVersion, kind, message.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str, Message)> {
    KINDS.iter().map(|row| (row.api_version.text(), row.kind.text(), Message(row.message)))
}

/// Where the file has the kinds that are in every group and version.
const META: &str = "meta.k8s.io/v1";

fn is_everywhere(kind: &str) -> bool {
    matches!(
        kind,
        "Status"
            | "APIGroup"
            | "APIGroupList"
            | "APIResourceList"
            | "APIVersions"
            | "CreateOptions"
            | "DeleteOptions"
            | "GetOptions"
            | "ListOptions"
            | "PatchOptions"
            | "UpdateOptions"
    )
}

/// A type of Kubernetes as protobuf has it: a cheap handle on its row in the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Message(u16);

impl Message {
    /// The name without the package: `PodSpec`.
    pub fn name(self) -> &'static str {
        self.row().name.text()
    }

    /// The package: `core/v1`.
    pub fn package(self) -> &'static str {
        self.row().package.text()
    }

    /// The fields in the order of their numbers. Messages of most special forms have none.
    pub fn fields(self) -> &'static [Field] {
        let row = self.row();
        let first = usize::from(row.first);
        &FIELDS[first..first + usize::from(row.count)]
    }

    /// The field of a number.
    pub fn field(self, number: u32) -> Option<&'static Field> {
        self.position(number).map(|at| &self.fields()[at])
    }

    /// The field that an object has under a name in JSON, those of inlined messages included.
    pub fn field_named(self, name: &str) -> Option<&'static Field> {
        self.fields().iter().find_map(|field| match field.kind {
            Type::Message(inlined) if field.inline => inlined.field_named(name),
            _ => (field.name() == name).then_some(field),
        })
    }

    /// Its form in JSON.
    pub fn form(self) -> Form {
        self.row().form
    }

    /// Returns whether server-side apply replaces it as a whole, and never merges it: `structType` in Go.
    pub fn is_atomic(self) -> bool {
        self.row().atomic
    }

    /// Where a field is in `fields`.
    pub(crate) fn position(self, number: u32) -> Option<usize> {
        let fields = self.fields();
        // Most messages have their fields numbered without gaps.
        let near = (number as usize).checked_sub(1)?;
        if fields.get(near).is_some_and(|field| field.number() == number) {
            return Some(near);
        }
        fields.binary_search_by_key(&number, Field::number).ok()
    }

    fn row(self) -> &'static MessageRow {
        &MESSAGES[usize::from(self.0)]
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.package(), self.name())
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({self})")
    }
}

/// A field of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field {
    name: Name,
    number: u16,
    kind: Type,
    shape: Shape,
    omits_zero: bool,
    inline: bool,
    strategy: PatchStrategy,
    merge_key: Name,
    merge: Merge,
    /// The keys of [`Merge::Map`], separated by commas, or the text of [`Merge::Default`].
    detail: Name,
}

impl Field {
    /// The name in JSON. That of an inlined message is its name in protobuf.
    pub fn name(&self) -> &'static str {
        self.name.text()
    }

    /// The number in protobuf.
    pub fn number(&self) -> u32 {
        self.number.into()
    }

    /// The type, of lists that of an item, of maps that of a value. Keys are strings.
    pub fn kind(&self) -> Type {
        self.kind
    }

    /// How many values it has.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether Go's JSON leaves it out where it is zero: `omitempty`. Without it, JSON has `""`, `0` and `false`.
    pub fn omits_zero(&self) -> bool {
        self.omits_zero
    }

    /// Whether the message's fields are in JSON fields of the object around it.
    pub fn is_inline(&self) -> bool {
        self.inline
    }

    /// Returns how a strategic merge patch treats the field: `patchStrategy` in Go.
    pub fn patch_strategy(&self) -> PatchStrategy {
        self.strategy
    }

    /// Returns the field by which a strategic merge patch tells the items of a list apart: `patchMergeKey` in Go.
    ///
    /// ```
    /// use kube_schema::{PatchStrategy, Type};
    ///
    /// let service = kube_schema::message("v1", "Service").unwrap();
    /// let Type::Message(spec) = service.field_named("spec").unwrap().kind() else { panic!() };
    /// let ports = spec.field_named("ports").unwrap();
    /// assert_eq!((ports.patch_strategy(), ports.merge_key()), (PatchStrategy::Merge, Some("port")));
    /// ```
    pub fn merge_key(&self) -> Option<&'static str> {
        Some(self.merge_key.text()).filter(|key| !key.is_empty())
    }

    /// Returns how server-side apply merges a list: `listType` in Go. Without it, a list is merged as a strategic
    /// merge patch does it.
    ///
    /// ```
    /// use kube_schema::{ListType, Type};
    ///
    /// let service = kube_schema::message("v1", "Service").unwrap();
    /// let Type::Message(spec) = service.field_named("spec").unwrap().kind() else { panic!() };
    /// let ports = spec.field_named("ports").unwrap();
    /// assert_eq!(ports.list_type(), ListType::Map);
    /// assert_eq!(ports.map_keys().collect::<Vec<_>>(), ["port", "protocol"]);
    /// let Type::Message(port) = ports.kind() else { panic!() };
    /// assert_eq!(port.field_named("protocol").unwrap().key_default(), Some("TCP"));
    /// ```
    pub fn list_type(&self) -> ListType {
        match self.merge {
            Merge::Map => ListType::Map,
            Merge::Set => ListType::Set,
            Merge::Unmarked if self.strategy == PatchStrategy::Merge => match self.merge_key() {
                Some(_) => ListType::Map,
                None => ListType::Set,
            },
            _ => ListType::Atomic,
        }
    }

    /// Returns the fields by which server-side apply tells the items of a list apart.
    pub fn map_keys(&self) -> impl Iterator<Item = &'static str> + Clone {
        let keys = match self.merge {
            Merge::Map => self.detail.text(),
            _ => self.merge_key.text(),
        };
        keys.split(',').filter(|key| !key.is_empty())
    }

    /// Returns whether server-side apply replaces a map or an object as a whole: `mapType` and `structType` in Go. If it
    /// is `None`, [`Message::is_atomic`] decides about an object, and a map is merged.
    pub fn is_atomic(&self) -> Option<bool> {
        match self.merge {
            Merge::Atomic => Some(true),
            Merge::Granular => Some(false),
            _ => None,
        }
    }

    /// Returns the default of a field that is a key of a list. Items without the field are identified by it.
    pub fn key_default(&self) -> Option<&'static str> {
        (self.merge == Merge::Default).then(|| self.detail.text())
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({} {} {:?} {:?})", self.number, self.name(), self.shape, self.kind)
    }
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "protobuf's own names")]
pub enum Type {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    /// Base64 in JSON.
    Bytes,
    Message(Message),
}

/// How many values a field has, and whether it is written where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One. Go writes it also where it is zero.
    Always,
    /// One, or none: a pointer in Go.
    Optional,
    /// Any number.
    List,
    /// Any number, with keys that are strings.
    Map,
}

/// How a strategic merge patch treats a field that both the object and the patch have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Objects are merged, and lists are replaced.
    Default,
    /// Lists are merged: by [`Field::merge_key`], or as sets of scalars.
    Merge,
    /// Objects are replaced.
    Replace,
}

/// How server-side apply merges a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// It is replaced as a whole.
    Atomic,
    /// Its items are scalars, and each item has its own managers.
    Set,
    /// Its items are objects that are identified by [`Field::map_keys`].
    Map,
}

/// How server-side apply merges a field, as far as its line says so.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Merge {
    Unmarked,
    Atomic,
    Granular,
    Set,
    Map,
    /// A key of a list, which has a default.
    Default,
}

/// The form of a message in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An object of its fields, as nearly always.
    Object,
    /// An array, of its only field: `ExtraValue`, `Verbs`.
    List,
    /// A time with seconds in RFC 3339, or null.
    Time,
    /// A time with microseconds in RFC 3339, or null.
    MicroTime,
    /// A text such as `100m`.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// Any JSON, which the message carries as it is: `RawExtension`, `FieldsV1`, and the JSON of definitions. An
    /// extension may also carry another object in protobuf.
    Raw,
    /// The object of its second field, or the boolean of its first: `JSONSchemaPropsOrBool`.
    OrBool,
    /// The array of its second field, or the object of its first: `JSONSchemaPropsOrArray`, `…OrStringArray`.
    OrArray,
}

struct MessageRow {
    package: Name,
    name: Name,
    first: u16,
    count: u8,
    form: Form,
    atomic: bool,
}

struct KindRow {
    api_version: Name,
    kind: Name,
    message: u16,
}

/// A name in `NAMES`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    at: u16,
    len: u8,
}

impl Name {
    fn text(self) -> &'static str {
        let at = usize::from(self.at);
        &NAMES[at..at + usize::from(self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_compact() {
        let sizes =
            [size_of_val(&MESSAGES), size_of_val(&FIELDS), size_of_val(&KINDS), NAMES.len()];
        let total: usize = sizes.iter().sum();
        assert!(total < 200 * 1024, "{sizes:?}");
    }

    #[test]
    fn fields_are_found_by_number_and_name() {
        for (_, _, message) in kinds() {
            for field in message.fields() {
                assert_eq!(message.field(field.number()), Some(field));
                if !field.is_inline() {
                    assert_eq!(message.field_named(field.name()), Some(field));
                }
            }
        }
        let pod = message("v1", "Pod").unwrap();
        assert_eq!((pod.field(0), pod.field(9), pod.field(u32::MAX)), (None, None, None));
        assert_eq!(pod.field_named("volumeSource"), None);
    }

    #[test]
    fn inlined_fields_are_found_by_name() {
        let spec = message("v1", "PodSpec");
        assert_eq!(spec, None, "is no kind");
        let Type::Message(spec) = message("v1", "Pod").unwrap().field(2).unwrap().kind() else {
            panic!("a spec is a message")
        };
        let Type::Message(volume) = spec.field_named("volumes").unwrap().kind() else {
            panic!("a volume is a message")
        };
        assert_eq!(volume.field_named("emptyDir").unwrap().number(), 2);
        assert_eq!(volume.field_named("volumeSource"), None);
        assert!(volume.field(2).unwrap().is_inline());
    }

    #[test]
    fn fields_have_their_patch_strategies() {
        let field = |api_version, kind, path: &[&str]| {
            let mut at = message(api_version, kind).unwrap();
            let (last, parents) = path.split_last().unwrap();
            for name in parents {
                let Type::Message(inner) = at.field_named(name).unwrap().kind() else { panic!() };
                at = inner;
            }
            let field = at.field_named(last).unwrap();
            (field.patch_strategy(), field.merge_key())
        };
        let merge = |key| (PatchStrategy::Merge, key);
        assert_eq!(field("v1", "Pod", &["metadata", "finalizers"]), merge(None));
        assert_eq!(field("v1", "Pod", &["metadata", "ownerReferences"]), merge(Some("uid")));
        assert_eq!(field("v1", "Pod", &["spec", "volumes"]), merge(Some("name")));
        assert_eq!(
            field("apps/v1", "Deployment", &["spec", "template", "spec", "containers", "ports"]),
            merge(Some("containerPort"))
        );
        assert_eq!(field("v1", "Pod", &["spec", "tolerations"]), (PatchStrategy::Default, None));
        assert_eq!(
            field("policy/v1", "PodDisruptionBudget", &["spec", "selector"]),
            (PatchStrategy::Replace, None)
        );
    }

    #[test]
    fn fields_have_their_list_and_map_types() {
        let pod = message("v1", "Pod").unwrap();
        let inner = |message: Message, name| match message.field_named(name).unwrap().kind() {
            Type::Message(inner) => inner,
            other => panic!("{other:?}"),
        };
        let (meta, spec) = (inner(pod, "metadata"), inner(pod, "spec"));
        let container = inner(spec, "containers");
        let field = |message: Message, name| message.field_named(name).unwrap();
        let keys = |field: &Field| field.map_keys().collect::<Vec<_>>();
        assert_eq!(field(meta, "finalizers").list_type(), ListType::Set);
        assert_eq!(keys(field(meta, "ownerReferences")), ["uid"]);
        assert_eq!(field(spec, "tolerations").list_type(), ListType::Atomic);
        assert_eq!(keys(field(container, "ports")), ["containerPort", "protocol"]);
        assert_eq!(field(container, "args").list_type(), ListType::Atomic);
        assert_eq!(field(spec, "nodeSelector").is_atomic(), Some(true));
        assert_eq!(field(meta, "labels").is_atomic(), None);
        let deployment = message("apps/v1", "Deployment").unwrap();
        assert!(inner(inner(deployment, "spec"), "selector").is_atomic());
        assert!(!spec.is_atomic());
        let volume = inner(message("v1", "PersistentVolume").unwrap(), "spec");
        assert_eq!(field(volume, "claimRef").is_atomic(), Some(false));
    }

    #[test]
    fn options_are_kinds_of_every_group() {
        let options = message("v1", "DeleteOptions");
        assert!(options.is_some());
        assert_eq!(message("apps/v1", "DeleteOptions"), options);
        assert_eq!(message("apps/v1", "PartialObjectMetadata"), None);
        assert!(message("meta.k8s.io/v1beta1", "PartialObjectMetadata").is_some());
        // Numbered otherwise than in v1.
        let list = message("meta.k8s.io/v1beta1", "PartialObjectMetadataList").unwrap();
        assert_eq!(list.field_named("items").unwrap().number(), 1);
    }

    #[test]
    fn names_for_people() {
        let pod = message("v1", "Pod").unwrap();
        assert_eq!(format!("{pod:?}"), "Message(core/v1.Pod)");
        let metadata = pod.field(1).unwrap();
        assert_eq!(
            format!("{metadata:?}"),
            "Field(1 metadata Always Message(Message(meta/v1.ObjectMeta)))"
        );
    }
}

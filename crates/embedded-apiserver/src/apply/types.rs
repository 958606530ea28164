//! The types of values, as far as merging depends on them: which lists and maps are merged item by item, and what
//! identifies an item. Built-in types come from the tables of `kube-schema`, custom ones from the schemas of definitions.

mod custom;

use std::sync::LazyLock;

use kube_schema::{Field, Form, ListType, Message, Shape, Type as Kind};
use serde_json::Value;

pub(crate) use self::custom::Schema;
use super::Object;
use super::set::{Element, Scalar};

/// The type of a value.
#[derive(Clone, Copy)]
pub(crate) enum Type<'a> {
    /// An object of a built-in type. If `atomic` is set, it is replaced as a whole.
    Message { message: Message, atomic: bool },
    /// A list or a map in a field of a built-in type.
    Field(&'static Field),
    /// A scalar of this kind.
    Scalar(Scalars),
    /// A value that a definition describes.
    Custom(&'a Schema),
    /// The root of a custom object, whose metadata is that of every kind.
    CustomObject(&'a Schema),
    /// A value of unknown type. Maps are merged, lists are replaced.
    Deduced,
    /// A value of unknown type that is replaced as a whole.
    Untyped,
}

/// The scalars that a type allows. `null` is always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalars {
    String,
    Number,
    Boolean,
    Any,
}

/// The forms that a value of a type can have.
#[derive(Clone, Copy)]
pub(crate) struct Forms<'a> {
    pub(crate) scalar: Option<Scalars>,
    pub(crate) list: Option<List<'a>>,
    pub(crate) map: Option<Map<'a>>,
}

/// The form of a value.
#[derive(Clone, Copy)]
pub(crate) enum Shaped<'a> {
    Scalar(Scalars),
    List(List<'a>),
    Map(Map<'a>),
}

#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    pub(crate) items: Type<'a>,
    pub(crate) keys: Keys<'a>,
}

/// The identity of an item of a list.
#[derive(Clone, Copy)]
pub(crate) enum Keys<'a> {
    /// Nothing: the list is replaced as a whole.
    Atomic,
    /// The item itself, which is a scalar.
    Itself,
    /// The keys of a built-in list.
    Field(&'static Field),
    /// The keys of a list in a definition.
    Names(&'a [String]),
}

#[derive(Clone, Copy)]
pub(crate) struct Map<'a> {
    fields: Fields<'a>,
    /// The type of members that are no fields.
    others: Option<Type<'a>>,
    pub(crate) atomic: bool,
}

#[derive(Clone, Copy)]
enum Fields<'a> {
    None,
    Message(Message),
    Schema(&'a Schema),
    CustomObject(&'a Schema),
}

impl<'a> Type<'a> {
    /// Returns the type of the objects of a built-in kind.
    pub(crate) fn of_kind(message: Message) -> Self {
        Self::Message { message, atomic: false }
    }

    pub(crate) fn forms(self) -> Forms<'a> {
        match self {
            Self::Message { message, atomic } => message_forms(message, atomic),
            Self::Field(field) => field_forms(field),
            Self::Scalar(scalars) => Forms { scalar: Some(scalars), list: None, map: None },
            Self::Custom(schema) => schema.forms(),
            Self::CustomObject(schema) => {
                let map = schema
                    .forms()
                    .map
                    .map(|map| Map { fields: Fields::CustomObject(schema), ..map });
                Forms { scalar: None, list: None, map }
            }
            Self::Deduced => any_form(Self::Deduced, false),
            Self::Untyped => any_form(Self::Untyped, true),
        }
    }

    /// Returns the form of a value, if its type allows it.
    pub(crate) fn shaped(self, value: &Value) -> Option<Shaped<'a>> {
        self.forms().of(value)
    }
}

impl<'a> Forms<'a> {
    /// Returns the form of a value. `null` can have any form.
    pub(crate) fn of(self, value: &Value) -> Option<Shaped<'a>> {
        match value {
            Value::Array(_) if self.list.is_some() => self.list.map(Shaped::List),
            Value::Object(_) if self.map.is_some() => self.map.map(Shaped::Map),
            Value::String(_) | Value::Number(_) | Value::Bool(_) if self.scalar.is_some() => {
                self.scalar.map(Shaped::Scalar)
            }
            _ => self.first(),
        }
    }

    /// Returns the form of a value whose type is not allowed, or that is `null`.
    pub(crate) fn first(self) -> Option<Shaped<'a>> {
        let scalar = || self.scalar.map(Shaped::Scalar);
        self.map.map(Shaped::Map).or_else(scalar).or(self.list.map(Shaped::List))
    }

    /// Returns whether the value selects one of several forms. `null` and values of a wrong type do not.
    pub(crate) fn decides(self, value: &Value) -> Option<u8> {
        match value {
            Value::Array(_) if self.list.is_some() => Some(0),
            Value::Object(_) if self.map.is_some() => Some(1),
            Value::String(_) | Value::Number(_) | Value::Bool(_) if self.scalar.is_some() => {
                Some(2)
            }
            _ => None,
        }
    }
}

fn any_form(inner: Type<'_>, atomic: bool) -> Forms<'_> {
    Forms {
        scalar: Some(Scalars::Any),
        list: Some(List { items: Type::Untyped, keys: Keys::Atomic }),
        map: Some(Map { fields: Fields::None, others: Some(inner), atomic }),
    }
}

fn message_forms<'a>(message: Message, atomic: bool) -> Forms<'a> {
    let scalar = |scalars| Forms { scalar: Some(scalars), list: None, map: None };
    match message.form() {
        Form::Object => {
            let map = Map { fields: Fields::Message(message), others: None, atomic };
            Forms { scalar: None, list: None, map: Some(map) }
        }
        Form::List => {
            let list = List { items: Type::Scalar(Scalars::String), keys: Keys::Atomic };
            Forms { scalar: None, list: Some(list), map: None }
        }
        Form::Time | Form::MicroTime | Form::Quantity | Form::IntOrString => scalar(Scalars::Any),
        Form::Raw if message.name() == "RawExtension" => any_form(Type::Untyped, true),
        // Their schemas say nothing about these types.
        Form::OrBool | Form::OrArray | Form::Raw => any_form(Type::Deduced, false),
    }
}

fn field_forms<'a>(field: &'static Field) -> Forms<'a> {
    let items = element_type(field, None);
    if field.shape() == Shape::List {
        let keys = match field.list_type() {
            ListType::Atomic => Keys::Atomic,
            ListType::Set => Keys::Itself,
            ListType::Map => Keys::Field(field),
        };
        return Forms { scalar: None, list: Some(List { items, keys }), map: None };
    }
    let atomic = field.is_atomic() == Some(true);
    let map = Map { fields: Fields::None, others: Some(items), atomic };
    Forms { scalar: None, list: None, map: Some(map) }
}

/// Returns the type of a field's value, or of its items.
fn element_type<'a>(field: &'static Field, atomic: Option<bool>) -> Type<'a> {
    match field.kind() {
        Kind::String | Kind::Bytes => Type::Scalar(Scalars::String),
        Kind::Bool => Type::Scalar(Scalars::Boolean),
        Kind::Int32 | Kind::Int64 | Kind::Double => Type::Scalar(Scalars::Number),
        Kind::Message(message) => {
            Type::Message { message, atomic: atomic.unwrap_or_else(|| message.is_atomic()) }
        }
    }
}

fn field_type<'a>(field: &'static Field) -> Type<'a> {
    match field.shape() {
        Shape::List | Shape::Map => Type::Field(field),
        Shape::Always | Shape::Optional => element_type(field, field.is_atomic()),
    }
}

/// Returns the type of a field of a message.
fn message_field<'a>(message: Message, name: &str) -> Option<Type<'a>> {
    if let Some(field) = message.field_named(name) {
        return Some(field_type(field));
    }
    // Every kind has these fields, which its message does not have.
    let is_kind = || kube_schema::kinds().any(|(_, _, kind)| kind == message);
    (matches!(name, "apiVersion" | "kind") && is_kind()).then_some(Type::Scalar(Scalars::String))
}

fn object_meta<'a>() -> Type<'a> {
    let metadata = kube_schema::message("v1", "Pod").and_then(|pod| message_field(pod, "metadata"));
    metadata.unwrap_or(Type::Deduced)
}

impl<'a> Map<'a> {
    /// Returns the type of a field that the type declares.
    pub(crate) fn field(&self, name: &str) -> Option<Type<'a>> {
        match self.fields {
            Fields::None => None,
            Fields::Message(message) => message_field(message, name),
            Fields::Schema(schema) => schema.field(name),
            Fields::CustomObject(schema) => match name {
                "apiVersion" | "kind" => Some(Type::Scalar(Scalars::String)),
                "metadata" => Some(object_meta()),
                _ => schema.field(name),
            },
        }
    }

    /// Returns the type of a member. One that the type does not know is treated as an unknown type; only
    /// configurations that are applied must not have any.
    pub(crate) fn member(&self, name: &str) -> Type<'a> {
        self.known(name).unwrap_or(Type::Deduced)
    }

    /// Returns the type of a member, or `None` if there cannot be such a member.
    pub(crate) fn known(&self, name: &str) -> Option<Type<'a>> {
        self.field(name).or(self.others)
    }

    /// Returns whether members that no field declares have the type of any value.
    pub(crate) fn is_free(&self) -> bool {
        matches!((self.fields, self.others), (Fields::None, Some(Type::Deduced)))
    }

    /// Returns the message of a built-in object.
    pub(crate) fn message(&self) -> Option<Message> {
        match self.fields {
            Fields::Message(message) => Some(message),
            _ => None,
        }
    }
}

/// The reason why an item of a list cannot be identified, in Kubernetes' words.
pub(crate) type NoElement = String;

impl List<'_> {
    /// Returns the element of a path that identifies an item.
    pub(crate) fn element(&self, item: &Value) -> Result<Element, NoElement> {
        match self.keys {
            Keys::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Keys::Itself => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".to_owned())
                }
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null"
                        .to_owned())
                }
                scalar => Ok(Element::Value(Scalar(scalar.clone()))),
            },
            Keys::Field(field) => self.key(item, field.map_keys()),
            Keys::Names(names) => self.key(item, names.iter().map(String::as_str)),
        }
    }

    fn key<'k>(
        &self,
        item: &Value,
        keys: impl Iterator<Item = &'k str> + Clone,
    ) -> Result<Element, NoElement> {
        let item = match item {
            Value::Object(item) => item,
            Value::Null => {
                return Err("associative list with keys may not have a null element".to_owned());
            }
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let value = |key: &str| item.get(key).cloned().or_else(|| self.default_of(key));
        let mut fields: Vec<(Box<str>, Scalar)> =
            keys.clone().filter_map(|key| Some((key.into(), Scalar(value(key)?)))).collect();
        if fields.is_empty() {
            let keys: Vec<String> = keys.map(crate::quote::quoted).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                keys.join(" ")
            ));
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(fields))
    }

    fn default_of(&self, key: &str) -> Option<Value> {
        match self.items {
            Type::Message { message, .. } => {
                let field = message.field_named(key)?;
                field.key_default().map(Value::from)
            }
            Type::Custom(schema) => schema.default_of(key).cloned(),
            _ => None,
        }
    }
}

/// Returns the value of a field that Go leaves out of JSON only if it is zero, or that it never leaves out.
///
/// Kubernetes compares objects of its own types, which do not distinguish zero from absence. A field that is never left
/// out is there even if a client did not send it.
pub(crate) fn typed_value<'v>(
    field: &'static Field,
    value: Option<&'v Value>,
) -> Option<&'v Value> {
    static NULL: Value = Value::Null;
    static FALSE: Value = Value::Bool(false);
    static TEXT: Value = Value::String(String::new());
    static OBJECT: LazyLock<Value> = LazyLock::new(|| Value::Object(Object::new()));
    static ZERO: LazyLock<Value> = LazyLock::new(|| Value::from(0));

    let present = value.filter(|value| match value {
        Value::Null => false,
        _ if field.shape() == Shape::Optional || !field.omits_zero() => true,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => field.shape() != Shape::Map || !members.is_empty(),
    });
    if present.is_some() || field.omits_zero() {
        return present;
    }
    Some(match (field.shape(), field.kind()) {
        (Shape::Always, Kind::String) => &TEXT,
        (Shape::Always, Kind::Bool) => &FALSE,
        (Shape::Always, Kind::Int32 | Kind::Int64 | Kind::Double) => &ZERO,
        (Shape::Always, Kind::Message(message)) if message.form() == Form::Object => &OBJECT,
        (Shape::Always, Kind::Message(message)) if message.form() == Form::IntOrString => &ZERO,
        _ => &NULL,
    })
}

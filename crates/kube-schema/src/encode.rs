//! JSON written as protobuf, byte for byte as Go writes it.
//!
//! Fields that the tables do not have are left out, as a real server leaves them out.

use serde_json::{Map, Value};

use crate::base64;
use crate::envelope::Envelope;
use crate::error::{DEPTH_MAX, Error, Problem};
use crate::table::{Field, Form, Message, Shape, Type, message};
use crate::time::Timestamp;
use crate::wire::Writer;

/// Writes an object of a built-in kind as a body in protobuf: `k8s\0` and an envelope.
///
/// ```
/// use serde_json::{Value, json};
///
/// let map = json!({
///     "apiVersion": "v1",
///     "kind": "ConfigMap",
///     "metadata": {"name": "settings", "creationTimestamp": "2024-05-06T07:08:09Z"},
///     "data": {"colour": "blue"},
/// });
/// let bytes = kube_schema::to_vec(&map)?;
/// assert_eq!(kube_schema::from_slice::<Value>(&bytes)?, map);
///
/// let custom = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
/// assert!(kube_schema::to_vec(&custom).unwrap_err().is_unknown_kind());
/// # Ok::<(), kube_schema::Error>(())
/// ```
pub fn to_vec(object: &Value) -> Result<Vec<u8>, Error> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let message = message(api_version, kind).ok_or_else(|| Problem::Kind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    })?;
    Ok(Envelope { api_version, kind, raw: &message.encode(object)? }.to_vec())
}

impl Message {
    /// Writes a bare message from what it is in JSON. An object's apiVersion and kind are not in it.
    ///
    /// ```
    /// let list_meta = kube_schema::message("v1", "PodList").unwrap().field_named("metadata").unwrap();
    /// let kube_schema::Type::Message(list_meta) = list_meta.kind() else { panic!() };
    /// let bytes = list_meta.encode(&serde_json::json!({"resourceVersion": "7"}))?;
    /// // Fields that are no pointers are written although they are empty.
    /// assert_eq!(bytes, b"\x0a\x00\x12\x017\x1a\x00");
    /// # Ok::<(), kube_schema::Error>(())
    /// ```
    pub fn encode(self, value: &Value) -> Result<Vec<u8>, Error> {
        let mut encoder = Encoder { out: Writer::default(), depth: 0 };
        encoder.message(self, self.name(), value)?;
        Ok(encoder.out.finish())
    }

    /// Writes the bare message of an object, as [`encode`](Self::encode) does, from its members.
    ///
    /// ```
    /// let pod = kube_schema::message("v1", "Pod").unwrap();
    /// let object = serde_json::json!({"metadata": {"name": "web"}});
    /// assert_eq!(pod.encode_object(object.as_object().unwrap())?, pod.encode(&object)?);
    /// # Ok::<(), kube_schema::Error>(())
    /// ```
    pub fn encode_object(self, object: &Map<String, Value>) -> Result<Vec<u8>, Error> {
        let mut encoder = Encoder { out: Writer::default(), depth: 1 };
        encoder.object(self, object)?;
        Ok(encoder.out.finish())
    }
}

/// Writes from the end: fields by descending number, and what they consist of before their tags.
struct Encoder {
    out: Writer,
    depth: u8,
}

impl Encoder {
    /// The content of a message, without tag and length. Null is the zero value.
    fn message(
        &mut self,
        message: Message,
        field: &'static str,
        value: &Value,
    ) -> Result<(), Error> {
        if self.depth >= DEPTH_MAX {
            return Err(Problem::Depth.into());
        }
        self.depth += 1;
        match message.form() {
            Form::Object => match value {
                Value::Object(object) => self.object(message, object)?,
                Value::Null => self.object(message, &Map::new())?,
                _ => return Err(Problem::Mismatch { field, wanted: "an object" }.into()),
            },
            Form::List => self.list(&message.fields()[0], value)?,
            Form::Time => self.time(field, value, |_| 0)?,
            Form::MicroTime => self.time(field, value, |nanos| nanos / 1000 * 1000)?,
            Form::Quantity => self.quantity(field, value)?,
            Form::IntOrString => self.int_or_string(field, value)?,
            Form::Raw => {
                if !value.is_null() {
                    self.out.bytes(1, value.to_string().as_bytes());
                }
            }
            Form::OrBool | Form::OrArray => self.schema_or(message, field, value)?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, message: Message, object: &Map<String, Value>) -> Result<(), Error> {
        for field in message.fields().iter().rev() {
            if let (true, Type::Message(inlined)) = (field.is_inline(), field.kind()) {
                let from = self.out.len();
                self.object(inlined, object)?;
                self.out.close(field.number(), from);
                continue;
            }
            self.field(field, object.get(field.name()).unwrap_or(&Value::Null))?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, value: &Value) -> Result<(), Error> {
        match (field.shape(), value) {
            (Shape::Always, _) => self.value(field, field.number(), value),
            (_, Value::Null) => Ok(()),
            (Shape::Optional, _) => self.value(field, field.number(), value),
            (Shape::List, _) => self.list(field, value),
            (Shape::Map, Value::Object(entries)) => self.map(field, entries),
            (Shape::Map, _) => Err(mismatch(field, "an object")),
        }
    }

    fn list(&mut self, field: &Field, value: &Value) -> Result<(), Error> {
        let items = match value {
            Value::Array(items) => items,
            Value::Null => return Ok(()),
            _ => return Err(mismatch(field, "an array")),
        };
        items.iter().rev().try_for_each(|item| self.value(field, field.number(), item))
    }

    /// Go sorts the keys.
    fn map(&mut self, field: &Field, entries: &Map<String, Value>) -> Result<(), Error> {
        let mut sorted: Vec<(&String, &Value)> = entries.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in sorted.into_iter().rev() {
            let from = self.out.len();
            if !(value.is_null() && field.kind() == Type::Bytes) {
                self.value(field, 2, value)?;
            }
            self.out.bytes(1, key.as_bytes());
            self.out.close(field.number(), from);
        }
        Ok(())
    }

    /// One value with its tag. Null is the zero value.
    fn value(&mut self, field: &Field, number: u32, value: &Value) -> Result<(), Error> {
        match field.kind() {
            Type::String => {
                let text = or_zero(value, "", value.as_str());
                self.out.bytes(number, text.ok_or_else(|| mismatch(field, "a text"))?.as_bytes());
            }
            Type::Bool => {
                let bit = or_zero(value, false, value.as_bool());
                self.out.number(number, bit.ok_or_else(|| mismatch(field, "a boolean"))?.into());
            }
            Type::Int32 => {
                let found = value.as_i64().and_then(|value| i32::try_from(value).ok());
                let found = or_zero(value, 0, found);
                let found = found.ok_or_else(|| mismatch(field, "a whole number of 32 bits"))?;
                self.out.number(number, i64::from(found) as u64);
            }
            Type::Int64 => {
                let found = or_zero(value, 0, value.as_i64());
                let found = found.ok_or_else(|| mismatch(field, "a whole number of 64 bits"))?;
                self.out.number(number, found as u64);
            }
            Type::Double => {
                let found = or_zero(value, 0.0, value.as_f64());
                self.out.double(number, found.ok_or_else(|| mismatch(field, "a number"))?);
            }
            Type::Bytes => {
                let found = or_zero(value, Vec::new(), value.as_str().and_then(base64::decode));
                self.out.bytes(number, &found.ok_or_else(|| mismatch(field, "base64"))?);
            }
            Type::Message(message) => {
                let from = self.out.len();
                self.message(message, field.name(), value)?;
                self.out.close(number, from);
            }
        }
        Ok(())
    }

    /// Nothing at all for a time that is not set.
    fn time(
        &mut self,
        field: &'static str,
        value: &Value,
        nanos: fn(u32) -> u32,
    ) -> Result<(), Error> {
        let time = match value {
            Value::Null => return Ok(()),
            Value::String(text) => Timestamp::parse(text),
            _ => None,
        };
        let time = time.ok_or(Problem::Mismatch { field, wanted: "a time in RFC 3339" })?;
        if !time.is_go_zero() {
            self.out.number(2, nanos(time.nanos).into());
            self.out.number(1, time.seconds as u64);
        }
        Ok(())
    }

    fn quantity(&mut self, field: &'static str, value: &Value) -> Result<(), Error> {
        match value {
            Value::Null => self.out.bytes(1, b"0"),
            Value::String(text) => self.out.bytes(1, text.as_bytes()),
            Value::Number(number) => self.out.bytes(1, number.to_string().as_bytes()),
            _ => return Err(Problem::Mismatch { field, wanted: "a quantity" }.into()),
        }
        Ok(())
    }

    fn int_or_string(&mut self, field: &'static str, value: &Value) -> Result<(), Error> {
        let (is_text, number, text) = match value {
            Value::Null => (0, 0, ""),
            Value::String(text) => (1, 0, &**text),
            other => {
                let number = other.as_i64().and_then(|value| i32::try_from(value).ok());
                let wanted = "a text or a whole number of 32 bits";
                (0, number.ok_or(Problem::Mismatch { field, wanted })?, "")
            }
        };
        self.out.bytes(3, text.as_bytes());
        self.out.number(2, i64::from(number) as u64);
        self.out.number(1, is_text);
        Ok(())
    }

    /// A schema, or what may stand in its place: a boolean, or an array.
    fn schema_or(
        &mut self,
        message: Message,
        field: &'static str,
        value: &Value,
    ) -> Result<(), Error> {
        let [first, second] = message.fields() else {
            return Err(Problem::Mismatch { field, wanted: "of a known form" }.into());
        };
        match (message.form(), value) {
            (Form::OrBool, Value::Object(_)) => {
                self.value(second, second.number(), value)?;
                self.value(first, first.number(), &Value::Bool(true))
            }
            (Form::OrBool, Value::Bool(_) | Value::Null) => {
                self.value(first, first.number(), value)
            }
            (Form::OrArray, Value::Object(_)) => self.value(first, first.number(), value),
            (Form::OrArray, Value::Array(_) | Value::Null) => self.list(second, value),
            (Form::OrBool, _) => {
                Err(Problem::Mismatch { field, wanted: "a schema or a boolean" }.into())
            }
            _ => Err(Problem::Mismatch { field, wanted: "a schema or an array" }.into()),
        }
    }
}

fn or_zero<T>(value: &Value, zero: T, found: Option<T>) -> Option<T> {
    if value.is_null() { Some(zero) } else { found }
}

fn mismatch(field: &Field, wanted: &'static str) -> Error {
    Problem::Mismatch { field: field.name(), wanted }.into()
}

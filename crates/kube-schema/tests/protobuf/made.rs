//! Objects of any kind, made up from the tables, as Go's JSON would have them.

use kube_schema::{Field, Form, Message, Shape, Type, kinds};
use serde_json::{Map, Value, json};

/// How much of an object is made.
#[derive(Clone, Copy)]
pub(crate) enum Amount {
    /// Every field.
    Everything,
    /// Some fields, by chance.
    Some,
}

/// Makes objects from a seed.
pub(crate) struct Maker {
    state: u64,
    amount: Amount,
    /// The messages that are being made, one within the other.
    around: Vec<Message>,
}

impl Maker {
    pub(crate) fn new(seed: u64, amount: Amount) -> Self {
        Self { state: seed.wrapping_mul(2).wrapping_add(1), amount, around: Vec::new() }
    }

    /// An object of a kind, and the kind's message.
    pub(crate) fn object(&mut self, api_version: &str, kind: &str, message: Message) -> Value {
        let mut object = self.message(message);
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object
    }

    /// An object of some kind.
    pub(crate) fn any_object(&mut self) -> Value {
        let all: Vec<_> = kinds().collect();
        let (api_version, kind, message) = all[self.below(all.len())];
        self.object(api_version, kind, message)
    }

    /// Less than `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) as usize % limit
    }

    fn wants(&mut self) -> bool {
        match self.amount {
            Amount::Everything => true,
            Amount::Some => self.below(3) == 0,
        }
    }

    fn message(&mut self, message: Message) -> Value {
        self.around.push(message);
        let value = match message.form() {
            Form::Object => {
                let mut object = Map::new();
                self.fields(message, &mut object);
                Value::Object(object)
            }
            Form::List => Value::Array(self.texts()),
            Form::Time => json!(format!("20{:02}-02-03T04:05:06Z", self.below(100))),
            Form::MicroTime => json!(format!(
                "20{:02}-02-03T04:05:06.000{:03}Z",
                self.below(100),
                self.below(1000)
            )),
            Form::Quantity => json!(format!("{}m", 1 + self.below(2000))),
            Form::IntOrString if self.below(2) == 0 => json!(self.below(100)),
            Form::IntOrString => json!("50%"),
            Form::Raw => json!({"any": [1, "two", null], "number": self.below(9)}),
            Form::OrBool if !self.repeats(&message.fields()[1]) && self.wants() => {
                self.value(&message.fields()[1])
            }
            Form::OrBool => json!(self.below(2) == 0),
            Form::OrArray if self.repeats(&message.fields()[0]) => json!({}),
            Form::OrArray if self.wants() => json!([self.value(&message.fields()[1])]),
            Form::OrArray => self.value(&message.fields()[0]),
        };
        self.around.pop();
        value
    }

    /// Schemas contain schemas: one within another is enough.
    fn repeats(&self, field: &Field) -> bool {
        let Type::Message(message) = field.kind() else { return false };
        self.around.iter().filter(|around| **around == message).count() > 1
    }

    fn fields(&mut self, message: Message, object: &mut Map<String, Value>) {
        for field in message.fields() {
            if let (true, Type::Message(inlined)) = (field.is_inline(), field.kind()) {
                self.fields(inlined, object);
            } else if let Some(value) = self.field(field) {
                object.insert(field.name().to_owned(), value);
            }
        }
    }

    fn field(&mut self, field: &Field) -> Option<Value> {
        // Go's JSON has these always.
        let required = field.shape() == Shape::Always && !field.omits_zero();
        if !required && (self.repeats(field) || !self.wants()) {
            return None;
        }
        let count = match self.amount {
            Amount::Everything => 1,
            Amount::Some => 1 + self.below(3),
        };
        Some(match field.shape() {
            Shape::Always | Shape::Optional => self.value(field),
            Shape::List => (0..count).map(|_| self.value(field)).collect(),
            Shape::Map => {
                let entries = (0..count).map(|at| (format!("key-{at}"), self.value(field)));
                Value::Object(entries.collect())
            }
        })
    }

    fn texts(&mut self) -> Vec<Value> {
        (0..=self.below(2)).map(|at| json!(format!("item {at}"))).collect()
    }

    fn value(&mut self, field: &Field) -> Value {
        // A pointer's zero and an item's are values; that of another field may be left out.
        let zero = field.shape() != Shape::Always && !matches!(field.kind(), Type::Bytes);
        let least = usize::from(!zero);
        match field.kind() {
            Type::String => json!(
                ["", "a", "text with \"quotes\" and ü", "long ".repeat(40).trim_end()]
                    [least + self.below(3)]
            ),
            Type::Bool => json!(!zero || self.below(2) == 0),
            Type::Int32 => json!([0, 1, -1, i32::MIN, i32::MAX][least + self.below(4)]),
            Type::Int64 => json!([0, 1, -1, i64::MIN, i64::MAX][least + self.below(4)]),
            Type::Double => json!([0.5, -2.25, 1e300][self.below(3)]),
            Type::Bytes => json!(["AA==", "a3ViZQ==", "////"][self.below(3)]),
            Type::Message(message) => self.message(message),
        }
    }
}

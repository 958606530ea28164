//! The schemas of definitions: `openAPIV3Schema` with its `x-kubernetes-…` extensions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Fields, Forms, Keys, List, Map, Scalars, Type, object_meta};

/// A value that a definition describes. It is as deep as the definition, whose depth is limited like that of any object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Schema {
    scalar: Option<Scalars>,
    list: Option<Box<ListSchema>>,
    map: Option<Box<MapSchema>>,
}

#[derive(Debug, Clone, PartialEq)]
struct ListSchema {
    /// `None` if the definition does not describe the items.
    items: Option<Schema>,
    keys: ListKeys,
}

#[derive(Debug, Clone, PartialEq)]
enum ListKeys {
    Atomic,
    Itself,
    Names(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
struct MapSchema {
    fields: BTreeMap<String, FieldSchema>,
    others: Others,
    atomic: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct FieldSchema {
    schema: Schema,
    default: Option<Value>,
    /// Whether it is the metadata of an object within an object.
    is_metadata: bool,
}

/// The members that are no fields.
#[derive(Debug, Clone, PartialEq)]
enum Others {
    None,
    Any,
    Schema(Schema),
}

impl Schema {
    /// Reads the `openAPIV3Schema` of a definition. Values of the wrong type count as absent.
    pub(crate) fn of_definition(schema: &Value, preserve_unknown: bool) -> Self {
        Self::read(schema, preserve_unknown)
    }

    fn read(schema: &Value, preserve: bool) -> Self {
        let preserve = preserve || schema["x-kubernetes-preserve-unknown-fields"] == true;
        let scalar = |scalars| Self { scalar: Some(scalars), ..Self::default() };
        match schema["type"].as_str().unwrap_or_default() {
            "object" => Self { map: Some(Box::new(read_map(schema, preserve))), ..Self::default() },
            "array" => {
                Self { list: Some(Box::new(read_list(schema, preserve))), ..Self::default() }
            }
            "integer" | "number" => scalar(Scalars::Number),
            "boolean" => scalar(Scalars::Boolean),
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "" | "byte" => scalar(Scalars::String),
                _ => scalar(Scalars::Any),
            },
            _ => Self::of_any(schema, preserve),
        }
    }

    fn of_any(schema: &Value, preserve: bool) -> Self {
        Self {
            scalar: Some(Scalars::Any),
            list: Some(Box::new(read_list(schema, preserve))),
            map: Some(Box::new(read_map(schema, preserve))),
        }
    }

    pub(super) fn forms(&self) -> Forms<'_> {
        Forms {
            scalar: self.scalar,
            list: self.list.as_ref().map(|list| List {
                items: list.items.as_ref().map_or(Type::Untyped, Type::Custom),
                keys: match &list.keys {
                    ListKeys::Atomic => Keys::Atomic,
                    ListKeys::Itself => Keys::Itself,
                    ListKeys::Names(names) => Keys::Names(names),
                },
            }),
            map: self.map.as_ref().map(|map| Map {
                fields: if map.fields.is_empty() { Fields::None } else { Fields::Schema(self) },
                others: match &map.others {
                    Others::None => None,
                    Others::Any => Some(Type::Deduced),
                    Others::Schema(schema) => Some(Type::Custom(schema)),
                },
                atomic: map.atomic,
            }),
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<Type<'_>> {
        let field = self.map.as_ref()?.fields.get(name)?;
        Some(if field.is_metadata { object_meta() } else { Type::Custom(&field.schema) })
    }

    pub(super) fn default_of(&self, name: &str) -> Option<&Value> {
        self.map.as_ref()?.fields.get(name)?.default.as_ref()
    }
}

fn read_map(schema: &Value, preserve: bool) -> MapSchema {
    let properties = schema["properties"].as_object();
    let mut fields: BTreeMap<String, FieldSchema> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let default = property.get("default").filter(|default| !default.is_null()).cloned();
            let schema = Schema::read(property, preserve);
            (name.clone(), FieldSchema { schema, default, is_metadata: false })
        })
        .collect();
    let others = match &schema["additionalProperties"] {
        Value::Null if preserve || fields.is_empty() => Others::Any,
        Value::Object(_) => Others::Schema(Schema::read(&schema["additionalProperties"], preserve)),
        Value::Bool(true) => Others::Any,
        _ => Others::None,
    };
    if schema["x-kubernetes-embedded-resource"] == true {
        // An object within an object has a type and metadata, whether or not the definition says so.
        for name in ["apiVersion", "kind", "metadata"] {
            let schema = Schema { scalar: Some(Scalars::String), ..Schema::default() };
            let is_metadata = name == "metadata";
            fields.insert(name.to_owned(), FieldSchema { schema, default: None, is_metadata });
        }
    }
    MapSchema { fields, others, atomic: schema["x-kubernetes-map-type"] == "atomic" }
}

fn read_list(schema: &Value, preserve: bool) -> ListSchema {
    let keys = match schema["x-kubernetes-list-type"].as_str().unwrap_or_default() {
        "set" => ListKeys::Itself,
        "map" => {
            let names = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            let names = names.filter_map(Value::as_str).map(str::to_owned).collect();
            ListKeys::Names(names)
        }
        _ => ListKeys::Atomic,
    };
    let items = schema["items"].is_object().then(|| Schema::read(&schema["items"], preserve));
    ListSchema { items, keys }
}

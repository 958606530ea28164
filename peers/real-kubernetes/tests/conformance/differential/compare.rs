//! The differences between two responses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

/// One place in the response to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// `topic/name` of the request.
    pub(crate) request: String,
    /// A path, such as `code`, `body.metadata.labels` or `body.items[a].spec`; prefixed with `missing ` if only the
    /// real server has it, and with `extra ` if only the embedded one does.
    pub(crate) place: String,
    real: String,
    embedded: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, place, real, embedded } = self;
        write!(f, "{request}: {place}\n    real     {real}\n    embedded {embedded}")
    }
}

/// Returns all places where the responses to a request differ. If the codes or the kinds differ, the rest is not
/// compared.
pub(crate) fn differences(request: &str, real: &Value, embedded: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    for place in ["/code", "/body/kind"] {
        if real.pointer(place) != embedded.pointer(place) {
            let at = |answer: &Value| summary(answer, place);
            found.push(Difference {
                request: request.to_owned(),
                place: place[1..].replace('/', "."),
                real: at(real),
                embedded: at(embedded),
            });
            return found;
        }
    }
    walk(request, "", Some(real), Some(embedded), &mut found);
    found
}

/// Returns the value at a place; if the response has no message, the whole response.
fn summary(answer: &Value, place: &str) -> String {
    let at = answer.pointer(place).unwrap_or(&Value::Null);
    let said = answer.pointer("/body/message").or_else(|| answer.get("body")).unwrap_or(answer);
    format!("{at}: {said}")
}

fn walk(
    request: &str,
    place: &str,
    real: Option<&Value>,
    embedded: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    let below = |name: &str| match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    };
    match (real, embedded) {
        (Some(Value::Object(real)), Some(Value::Object(embedded))) => {
            let names: BTreeSet<_> = real.keys().chain(embedded.keys()).collect();
            for name in names {
                walk(request, &below(name), real.get(name), embedded.get(name), found);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(embedded))) => {
            let (reals, embeddeds) = match (named(real), named(embedded)) {
                (Some(reals), Some(embeddeds)) => (reals, embeddeds),
                _ => (numbered(real), numbered(embedded)),
            };
            order(request, place, [(real, &reals), (embedded, &embeddeds)], found);
            let names: BTreeSet<_> = reals.keys().chain(embeddeds.keys()).collect();
            for name in names {
                let place = format!("{place}[{name}]");
                let items = (reals.get(name).copied(), embeddeds.get(name).copied());
                walk(request, &place, items.0, items.1, found);
            }
        }
        (real, embedded) if real == embedded => {}
        (real, embedded) => {
            let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            let place = match (real, embedded) {
                (_, None) => format!("missing {place}"),
                (None, _) => format!("extra {place}"),
                _ => place.to_owned(),
            };
            found.push(Difference {
                request: request.to_owned(),
                place,
                real: text(real),
                embedded: text(embedded),
            });
        }
    }
}

type Items<'a> = BTreeMap<String, &'a Value>;

/// Returns the items by name, if all names are different.
fn named(items: &[Value]) -> Option<Items<'_>> {
    let all: Items<'_> =
        items.iter().map(|item| Some((name(item)?, item))).collect::<Option<_>>()?;
    (all.len() == items.len()).then_some(all)
}

fn name(item: &Value) -> Option<String> {
    let places = ["/metadata/name", "/object/metadata/name", "/name", "/resource", "/subresource"];
    let name = places.iter().find_map(|place| item.pointer(place)?.as_str())?;
    // An object can have several events.
    let kind = item.get("type").and_then(Value::as_str).filter(|_| item.get("object").is_some());
    (kind.is_none() && !name.is_empty()).then(|| name.to_owned())
}

fn numbered(items: &[Value]) -> Items<'_> {
    items.iter().enumerate().map(|(at, item)| (format!("{at:02}"), item)).collect()
}

/// Checks that items which both have are in the same order.
fn order(
    request: &str,
    place: &str,
    [(real, reals), (embedded, embeddeds)]: [(&[Value], &Items<'_>); 2],
    found: &mut Vec<Difference>,
) {
    let names = |items: &[Value], others: &Items<'_>| {
        let names = items.iter().filter_map(name).filter(|name| others.contains_key(name));
        names.collect::<Vec<_>>().join(" ")
    };
    let (real, embedded) = (names(real, embeddeds), names(embedded, reals));
    if real != embedded {
        let place = format!("{place}.order");
        found.push(Difference { request: request.to_owned(), place, real, embedded });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places(real: &Value, embedded: &Value) -> Vec<String> {
        differences("t/r", real, embedded).into_iter().map(|found| found.place).collect()
    }

    #[test]
    fn every_place_that_differs_is_found() {
        let real = json!({"code": 200, "body": {"a": 1, "b": [1, 2], "c": {"d": null}, "e": "x"}});
        let embedded =
            json!({"code": 200, "body": {"a": "1", "b": [1], "c": {}, "f": 0, "e": "x"}});
        let wanted = ["body.a", "missing body.b[01]", "missing body.c.d", "extra body.f"];
        assert_eq!(places(&real, &embedded), wanted);
        assert_eq!(places(&real, &real), [""; 0]);
    }

    #[test]
    fn named_items_are_compared_by_name_and_their_order_is() {
        let item = |name: &str, value: u32| json!({"metadata": {"name": name}, "v": value});
        let real = json!({"items": [item("a", 1), item("b", 2), item("c", 3)]});
        let embedded = json!({"items": [item("c", 3), item("a", 0), item("d", 4)]});
        let wanted = ["items.order", "items[a].v", "missing items[b]", "extra items[d]"];
        assert_eq!(places(&real, &embedded), wanted);
    }

    #[test]
    fn answers_of_other_codes_or_kinds_are_not_compared_any_further() {
        let real = json!({"code": 200, "body": {"kind": "ConfigMap", "x": 1}});
        let failed = json!({"code": 404, "body": {"kind": "Status", "message": "no"}});
        assert_eq!(places(&real, &failed), ["code"]);
        let status = json!({"code": 200, "body": {"kind": "Status"}});
        assert_eq!(places(&real, &status), ["body.kind"]);
    }
}

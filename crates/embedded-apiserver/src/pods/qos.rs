//! The `QoS` class of a pod, which follows from its resource requests and limits.

use serde_json::Value;

use crate::print::read::{entries, items};

/// Returns `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn class(spec: &Value) -> &'static str {
    let all = || items(&spec["initContainers"]).iter().chain(items(&spec["containers"]));
    let counts = |(name, amount): (&str, &Value)| {
        matches!(name, "cpu" | "memory") && quantity(amount).is_some_and(|amount| amount > 0)
    };
    let asks = |container: &Value| {
        let resources = &container["resources"];
        entries(&resources["limits"]).chain(entries(&resources["requests"])).any(counts)
    };
    if !all().any(asks) {
        return "BestEffort";
    }
    let guaranteed = |container: &Value| {
        let resources = &container["resources"];
        ["cpu", "memory"].iter().all(|name| {
            let limit = quantity(&resources["limits"][*name]).filter(|limit| *limit > 0);
            // A request defaults to the limit.
            let request = quantity(&resources["requests"][*name]).or(limit);
            limit.is_some() && limit == request
        })
    };
    if all().all(guaranteed) { "Guaranteed" } else { "Burstable" }
}

/// Returns an amount in billionths, or `None` if it is invalid.
fn quantity(value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{part}");
    let scale = suffix_scale(suffix)?;
    let billionths = digits.parse::<i128>().ok()?.checked_mul(scale)?;
    Some(billionths / 10_i128.checked_pow(part.len() as u32)?)
}

fn suffix_scale(suffix: &str) -> Option<i128> {
    const BILLION: i128 = 1_000_000_000;
    if let Some(power) = suffix.strip_prefix(['e', 'E']).filter(|power| !power.is_empty()) {
        let power = power.parse::<i32>().ok()?.checked_add(9)?;
        return 10_i128.checked_pow(u32::try_from(power).ok()?);
    }
    if let Some(unit) = suffix.strip_suffix('i') {
        let power = ["K", "M", "G", "T", "P", "E"].iter().position(|other| *other == unit)?;
        return Some(BILLION << (10 * (power + 1)));
    }
    let units = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let power = units.iter().position(|other| *other == suffix)?;
    Some(1000_i128.pow(power as u32))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_equal_however_they_are_written() {
        let same = [
            (json!("1"), json!("1000m")),
            (json!(1), json!("1.0")),
            (json!("1Ki"), json!("1024")),
            (json!("1.5Gi"), json!("1536Mi")),
            (json!("1e3"), json!("1k")),
            (json!("1E"), json!("1000P")),
        ];
        for (a, b) in same {
            assert!(quantity(&a).is_some(), "{a}");
            assert_eq!(quantity(&a), quantity(&b), "{a} {b}");
        }
        for wrong in ["", "x", "1x", "1.2.3", "1e999", "1e", "--1"] {
            assert_eq!(quantity(&json!(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_class_follows_from_all_containers() {
        let with = |resources: Value| json!({"containers": [{"resources": resources}]});
        let full = json!({"cpu": "1", "memory": "1Gi"});
        let cases = [
            (json!({}), "BestEffort"),
            (with(json!({})), "BestEffort"),
            (with(json!({"requests": {"cpu": "0"}})), "BestEffort"),
            (with(json!({"limits": {"example.com/gpu": "1"}})), "BestEffort"),
            (with(json!({"requests": {"cpu": "1"}})), "Burstable"),
            (with(json!({"limits": {"cpu": "1"}})), "Burstable"),
            (with(json!({"limits": full})), "Guaranteed"),
            (
                with(json!({"limits": full, "requests": {"cpu": "1000m", "memory": "1024Mi"}})),
                "Guaranteed",
            ),
            (with(json!({"limits": full, "requests": {"cpu": "500m"}})), "Burstable"),
            (
                json!({"initContainers": [{}], "containers": [{"resources": {"limits": full}}]}),
                "Burstable",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(class(&spec), expected, "{spec}");
        }
    }
}

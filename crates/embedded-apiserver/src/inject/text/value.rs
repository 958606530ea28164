//! Values of options and faults.

use std::str::FromStr;
use std::time::Duration;

use http::{HeaderValue, StatusCode};

use super::{FaultTextError, Parsed, words, wrong};
use crate::limits::{FAULT_BYTES_MAX, FAULT_LEVELS_MAX};

/// Parses a required value with `read`.
fn value_of<T>(
    key: &str,
    value: Option<&str>,
    form: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Parsed<T> {
    let Some(value) = value else { return wrong(format!("{key} needs a value: {form}")) };
    read(value).ok_or_else(|| FaultTextError(format!("{key}={value}: this should be {form}")))
}

pub(super) fn none(key: &str, value: Option<&str>) -> Parsed<()> {
    match value {
        Some(value) => wrong(format!("{key}={value}: {key} has no value")),
        None => Ok(()),
    }
}

pub(super) fn text(key: &str, value: Option<&str>) -> Parsed<String> {
    value_of(key, value, "a text", |value| Some(value.to_owned()))
}

pub(super) fn name(key: &str, value: Option<&str>) -> Parsed<String> {
    let fits = |value: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        (1..=63).contains(&value.len()) && value.chars().all(allowed)
    };
    value_of(key, value, "a name of up to 63 letters, digits, '-', '_' and '.'", |value| {
        fits(value).then(|| value.to_owned())
    })
}

fn digits<T: FromStr>(value: &str) -> Option<T> {
    value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok())?
}

pub(super) fn number(key: &str, value: Option<&str>) -> Parsed<u64> {
    value_of(key, value, "a number", digits)
}

pub(super) fn positive(key: &str, value: Option<&str>) -> Parsed<u64> {
    value_of(key, value, "a number from 1 on", |value| digits(value).filter(|number| *number > 0))
}

pub(super) fn levels(key: &str, value: Option<&str>) -> Parsed<usize> {
    let form = format!("a number up to {FAULT_LEVELS_MAX}");
    value_of(key, value, &form, |value| digits(value).filter(|levels| *levels <= FAULT_LEVELS_MAX))
}

pub(super) fn probability(key: &str, value: Option<&str>) -> Parsed<f64> {
    value_of(key, value, "a number between 0 and 1", |value| {
        value.parse().ok().filter(|probability| (0.0..=1.0).contains(probability))
    })
}

pub(super) fn code(key: &str, value: Option<&str>) -> Parsed<StatusCode> {
    value_of(key, value, "an HTTP status from 200 to 599, such as 429", |value| {
        let code = digits(value).filter(|code| (200..600).contains(code));
        code.and_then(|code: u16| StatusCode::from_u16(code).ok())
    })
}

pub(super) fn header(key: &str, value: Option<&str>) -> Parsed<HeaderValue> {
    value_of(key, value, "what a header may have: visible ASCII", |value| {
        let visible = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        visible.then(|| HeaderValue::from_str(value).ok())?
    })
}

/// Parses `200ms`, `1.5s`, `2m` or `1h`.
pub(super) fn time(key: &str, value: Option<&str>) -> Parsed<Duration> {
    const DAY: f64 = 86_400.0;
    value_of(key, value, words::time_form(key), |value| {
        let unit = value.find(|c: char| c.is_ascii_alphabetic())?;
        let factor = match &value[unit..] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let seconds = value[..unit].parse::<f64>().ok()? * factor;
        (0.0..=DAY).contains(&seconds).then(|| Duration::try_from_secs_f64(seconds).ok())?
    })
}

/// Parses `1000`, `64Ki` or `2Mi`.
pub(super) fn bytes_of(key: &str, value: Option<&str>) -> Parsed<usize> {
    let form = words::bytes_form(key);
    value_of(key, value, &form, |value| {
        let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)];
        let unit = units.iter().find_map(|(unit, of)| Some((value.strip_suffix(unit)?, *of)));
        let (count, of) = unit.unwrap_or((value, 1));
        let bytes = digits::<usize>(count)?.checked_mul(of)?;
        (bytes <= FAULT_BYTES_MAX).then_some(bytes)
    })
}

//! Durations in queries, in the notation of Go: `30s`, `1h15m`, `1.5s`.

use crate::quote::quoted;

/// The units, and their length in nanoseconds.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// The end of Go's durations: 2^63 nanoseconds, some 292 years.
const NANOSECONDS_END: f64 = 9_223_372_036_854_775_808.0;

/// Checks a duration. Returns the error of Go if it is invalid.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {}", quoted(text));
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, after) = rest.split_at(unit_at);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted(text)));
        }
        let Some((_, nanoseconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let (unit, text) = (quoted(unit), quoted(text));
            return Err(format!("time: unknown unit {unit} in duration {text}"));
        };
        total += number.parse::<f64>().map_err(|_| invalid())? * nanoseconds;
        rest = next;
    }
    if total >= NANOSECONDS_END { Err(invalid()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for valid in ["0", "0s", "1s", "-1s", "+1h1m1.5s", ".5s", "1.s", "100us", "1µs", "2562047h"]
        {
            assert_eq!(check(valid), Ok(()), "{valid}");
        }
        for (text, why) in [
            ("", r#"invalid duration """#),
            ("nonsense", r#"invalid duration "nonsense""#),
            ("-", r#"invalid duration "-""#),
            (".", r#"invalid duration ".""#),
            ("1", r#"missing unit in duration "1""#),
            ("1s2", r#"missing unit in duration "1s2""#),
            ("1d", r#"unknown unit "d" in duration "1d""#),
            ("1 s", r#"unknown unit " s" in duration "1 s""#),
            ("1e3s", r#"unknown unit "e" in duration "1e3s""#),
            ("3000000h", r#"invalid duration "3000000h""#),
        ] {
            assert_eq!(check(text), Err(format!("time: {why}")));
        }
    }
}

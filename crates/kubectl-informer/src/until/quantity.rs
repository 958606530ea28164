//! Numbers, and Kubernetes quantities: `500m`, `1.5Gi`.

use serde_json::Value;

/// Returns a value as a number, if it is one. A missing value is 0.
pub(super) fn of(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(0.0),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => parse(text),
        _ => None,
    }
}

/// Parses a number with or without a suffix.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => f64::from(1 << 10),
        "Mi" => f64::from(1 << 20),
        "Gi" => f64::from(1 << 30),
        "Ti" => (1_u64 << 40) as f64,
        "Pi" => (1_u64 << 50) as f64,
        "Ei" => (1_u64 << 60) as f64,
        _ => return None,
    };
    // Excludes infinities and NaN.
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    let number = digits.parse::<f64>().ok().filter(|_| digits.chars().all(numeric))?;
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers() {
        for (text, expected) in [
            ("3", 3.0),
            ("-1.5", -1.5),
            ("500m", 0.5),
            ("2k", 2000.0),
            ("1e3", 1000.0),
            ("1Gi", 1_073_741_824.0),
            ("1E", 1e18),
            ("100n", 1e-7),
        ] {
            assert!((parse(text).unwrap() / expected - 1.0).abs() < 1e-12, "{text}");
        }
        for text in ["", "m", "Running", "inf", "NaN", "1GB", "ten"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

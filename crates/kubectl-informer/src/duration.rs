//! Durations in the notation that people use.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Parses a duration as Go and kubectl do: `5s`, `1m30s`, `500ms`, `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a time is written as 500ms, 30s, 5m or 1h30m".to_owned();
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, after) = rest.split_at(digits.ok_or_else(wrong)?);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let end = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        let part = Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    if text.is_empty() {
        return Err(wrong());
    }
    if total.is_zero() {
        return Err("a time must be more than zero, such as 500ms or 30s".to_owned());
    }
    Ok(total)
}

/// Waits until a deadline, or forever if there is none.
pub(crate) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_go_writes_them() {
        for (text, millis) in
            [("5s", 5000), ("500ms", 500), ("1m30s", 90_000), ("1.5h", 5_400_000), ("0.5s", 500)]
        {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for text in ["", "5", "s", "-5s", "5 s", "5d", "0s", "1e3s", "9999999999999999999999h", "."]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["0s", "0ms", "0h0m", "0.0s"] {
            assert!(duration(text).unwrap_err().contains("more than zero"), "{text}");
        }
    }
}

//! Human-readable ages: `45s`, `3m10s`, `5h`, `2d3h`.

use jiff::{SignedDuration, Timestamp};

/// The longest span: 64-bit nanoseconds, which is also the limit of Go's clients.
const MAX: SignedDuration = SignedDuration::from_nanos(i64::MAX);

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Parses an RFC 3339 timestamp. Returns `None` if the text is invalid or stands for an unset time.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    if is_unset(text) || !is_rfc3339(text) { None } else { text.parse().ok() }
}

/// Returns whether a client wrote this for an unset time: Go's zero time is in the year 1.
pub(super) fn is_unset(text: &str) -> bool {
    matches!(text, "" | "null" | "0001-01-01T00:00:00Z")
}

/// Returns whether the text has the form of RFC 3339. jiff parses a superset of it.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied();
    let zone = bytes.len().checked_sub(3).and_then(at);
    at(4) == Some(b'-')
        && at(10) == Some(b'T')
        && at(13) == Some(b':')
        && at(16) == Some(b':')
        && (bytes.ends_with(b"Z") || zone == Some(b':'))
}

/// Returns how long ago an instant was.
pub(super) fn since(instant: Option<Timestamp>, now: Timestamp) -> String {
    instant.map_or_else(|| "<unknown>".to_owned(), |instant| between(instant, now))
}

/// Returns the time from one instant to a later one.
pub(super) fn between(start: Timestamp, end: Timestamp) -> String {
    human(end.duration_since(start))
}

/// Formats a span with two or three significant digits.
fn human(span: SignedDuration) -> String {
    let seconds = span.min(MAX).as_secs();
    // Clocks differ: an instant less than two seconds ahead counts as now.
    if seconds < -1 {
        "<invalid>".to_owned()
    } else if seconds < 2 * MINUTE {
        format!("{}s", seconds.max(0))
    } else if seconds < 10 * MINUTE {
        pair(seconds, (MINUTE, 'm'), (1, 's'))
    } else if seconds < 3 * HOUR {
        format!("{}m", seconds / MINUTE)
    } else if seconds < 8 * HOUR {
        pair(seconds, (HOUR, 'h'), (MINUTE, 'm'))
    } else if seconds < 2 * DAY {
        format!("{}h", seconds / HOUR)
    } else if seconds < 8 * DAY {
        pair(seconds, (DAY, 'd'), (HOUR, 'h'))
    } else if seconds < 2 * YEAR {
        format!("{}d", seconds / DAY)
    } else if seconds < 8 * YEAR {
        pair(seconds, (YEAR, 'y'), (DAY, 'd'))
    } else {
        format!("{}y", seconds / YEAR)
    }
}

/// Formats two units, and omits the smaller one if it is zero.
fn pair(seconds: i64, large: (i64, char), small: (i64, char)) -> String {
    let (many, rest) = (seconds / large.0, seconds % large.0 / small.0);
    if rest == 0 {
        format!("{many}{}", large.1)
    } else {
        format!("{many}{}{rest}{}", large.1, small.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_lose_precision_as_they_grow() {
        let cases = [
            (0, "0s"),
            (45, "45s"),
            (119, "119s"),
            (120, "2m"),
            (190, "3m10s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (3 * HOUR + 61, "3h1m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (3 * YEAR + 10 * DAY, "3y10d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR, "8y"),
            (5_000 * YEAR, "292y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human(SignedDuration::from_secs(seconds)), expected, "{seconds} s");
        }
    }

    #[test]
    fn a_clock_that_is_slightly_ahead_is_tolerated() {
        assert_eq!(human(SignedDuration::from_millis(-1)), "0s");
        assert_eq!(human(SignedDuration::from_millis(-1_999)), "0s");
        assert_eq!(human(SignedDuration::from_millis(-2_000)), "<invalid>");
    }

    #[test]
    fn an_instant_that_is_not_known_has_no_age() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(since(None, now), "<unknown>");
        assert_eq!(since(parse("2025-12-31T23:59:50Z"), now), "10s");
        assert_eq!(since(parse("2025-12-31T23:59:50.5+00:00"), now), "9s");
        for text in ["", "yesterday", "2025-12-31", "2025-12-31 23:59:50Z", "0001-01-01T00:00:00Z"]
        {
            assert_eq!(since(parse(text), now), "<unknown>", "{text:?}");
        }
    }
}

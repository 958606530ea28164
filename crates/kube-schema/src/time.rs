//! Times: seconds since 1970 in protobuf, RFC 3339 in JSON.

/// Seconds since 1970, and the nanoseconds after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

const DAY: i64 = 24 * 60 * 60;

/// The first and the last second that RFC 3339 has four digits of a year for.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

/// Go's zero time, the start of the year 1, which it writes as null.
const GO_ZERO: i64 = -62_135_596_800;

impl Timestamp {
    /// Go's zero time, which its JSON has as null.
    pub(crate) fn is_go_zero(self) -> bool {
        self.seconds == GO_ZERO && self.nanos == 0
    }

    /// Writes it with whole seconds, or with microseconds, and says how long it is. None outside of the years that
    /// RFC 3339 has.
    pub(crate) fn format(self, micros: bool) -> Option<([u8; 27], usize)> {
        if !(FIRST..=LAST).contains(&self.seconds) || self.nanos >= 1_000_000_000 {
            return None;
        }
        let (days, second) = (self.seconds.div_euclid(DAY), self.seconds.rem_euclid(DAY));
        let (year, month, day) = civil(days);
        let mut out = *b"0000-00-00T00:00:00.000000Z";
        put(&mut out[..4], year);
        put(&mut out[5..7], month);
        put(&mut out[8..10], day);
        put(&mut out[11..13], second / 3600);
        put(&mut out[14..16], second / 60 % 60);
        put(&mut out[17..19], second % 60);
        if micros {
            put(&mut out[20..26], i64::from(self.nanos / 1000));
            return Some((out, 27));
        }
        out[19] = b'Z';
        Some((out, 20))
    }

    /// Reads RFC 3339, with any offset and any number of decimals.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let number = |from: usize, len: usize| -> Option<i64> {
            let digits = bytes.get(from..from + len)?;
            let step = |value: i64, digit: &u8| {
                digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0'))
            };
            digits.iter().try_fold(0, step)
        };
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if marks.iter().any(|(at, mark)| bytes.get(*at) != Some(mark)) {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
        let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
        if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (nanos, rest) = decimals(text.get(19..)?)?;
        let offset = offset(rest)?;
        let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset;
        (FIRST..=LAST).contains(&seconds).then_some(Self { seconds, nanos })
    }
}

/// Writes a number, with zeros before it.
fn put(digits: &mut [u8], mut value: i64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// The nanoseconds of `.123`, and what follows.
fn decimals(text: &str) -> Option<(u32, &str)> {
    let Some(rest) = text.strip_prefix(['.', ',']) else { return Some((0, text)) };
    let len = rest.bytes().take_while(u8::is_ascii_digit).count();
    let digits = &rest[..len];
    let nanos = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    (len > 0).then_some((nanos, &rest[len..]))
}

/// The seconds of `Z`, `+02:00`.
fn offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str, max: i64| {
        let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|value: &i64| plain && *value <= max)
    };
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 60)? * 60))
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days in 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// Days from 1970-01-01. Years are counted from March, so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA + year * 365 + year / 4 - year / 100 + day - 719_468
}

/// Year, month and day of a number of days from 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(time: Timestamp, micros: bool) -> String {
        let (text, len) = time.format(micros).unwrap();
        String::from_utf8(text[..len].to_vec()).unwrap()
    }

    fn shown(seconds: i64) -> String {
        text(Timestamp { seconds, nanos: 123_456_789 }, true)
    }

    #[test]
    fn known_times() {
        assert_eq!(shown(0), "1970-01-01T00:00:00.123456Z");
        assert_eq!(shown(-1), "1969-12-31T23:59:59.123456Z");
        assert_eq!(shown(951_827_696), "2000-02-29T12:34:56.123456Z");
        assert_eq!(shown(FIRST), "0000-01-01T00:00:00.123456Z");
        assert_eq!(shown(LAST), "9999-12-31T23:59:59.123456Z");
        assert_eq!(shown(GO_ZERO), "0001-01-01T00:00:00.123456Z");
        assert_eq!(Timestamp { seconds: LAST + 1, nanos: 0 }.format(false), None);
        assert_eq!(Timestamp { seconds: 0, nanos: 1_000_000_000 }.format(false), None);
    }

    #[test]
    fn every_day_survives_the_round_trip() {
        for day in (FIRST / DAY..=LAST / DAY).step_by(7) {
            let time = Timestamp { seconds: day * DAY + 3661, nanos: 0 };
            assert_eq!(Timestamp::parse(&text(time, false)), Some(time));
        }
    }

    #[test]
    fn offsets_and_decimals_are_read() {
        let parsed = |text: &str| Timestamp::parse(text).map(|time| (time.seconds, time.nanos));
        assert_eq!(parsed("1970-01-01T02:00:00.5+02:00"), Some((0, 500_000_000)));
        assert_eq!(parsed("1969-12-31T23:30:00-00:30"), Some((0, 0)));
        assert_eq!(parsed("1970-01-01T00:00:01.1234567891Z"), Some((1, 123_456_789)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "Z",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-13-01T00:00:00Z",
            "1970-02-29T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00+1:00",
            "1970-01-01T00:00:00Zé",
            "197é-01-01T00:00:00Z",
            "1970-01-01T00:00:0éZ",
            "1970-01-01T00:00:00é",
            "+970-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text:?}");
        }
    }
}

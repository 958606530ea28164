//! Properties of the server itself: its version, its latency, its clock.

use std::time::{Duration, Instant};

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube_informer::Error;

use super::ask::ask;
use crate::connect::Cluster;

/// The number of requests that are timed.
const REQUESTS: usize = 5;

/// The measured properties of a server.
pub(super) struct Server {
    pub(super) version: String,
    pub(super) best: Duration,
    pub(super) median: Duration,
    /// How far the server's clock is ahead of the local one, to the second, if the server sends the
    /// time.
    pub(super) ahead: Option<SignedDuration>,
}

impl Server {
    pub(super) async fn ask(cluster: &Cluster) -> Result<Self, Error> {
        let answer = ask(&cluster.client, "/version").await?;
        let version = answer.body["gitVersion"].as_str().unwrap_or("no version").to_owned();
        let mut times = Vec::new();
        let mut ahead = None;
        for _ in 0..REQUESTS {
            let (begin, before) = (Instant::now(), Timestamp::now());
            let answer = ask(&cluster.client, "/version").await?;
            times.push(begin.elapsed());
            let date = answer.headers.get("date").and_then(|date| date.to_str().ok());
            let date = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
            ahead = date.map(|date| skew(date, before, Timestamp::now()));
        }
        times.sort_unstable();
        Ok(Self { version, best: times[0], median: times[times.len() / 2], ahead })
    }
}

/// Returns the least clock skew that explains a `Date` header, or zero if none is needed. The
/// header is truncated to a second: the server's clock was within that second while the local one
/// was between `before` and `after`.
fn skew(date: Timestamp, before: Timestamp, after: Timestamp) -> SignedDuration {
    // A server may send any date, including the last that can be represented.
    let latest = date.checked_add(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MAX);
    if latest < before {
        latest.duration_since(before)
    } else if date > after {
        date.duration_since(after)
    } else {
        SignedDuration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_as_far_as_a_header_says() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        assert_eq!(skew(at(5000), at(5900), at(5950)), SignedDuration::ZERO);
        assert_eq!(skew(at(5000), at(4900), at(5050)), SignedDuration::ZERO);
        assert_eq!(skew(at(5000), at(9000), at(9100)), SignedDuration::from_secs(-3));
        assert_eq!(skew(at(5000), at(1000), at(2000)), SignedDuration::from_secs(3));
        assert!(skew(Timestamp::MAX, at(1000), at(2000)).is_positive());
        assert!(skew(Timestamp::MIN, at(1000), at(2000)).is_negative());
    }
}

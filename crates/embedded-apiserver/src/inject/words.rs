//! The vocabulary of faults as text, for error messages and for displaying rules.

use std::fmt;
use std::time::Duration;

use super::Faults;
use crate::faults::{After, Fault, Rule};
use crate::limits::FAULT_BYTES_MAX;

pub(super) const BEGINNINGS: &str = "a rule begins with: any, get, list, watch, create, update, patch, \
     delete, deletecollection; at once happen: compact, drop-watches, restart, down=TIME, snapshot=NAME, \
     rollback=SNAPSHOT [silent], control-plane-upgrade, flaky-network=PROBABILITY";

pub(super) const REST: &str = "faults: refused, down=TIME, reset, lost-answer, half-open, \
     stalled-headers, stalled-body, slow-bytes=BYTES/TIME, latency=TIME, status=CODE \
     [retry-after=TEXT], gone, html=CODE, content-type=TYPE, stale-list=VERSIONS, compact, \
     drop-watches, restart, rollback=SNAPSHOT [silent], drop-event, duplicate-event, reorder-events, \
     bookmark-lost, end-bookmark-missing, wrong-type, oversized=BYTES, too-deep=LEVELS, truncated, \
     split-utf8, malformed-utf8; options: namespace=NAME, group=NAME, user=NAME, nth=N, \
     after-events=N, after-bytes=N, times=N, always, probability=P";

impl Faults<'_> {
    /// The syntax of [`inject_text`](Self::inject_text), as help text.
    pub const TEXT_FORMS: &'static str = "\
A rule: WHICH [RESOURCE] [OPTION...] FAULT
  WHICH     any, get, list, watch, create, update, patch, delete, deletecollection
  RESOURCE  pods, pods/status, deployments.apps
  OPTION    namespace=NAME  group=NAME  user=NAME    only requests about these, of this user
            nth=N                                    from the n-th matching request on
            after-events=N  after-bytes=N            in the middle of an answer
            times=N  always                          how often: once if not said
            probability=P                            by chance, between 0 and 1
  FAULT     refused  down=TIME  reset  lost-answer  half-open  stalled-headers  stalled-body
            slow-bytes=BYTES/TIME  latency=TIME
            status=CODE [retry-after=TEXT]  gone  html=CODE  content-type=TYPE  stale-list=VERSIONS
            compact  drop-watches  restart  rollback=SNAPSHOT [silent]
            drop-event  duplicate-event  reorder-events  bookmark-lost  end-bookmark-missing
            wrong-type  oversized=BYTES  too-deep=LEVELS  truncated  split-utf8  malformed-utf8

At once: compact, drop-watches, restart, down=TIME, snapshot=NAME, rollback=SNAPSHOT [silent],
         control-plane-upgrade, flaky-network=PROBABILITY

TIME is 200ms, 1.5s, 2m or 1h; BYTES is 1000, 64Ki or 2Mi.
";
}

pub(super) fn time_form(key: &str) -> &'static str {
    match key {
        "slow-bytes" => "bytes and a time, such as 1/100ms",
        _ => "a time up to 24h, such as 200ms, 5s or 2m",
    }
}

pub(super) fn bytes_form(key: &str) -> String {
    match key {
        "slow-bytes" => time_form(key).to_owned(),
        _ => format!("bytes up to {}Mi, such as 1000, 64Ki or 2Mi", FAULT_BYTES_MAX >> 20),
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filter = &self.filter;
        f.write_str(filter.verbs.first().map_or("any", |verb| verb.as_str()))?;
        let mut group = filter.group.as_deref();
        if let Some(resource) = &filter.resource {
            let (plural, subresource) = resource.split_once('/').unzip();
            let plural = plural.unwrap_or(resource);
            write!(f, " {plural}")?;
            if let Some(group) = group.take_if(|group| !group.is_empty()) {
                write!(f, ".{group}")?;
            }
            if let Some(subresource) = subresource {
                write!(f, "/{subresource}")?;
            }
        }
        let options = [
            ("group", group),
            ("namespace", filter.namespace.as_deref()),
            ("user", filter.user.as_deref()),
        ];
        for (key, value) in options {
            if let Some(value) = value {
                write!(f, " {key}={value}")?;
            }
        }
        if let Some(nth) = self.nth {
            write!(f, " nth={nth}")?;
        }
        match self.after {
            After::Unsaid => {}
            After::Events(n) => write!(f, " after-events={n}")?,
            After::Bytes(n) => write!(f, " after-bytes={n}")?,
        }
        write!(f, " {}", Shown(&self.fault))?;
        match self.remaining {
            None => f.write_str(" always")?,
            Some(1) => {}
            Some(times) => write!(f, " times={times}")?,
        }
        match self.probability {
            Some(probability) => write!(f, " probability={probability}"),
            None => Ok(()),
        }
    }
}

/// A fault with its value.
struct Shown<'a>(&'a Fault);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())?;
        let lossy =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        match self.0 {
            Fault::Down(time) | Fault::Latency(time) => write!(f, "={}", shown_time(*time)),
            Fault::SlowBytes { bytes, every } => write!(f, "={bytes}/{}", shown_time(*every)),
            Fault::Status { code, retry_after } => {
                write!(f, "={}", code.as_u16())?;
                match retry_after {
                    Some(value) => write!(f, " retry-after={}", lossy(value)),
                    None => Ok(()),
                }
            }
            Fault::Html(code) => write!(f, "={}", code.as_u16()),
            Fault::ContentType(value) => write!(f, "={}", lossy(value)),
            Fault::StaleList { versions } => write!(f, "={versions}"),
            Fault::Rollback { silent: true, .. } => f.write_str(" silent"),
            Fault::Oversized { bytes } => write!(f, "={bytes}"),
            Fault::TooDeep { levels } => write!(f, "={levels}"),
            _ => Ok(()),
        }
    }
}

fn shown_time(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{}s", time.as_secs())
    } else {
        format!("{}ms", time.as_secs_f64() * 1000.0)
    }
}

//! The report, for people and for programs.

use std::time::Duration;

use kube_informer::{Error, State};
use serde_json::{Value, json};

use super::bookmarks::{Bookmarks, USUAL};
use super::server::Server;
use super::types::{Checked, Streams};
use crate::connect::Cluster;
use crate::plain::{self, Asked};
use crate::status::grouped;
use crate::table::Table;

pub(super) struct Report<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) namespace: Option<&'a str>,
    pub(super) server: Server,
    pub(super) bookmarks: Bookmarks,
    pub(super) types: Vec<Checked>,
}

const STREAMING_SINCE: &str =
    "the feature gate WatchList is on by default in Kubernetes 1.32, and from 1.34 on";

/// The columns that are omitted if there is no room: a line above says whether lists stream, and
/// the sizes of single objects are details.
const DETAILS: [&str; 3] = ["STREAM", "JSON", "CACHED"];

const EXPLANATION: &str = "\
CACHE is what an informer of all of them takes, METADATA if it keeps only their
metadata; by a sample of up to 500 objects.";
const EXPLANATION_EACH: &str = " JSON and CACHED are of one object.";

impl Report<'_> {
    /// Renders the report for people. Without a width, nothing is omitted.
    pub(super) fn text(&self, width: Option<usize>) -> Result<String, String> {
        let mut text = String::new();
        for (title, words) in [
            ("server", format!("{} at {}", self.server.version, self.cluster.place)),
            ("round trip", self.round_trip()),
            ("clock", self.clock()),
            ("versions", self.versions()),
            ("list streams", self.streams()),
            ("bookmarks", self.bookmarks()),
        ] {
            text.push_str(&format!("{title:<14}{words}\n"));
        }
        text.push('\n');
        let mut out = Vec::new();
        let table = self.table().fit(width, &DETAILS);
        table.write(&mut out, true).map_err(|error| error.to_string())?;
        text.push_str(&String::from_utf8_lossy(&out));
        text.push_str(EXPLANATION);
        text.push_str(if table.has("CACHED") { EXPLANATION_EACH } else { "" });
        text.push('\n');
        for problem in self.problems() {
            text.push_str(&format!("\n{problem}\n"));
        }
        Ok(text)
    }

    fn round_trip(&self) -> String {
        let Server { best, median, .. } = self.server;
        let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
        format!("{} usually, {} at best", millis(median), millis(best))
    }

    fn clock(&self) -> String {
        match self.server.ahead {
            None => "the server does not say".to_owned(),
            Some(ahead) if ahead.is_zero() => "the same as here, to a second".to_owned(),
            Some(ahead) => format!(
                "{} s {} of the one here: ages are off by that",
                ahead.abs().as_secs(),
                if ahead.is_positive() { "ahead" } else { "behind" }
            ),
        }
    }

    fn versions(&self) -> String {
        let odd: Vec<_> = self.types.iter().filter(|each| each.decimal == Some(false)).collect();
        let names: Vec<_> = odd.iter().map(|each| each.of.name()).collect();
        if names.is_empty() {
            return "numbers: caches can be compared, and one can wait for a version".to_owned();
        }
        format!("no numbers of {}: nobody can tell which of two is newer", names.join(", "))
    }

    fn streams(&self) -> String {
        let with = |of: fn(&Streams) -> bool| self.types.iter().find(|each| of(&each.streams));
        if let Some(refused) = with(|streams| matches!(streams, Streams::Refused(_))) {
            let why = match &refused.streams {
                Streams::Refused(why) => why.as_str(),
                _ => "",
            };
            return format!("no, lists come in pages instead: {why}; {STREAMING_SINCE}");
        }
        if with(|streams| matches!(streams, Streams::Ignored)).is_some() {
            return format!("no, lists come in pages instead; {STREAMING_SINCE}");
        }
        if with(|streams| matches!(streams, Streams::Yes)).is_some() {
            return "yes: the first list comes as a watch, object by object".to_owned();
        }
        "not tried: nothing could be watched".to_owned()
    }

    fn bookmarks(&self) -> String {
        let Bookmarks { of, watched, seen } = &self.bookmarks;
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        let watched_for = seconds(*watched);
        let Some(of) = of else { return "not tried: nothing could be watched".to_owned() };
        match (seen.as_slice(), self.bookmarks.interval()) {
            ([], _) if *watched < USUAL => format!(
                "none of {of} in {watched_for}; servers send about one a minute: --for 75s sees it"
            ),
            ([], _) => format!(
                "none of {of} in {watched_for}: a watch that has died silently is noticed late"
            ),
            (all, Some(interval)) => {
                format!("{} of {of} in {watched_for}, one every {}", all.len(), seconds(interval))
            }
            ([first, ..], None) if *watched < USUAL => format!(
                "they come: one of {of} after {}; --for 150s measures how often",
                seconds(*first)
            ),
            ([first, ..], None) => {
                format!("one of {of} in {watched_for}, after {}", seconds(*first))
            }
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::plain(&[
            "TYPE", "LIST", "WATCH", "STREAM", "OBJECTS", "JSON", "CACHED", "CACHE", "METADATA",
        ]);
        let (mut cache, mut metadata) = (0, 0);
        for each in &self.types {
            let mut row = vec![
                each.of.name(),
                verdict(Some(&each.list)),
                verdict(each.watch.as_ref()),
                match each.streams {
                    Streams::Yes => "yes",
                    Streams::Refused(_) | Streams::Ignored => "no",
                    Streams::Untried => "-",
                }
                .to_owned(),
            ];
            if let Some(sample) = &each.sample {
                let more = if sample.at_least { "+" } else { "" };
                row.push(format!("{}{more}", grouped(sample.objects)));
                let sizes = [sample.json, sample.cached, sample.cache(), sample.metadata_cache()];
                row.extend(
                    sizes.map(|size| if size == 0 { "-".into() } else { plain::bytes(size) }),
                );
                cache += sample.cache();
                metadata += sample.metadata_cache();
            } else {
                row.extend(["-"; 5].map(str::to_owned));
            }
            table.push(&row);
        }
        if self.types.len() > 1 {
            let mut row = vec!["all of them".to_owned()];
            row.extend([""; 6].map(str::to_owned));
            row.extend([cache, metadata].map(plain::bytes));
            table.push(&row);
        }
        table
    }

    /// Describes the problems, and how to fix them.
    fn problems(&self) -> Vec<String> {
        let namespaces: Vec<String> = self.namespace.iter().map(ToString::to_string).collect();
        let mut problems = Vec::new();
        let mut forbidden: Vec<(&Checked, &Error)> = Vec::new();
        for each in &self.types {
            for (error, during) in each.errors() {
                if error.is_forbidden() {
                    forbidden.push((each, error));
                    continue;
                }
                let asked = Asked {
                    of: &each.of,
                    namespaces: &namespaces,
                    place: &self.cluster.place,
                    during: Some(&during),
                };
                let problem = plain::message(error, &asked);
                problems.push(format!("{} cannot be {}: {problem}", each.of.name(), done(&during)));
            }
        }
        problems.extend(self.grants(&forbidden));
        problems
    }

    /// Suggests one role for all missing permissions, and a separate one for those in a namespace.
    fn grants(&self, forbidden: &[(&Checked, &Error)]) -> Vec<String> {
        let mut grants = Vec::new();
        for namespace in [self.namespace, None] {
            let here = forbidden
                .iter()
                .filter(|(each, _)| self.namespace.filter(|_| each.of.namespaced) == namespace);
            let mut names: Vec<_> = here.clone().map(|(each, _)| each.of.name()).collect();
            names.dedup();
            let said = here.clone().find_map(|(_, error)| error.status());
            let said = said.map(|status| status.message.as_str()).unwrap_or_default();
            if !names.is_empty() {
                let may_not = format!("you may not list and watch {}: {said}", names.join(", "));
                grants.push(format!(
                    "{may_not}\n{}",
                    plain::granting(&names.join(","), said, namespace)
                ));
            }
            if self.namespace.is_none() {
                break;
            }
        }
        grants
    }

    pub(super) fn json(&self) -> Result<String, String> {
        let millis = |time: Duration| (time.as_secs_f64() * 1_000_000.0).round() / 1000.0;
        let Server { version, best, median, ahead } = &self.server;
        let types: Vec<_> = self.types.iter().map(Checked::json).collect();
        let report = json!({
            "server": {
                "address": self.cluster.place.address,
                "origin": self.cluster.place.origin,
                "version": version,
                "roundTripMillis": { "best": millis(*best), "median": millis(*median) },
                "clockAheadSeconds": ahead.map(|ahead| ahead.as_secs_f64()),
            },
            "namespace": self.namespace,
            "bookmarks": {
                "type": self.bookmarks.of,
                "watchedSeconds": self.bookmarks.watched.as_secs_f64(),
                "afterSeconds": self.bookmarks.seen.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
            },
            "types": types,
        });
        serde_json::to_string_pretty(&report)
            .map(|text| format!("{text}\n"))
            .map_err(|error| error.to_string())
    }
}

impl Checked {
    fn errors(&self) -> Vec<(&Error, State)> {
        let list = self.list.as_ref().err().map(|error| (error, State::Listing));
        let watch = self.watch.as_ref().and_then(|watch| watch.as_ref().err());
        list.into_iter().chain(watch.map(|error| (error, State::Watching))).collect()
    }

    fn json(&self) -> Value {
        let problem = |result: Option<&Error>| result.map(ToString::to_string);
        let mut json = json!({
            "type": self.of.name(),
            "apiVersion": self.of.api_version(),
            "list": self.list.is_ok(),
            "watch": matches!(self.watch, Some(Ok(()))),
            "streamsLists": match self.streams {
                Streams::Yes => Some(true),
                Streams::Refused(_) | Streams::Ignored => Some(false),
                Streams::Untried => None,
            },
            "decimalVersions": self.decimal,
            "listProblem": problem(self.list.as_ref().err()),
            "watchProblem": problem(self.watch.as_ref().and_then(|watch| watch.as_ref().err())),
        });
        if let Some(sample) = &self.sample {
            json["objects"] = sample.objects.into();
            json["objectsAtLeast"] = sample.at_least.into();
            json["sampled"] = sample.sampled.into();
            json["jsonBytesEach"] = sample.json.into();
            json["cachedBytesEach"] = sample.cached.into();
            json["cacheBytes"] = sample.cache().into();
            json["metadataCacheBytes"] = sample.metadata_cache().into();
        }
        json
    }
}

fn done(during: &State) -> &'static str {
    if matches!(during, State::Watching) { "watched" } else { "listed" }
}

/// Returns `yes`, or the status code of the error.
fn verdict(result: Option<&Result<(), Error>>) -> String {
    match result {
        None => "-".to_owned(),
        Some(Ok(())) => "yes".to_owned(),
        Some(Err(error)) => match error.status() {
            Some(status) => status.code.to_string(),
            None => "no".to_owned(),
        },
    }
}

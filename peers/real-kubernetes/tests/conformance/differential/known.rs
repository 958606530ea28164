//! Known differences and their reasons. `docs/differences.md` is generated from them.

mod absent;
mod document;
mod on_purpose;
mod simplified;

use super::compare::Difference;

/// Differences with the same reason.
pub(crate) struct Known {
    /// The difference, as a user of the embedded server notices it.
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
    /// Requests (`topic/name`) and places in their responses, as in [`Difference`]. `*` matches any text.
    pub(crate) places: &'static [(&'static str, &'static str)],
}

/// All known differences, by category.
pub(crate) const ALL: [(&str, &[Known]); 3] = [
    ("On purpose", on_purpose::KNOWN),
    ("Simplified", simplified::KNOWN),
    ("Absent", absent::KNOWN),
];

type Place = (&'static str, &'static str);

/// Returns every place, with its difference.
fn places() -> impl Iterator<Item = (&'static str, Place)> {
    let known = ALL.into_iter().flat_map(|(_, known)| known);
    known.flat_map(|known| known.places.iter().map(|place| (known.what, *place)))
}

pub(crate) fn covers(difference: &Difference) -> bool {
    places().any(|(_, place)| is_at(place, difference))
}

fn is_at((request, place): Place, difference: &Difference) -> bool {
    fits(request, &difference.request) && fits(place, &difference.place)
}

/// Returns the places of a topic where there is no difference any more.
pub(crate) fn stale(topic: &str, found: &[Difference]) -> Vec<(&'static str, Place)> {
    let of_topic = places().filter(|(_, (request, _))| request.split('/').next() == Some(topic));
    of_topic.filter(|(_, place)| !found.iter().any(|found| is_at(*place, found))).collect()
}

/// Returns whether a pattern with `*` matches a text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| fits(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::differential::compare::differences;

    #[test]
    fn what_is_known_is_covered_and_is_stale_where_nothing_differs() {
        let (real, embedded) = (json!({"code": 500}), json!({"code": 400}));
        let found = differences("create/with-a-version", &real, &embedded);
        assert!(found.iter().all(covers));
        assert!(!differences("create/plain", &real, &embedded).iter().any(covers));
        let place = ("create/with-a-version", "code");
        let is_stale = |found: &[Difference]| stale("create", found).iter().any(|it| it.1 == place);
        assert!(!is_stale(&found));
        assert!(is_stale(&[]));
        assert!(stale("none", &[]).is_empty());
    }

    #[test]
    fn a_star_is_for_any_text() {
        for (pattern, text) in
            [("a*c", "abc"), ("a*c", "ac"), ("*", ""), ("a*b*c", "axxbxc"), ("a", "a")]
        {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*c", "abd"), ("a", "ab"), ("a*b*c", "acb"), ("*b", "bc")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}

//! Noise: fields that change all the time and carry no information.

use super::Noise;
use super::place::Place;

/// Times in a status, which say when it was last checked or that the field beside them is new.
const TIMES: &[&str] =
    &["lastHeartbeatTime", "lastProbeTime", "lastTransitionTime", "lastUpdateTime"];

/// Annotations that duplicate the object, or say when another object changed.
const ANNOTATIONS: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "endpoints.kubernetes.io/last-change-trigger-time",
];

/// Returns whether a change at this place is noise.
///
/// The generation counts the changes of the spec, which are shown themselves, and the observed
/// generation follows it. Both are omitted. If nothing else has changed, they are named as the
/// fields that did, so that a user who waits for a controller to catch up sees that it has.
pub(super) fn is_noise(place: &Place<'_>) -> bool {
    let fields: Vec<&str> = place.fields().collect();
    match fields.as_slice() {
        ["metadata", "managedFields" | "resourceVersion" | "generation" | "selfLink"]
        | ["spec", "renewTime"] => true,
        ["metadata", "annotations", name] => ANNOTATIONS.contains(name),
        ["status", .., name] => TIMES.contains(name) || *name == "observedGeneration",
        _ => false,
    }
}

/// Returns whether this field is omitted from a value that is shown.
pub(super) fn is_left_out(name: &str) -> bool {
    TIMES.contains(&name)
}

/// The number of fields to name. If there are more, they are counted.
const NAMED: usize = 3;

/// Returns a sentence such as
/// `only metadata.resourceVersion and status.conditions[Ready].lastHeartbeatTime changed`.
pub(super) fn sentence(noise: &[Noise<'_>]) -> Option<String> {
    // Fields that change with every update come last.
    let always =
        |name: &String| name == "metadata.resourceVersion" || name == "metadata.managedFields";
    let (last, mut names): (Vec<_>, Vec<_>) = names(noise).into_iter().partition(always);
    names.extend(last);
    let more = match names.len() {
        0 => return None,
        count if count > NAMED + 1 => count - NAMED,
        _ => 0,
    };
    if more > 0 {
        names.truncate(NAMED);
        names.push(format!("{more} more"));
    }
    let last = names.pop()?;
    let names = names.join(", ");
    let and = if names.is_empty() { "" } else { " and " };
    Some(format!("only {names}{and}{last} changed"))
}

/// Names the changed fields. A field of several list elements is named once.
fn names(noise: &[Noise<'_>]) -> Vec<String> {
    let places: Vec<(&Place<'_>, &str)> = noise
        .iter()
        .map(|noise| match noise {
            Noise::Value(change) => (&change.place, ""),
            Noise::Order(place) => (place, "the order of "),
        })
        .collect();
    let each: Vec<String> = places.iter().map(|(place, _)| place.in_each()).collect();
    let mut names = Vec::new();
    for ((place, order), in_each) in places.iter().zip(&each) {
        let several = each.iter().filter(|other| *other == in_each).count() > 1;
        let place = if several { in_each.clone() } else { place.to_string() };
        let name = format!("{order}{}", place.strip_prefix('.').unwrap_or(&place));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

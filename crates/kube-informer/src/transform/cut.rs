//! Cuts fields out of JSON, for any number of paths in one pass.

use std::ops::Range;

use crate::json::{self, Children, Syntax};
use crate::object::Step;
use crate::{Error, FieldPath, Result};

/// Returns the JSON without these fields; `None` if it has none of them.
pub(super) fn without(json: &[u8], paths: &[FieldPath]) -> Result<Option<Vec<u8>>> {
    cut(json, paths, Found::Cut)
}

/// Returns the JSON with only these fields; `None` if it has no others.
pub(super) fn only<'p>(
    json: &[u8],
    paths: impl IntoIterator<Item = &'p FieldPath>,
) -> Result<Option<Vec<u8>>> {
    cut(json, paths, Found::Kept)
}

/// The treatment of fields that the paths lead to; all other fields get the opposite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Cut,
    Kept,
}

fn cut<'p>(
    json: &[u8],
    paths: impl IntoIterator<Item = &'p FieldPath>,
    found: Found,
) -> Result<Option<Vec<u8>>> {
    let paths = paths.into_iter().map(FieldPath::steps).collect::<Result<Vec<_>>>()?;
    let mut cutter = Cutter { json, found, cuts: Vec::new() };
    let end = cutter.value(0, &paths);
    end.map_err(|syntax| Error::invalid(format!("the object is not valid JSON: {syntax}")))?;
    Ok((!cutter.cuts.is_empty()).then(|| cutter.rest()))
}

struct Cutter<'a> {
    json: &'a [u8],
    found: Found,
    /// In order, and not nested.
    cuts: Vec<Range<usize>>,
}

impl Cutter<'_> {
    /// Cuts inside a value, following the rest of the paths, and returns the value's end. The
    /// recursion is no deeper than the longest path.
    fn value(&mut self, at: usize, paths: &[&[Step]]) -> Result<usize, Syntax> {
        let json = self.json;
        let Some(mut children) = Children::of(json, at) else { return json::skip(json, at) };
        let (mut nth, mut kept) = (0, false);
        while let Some(head) = children.head()? {
            let object = children.is_object();
            let on = paths.iter().filter_map(|steps| {
                let (step, on) = steps.split_first()?;
                step.leads_to(json, &head, object, nth).then_some(on)
            });
            let on: Vec<&[Step]> = on.collect();
            let (cut, deeper) = self.decide(head.value, &on);
            let end =
                if deeper { self.value(head.value, &on)? } else { json::skip(json, head.value)? };
            let child = children.close(head, end)?;
            if cut {
                self.cuts.push(child.extent(!kept));
            }
            kept |= !cut;
            nth += 1;
        }
        children.end()
    }

    /// Returns whether to cut a child and, if not, whether to descend into it.
    fn decide(&self, value: usize, on: &[&[Step]]) -> (bool, bool) {
        let is_found = on.iter().any(|steps| steps.is_empty());
        let leads_deeper =
            !is_found && !on.is_empty() && matches!(self.json.get(value), Some(b'{' | b'['));
        match self.found {
            Found::Cut => (is_found, leads_deeper),
            Found::Kept => (!is_found && !leads_deeper, leads_deeper),
        }
    }

    fn rest(&self) -> Vec<u8> {
        let cut: usize = self.cuts.iter().map(Range::len).sum();
        let mut rest = Vec::with_capacity(self.json.len() - cut);
        json::copy_without(self.json, 0..self.json.len(), &self.cuts, &mut rest);
        rest
    }
}

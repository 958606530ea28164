//! JSON as ranges of bytes, without building values.
//!
//! Everything here validates as RFC 8259 requires, takes one pass, tracks nesting in a few words instead of
//! on the thread's stack, and accepts any bytes. Only UTF-8 in strings is not checked; that is left to the
//! code that reads them. [`ValueEnd`] is the exception: it checks next to nothing, and finds the end of a
//! value that is still arriving, so that a bad one can be skipped.

mod children;
mod text;
mod value_end;

use std::ops::Range;

pub(crate) use children::{Children, Head};
pub(crate) use text::{is_key, text};
pub(crate) use value_end::ValueEnd;

use crate::Error;

/// `serde_json` decodes 127 levels; deeper objects can be stored, but not decoded as a whole.
pub(crate) const DEPTH_MAX: usize = 512;

/// The position at which bytes stop being JSON, and what was expected there. Never what is there instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{expected} expected at byte {at}")]
pub(crate) struct Syntax {
    pub(crate) at: usize,
    pub(crate) expected: &'static str,
}

impl From<Syntax> for Error {
    fn from(syntax: Syntax) -> Self {
        Self::protocol(format!("not JSON: {syntax}"))
    }
}

fn bad<T>(at: usize, expected: &'static str) -> Result<T, Syntax> {
    Err(Syntax { at, expected })
}

/// Returns the end of the value that starts at `at`, or after white space from there.
pub(crate) fn skip(json: &[u8], at: usize) -> Result<usize, Syntax> {
    let mut open = Open::default();
    let mut at = space(json, at);
    loop {
        at = match json.get(at) {
            Some(b'"') => string(json, at + 1)?,
            Some(b'{') => match enter(json, at, b'}') {
                Ok(end) => end,
                Err(first) => {
                    open.push(true, at)?;
                    at = key(json, first)?;
                    continue;
                }
            },
            Some(b'[') => match enter(json, at, b']') {
                Ok(end) => end,
                Err(first) => {
                    open.push(false, at)?;
                    at = first;
                    continue;
                }
            },
            _ => scalar(json, at)?,
        };
        // A value has ended, and perhaps the values that contain it.
        loop {
            let Some(object) = open.innermost() else { return Ok(at) };
            at = space(json, at);
            match (json.get(at), object) {
                (Some(b','), true) => {
                    at = key(json, space(json, at + 1))?;
                    break;
                }
                (Some(b','), false) => {
                    at = space(json, at + 1);
                    break;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    open.pop();
                    at += 1;
                }
                _ => return bad(at, if object { "',' or '}'" } else { "',' or ']'" }),
            }
        }
    }
}

/// Checks that the whole text is one value, apart from surrounding white space, and returns its range.
pub(crate) fn whole(json: &[u8]) -> Result<Range<usize>, Syntax> {
    let start = space(json, 0);
    let end = skip(json, start)?;
    at_end(json, end)?;
    Ok(start..end)
}

/// Checks that only white space follows.
pub(crate) fn at_end(json: &[u8], at: usize) -> Result<(), Syntax> {
    let at = space(json, at);
    if at == json.len() { Ok(()) } else { bad(at, "the end") }
}

/// Returns the position of the next byte that is not white space.
pub(crate) fn space(json: &[u8], mut at: usize) -> usize {
    while matches!(json.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Returns the end of an empty object or array that starts at `at`, or (as `Err`) where its first child starts.
fn enter(json: &[u8], at: usize, close: u8) -> Result<usize, usize> {
    let first = space(json, at + 1);
    if json.get(first) == Some(&close) { Ok(first + 1) } else { Err(first) }
}

/// Reads a key and its colon, and returns where the value starts.
fn key(json: &[u8], at: usize) -> Result<usize, Syntax> {
    if json.get(at) != Some(&b'"') {
        return bad(at, "a key");
    }
    colon(json, string(json, at + 1)?)
}

/// Returns where the value starts whose key ended at `at`.
fn colon(json: &[u8], at: usize) -> Result<usize, Syntax> {
    let at = space(json, at);
    if json.get(at) == Some(&b':') { Ok(space(json, at + 1)) } else { bad(at, "':'") }
}

/// Returns the end of a string, after its closing quote; `at` is after its opening quote.
fn string(json: &[u8], mut at: usize) -> Result<usize, Syntax> {
    loop {
        at = plain(json, at);
        match json.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape(json, at + 1)?,
            _ => return bad(at, "the rest of a string"),
        }
    }
}

/// Returns the position of the next quote, backslash or control character, or the end.
///
/// Examines eight bytes at a time. Most strings in an object are too short for a call to memchr to pay off,
/// and memchr does not find control characters, which are invalid in strings.
fn plain(json: &[u8], mut at: usize) -> usize {
    while let Some(eight) = json.get(at..at + 8).and_then(|eight| eight.try_into().ok()) {
        match special(u64::from_le_bytes(eight)) {
            0 => at += 8,
            found => return at + found.trailing_zeros() as usize / 8,
        }
    }
    while json.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at
}

/// Returns the high bit of the first byte that is a quote, a backslash or a control character. Because of the
/// borrow, the bits of later bytes may be wrong, so only the first one counts.
fn special(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let quote = eight ^ (ONES * u64::from(b'"'));
    let backslash = eight ^ (ONES * u64::from(b'\\'));
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    (zero(quote) | zero(backslash) | (eight.wrapping_sub(ONES * 0x20) & !eight)) & HIGHS
}

/// Returns the position after an escape; `at` is after the backslash.
fn escape(json: &[u8], at: usize) -> Result<usize, Syntax> {
    match json.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => match json.get(at + 1..at + 5) {
            Some(four) if four.iter().all(u8::is_ascii_hexdigit) => Ok(at + 5),
            _ => bad(at, "four hexadecimal digits"),
        },
        _ => bad(at, "an escape"),
    }
}

/// Returns the end of a number, or of `true`, `false` or `null`.
fn scalar(json: &[u8], at: usize) -> Result<usize, Syntax> {
    let word = |word: &[u8]| match json.get(at..at + word.len()) {
        Some(found) if found == word => Ok(at + word.len()),
        _ => bad(at, "a value"),
    };
    match json.get(at) {
        Some(b'n') => word(b"null"),
        Some(b't') => word(b"true"),
        Some(b'f') => word(b"false"),
        Some(b'-' | b'0'..=b'9') => number(json, at),
        _ => bad(at, "a value"),
    }
}

fn number(json: &[u8], mut at: usize) -> Result<usize, Syntax> {
    if json.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if json.get(at) == Some(&b'0') { at + 1 } else { digits(json, at)? };
    if json.get(at) == Some(&b'.') {
        at = digits(json, at + 1)?;
    }
    if matches!(json.get(at), Some(b'e' | b'E')) {
        let signed = matches!(json.get(at + 1), Some(b'+' | b'-'));
        at = digits(json, at + 1 + usize::from(signed))?;
    }
    Ok(at)
}

/// Returns the end of one or more digits.
fn digits(json: &[u8], at: usize) -> Result<usize, Syntax> {
    let rest = json.get(at..).unwrap_or_default();
    match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => bad(at, "a digit"),
        count => Ok(at + count),
    }
}

/// Copies a part of the JSON without the cuts, which are in order and within that part.
pub(crate) fn copy_without(
    json: &[u8],
    part: Range<usize>,
    cuts: &[Range<usize>],
    copy: &mut Vec<u8>,
) {
    let mut from = part.start;
    for cut in cuts {
        copy.extend_from_slice(&json[from..cut.start]);
        from = cut.end;
    }
    copy.extend_from_slice(&json[from..part.end]);
}

/// The open objects (set) and arrays (not set), innermost last.
#[derive(Default)]
struct Open {
    depth: usize,
    objects: [u64; DEPTH_MAX / 64],
}

impl Open {
    fn push(&mut self, object: bool, at: usize) -> Result<(), Syntax> {
        let Some(word) = self.objects.get_mut(self.depth / 64) else {
            return bad(at, "at most 512 levels of nesting");
        };
        let bit = 1 << (self.depth % 64);
        *word = if object { *word | bit } else { *word & !bit };
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn innermost(&self) -> Option<bool> {
        let last = self.depth.checked_sub(1)?;
        Some(self.objects[last / 64] >> (last % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests;

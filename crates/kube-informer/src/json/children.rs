//! The members of an object, or the elements of an array.

use std::ops::Range;

use super::{Syntax, bad, colon, skip, space, string};

/// An iterator over an object or an array.
///
/// As an iterator it skips, and thereby checks, every value. To look into a value instead of skipping it, use
/// [`head`](Self::head) and [`close`](Self::close), so that nothing is read twice.
///
/// After an error, the iteration is over.
#[derive(Clone, Debug)]
pub(crate) struct Children<'a> {
    json: &'a [u8],
    /// The start of the next child, or the position after the closing bracket.
    at: usize,
    /// The end of the previous token: the opening bracket or the last value.
    before: usize,
    object: bool,
    open: bool,
}

/// The start of a child.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The position of the child, including its key.
    pub(crate) start: usize,
    /// The key between its quotes, as it is written; empty for an element of an array.
    pub(crate) key: Range<usize>,
    /// The position of its value.
    pub(crate) value: usize,
}

/// A child: a member of an object or an element of an array.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The key between its quotes, as it is written; empty for an element of an array.
    pub(crate) key: Range<usize>,
    /// The value.
    pub(crate) value: Range<usize>,
    start: usize,
    before: usize,
    next: usize,
}

impl Member {
    /// Returns the range to cut so that the child is removed together with one comma. With `first`, all
    /// children before this one are cut too, and the comma is the one after it.
    pub(crate) fn extent(&self, first: bool) -> Range<usize> {
        if first { self.start..self.next } else { self.before..self.value.end }
    }
}

impl<'a> Children<'a> {
    /// Returns the children of the value at `at`, or `None` if it is neither an object nor an array.
    pub(crate) fn of(json: &'a [u8], at: usize) -> Option<Self> {
        let at = space(json, at);
        let object = match json.get(at)? {
            b'{' => true,
            b'[' => false,
            _ => return None,
        };
        let before = at + 1;
        Some(Self { json, at: space(json, before), before, object, open: true }.unless_empty())
    }

    /// Returns the members of the value at `at`, or `None` if it is not an object.
    pub(crate) fn of_object(json: &'a [u8], at: usize) -> Option<Self> {
        Self::of(json, at).filter(|children| children.object)
    }

    /// Returns the elements of the value at `at`, or `None` if it is not an array.
    pub(crate) fn of_array(json: &'a [u8], at: usize) -> Option<Self> {
        Self::of(json, at).filter(|children| !children.object)
    }

    /// Returns whether these are the members of an object.
    pub(crate) fn is_object(&self) -> bool {
        self.object
    }

    /// Returns the start of the next child, or `None` after the last one. [`close`](Self::close) must follow.
    pub(crate) fn head(&mut self) -> Result<Option<Head>, Syntax> {
        if !self.open {
            return Ok(None);
        }
        let start = self.at;
        if !self.object {
            return Ok(Some(Head { start, key: start..start, value: start }));
        }
        let head = self.member_head(start);
        self.open = head.is_ok();
        head.map(Some)
    }

    fn member_head(&self, start: usize) -> Result<Head, Syntax> {
        if self.json.get(start) != Some(&b'"') {
            return bad(start, "a key");
        }
        let end = string(self.json, start + 1)?;
        Ok(Head { start, key: start + 1..end - 1, value: colon(self.json, end)? })
    }

    /// Ends the child of the last [`head`](Self::head), whose value ended at `end`.
    pub(crate) fn close(&mut self, head: Head, end: usize) -> Result<Member, Syntax> {
        let before = std::mem::replace(&mut self.before, end);
        self.separator(end)?;
        let next = if self.open { self.at } else { end };
        Ok(Member { key: head.key, value: head.value..end, start: head.start, before, next })
    }

    fn separator(&mut self, end: usize) -> Result<(), Syntax> {
        self.at = space(self.json, end);
        match (self.json.get(self.at), self.object) {
            (Some(b','), _) => self.at = space(self.json, self.at + 1),
            (Some(b'}'), true) | (Some(b']'), false) => {
                self.open = false;
                self.at += 1;
            }
            (_, object) => {
                self.open = false;
                return bad(self.at, if object { "',' or '}'" } else { "',' or ']'" });
            }
        }
        Ok(())
    }

    /// Skips the remaining children, and returns the end of the object or array.
    pub(crate) fn end(mut self) -> Result<usize, Syntax> {
        for member in &mut self {
            member?;
        }
        Ok(self.at)
    }

    fn unless_empty(mut self) -> Self {
        let close = if self.object { b'}' } else { b']' };
        if self.json.get(self.at) == Some(&close) {
            self.open = false;
            self.at += 1;
        }
        self
    }
}

impl Iterator for Children<'_> {
    type Item = Result<Member, Syntax>;

    fn next(&mut self) -> Option<Self::Item> {
        self.head().transpose().map(|head| {
            let head = head?;
            let end = skip(self.json, head.value).inspect_err(|_| self.open = false)?;
            self.close(head, end)
        })
    }
}

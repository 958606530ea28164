//! The end of a value that is still arriving.

use super::{Syntax, bad, plain, space};

/// Finds where one value ends while it arrives, looking at every byte once.
///
/// Feed it the buffer that the value starts in, again and again as that grows:
///
/// ```text
/// let mut end = ValueEnd::default();
/// loop {
///     if let Some(end) = end.feed(&buffer)? { break &buffer[..end] }
///     buffer.extend(more().await?);
/// }
/// ```
///
/// It only counts brackets outside of strings. So the value may not be JSON at all, which is for
/// the one who reads it to say; what follows it can still be found. How large a buffer may get is
/// for the caller to bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueEnd {
    /// How far the buffer has been looked at.
    at: usize,
    depth: usize,
    inside: Inside,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Inside {
    /// Only white space has come.
    #[default]
    Nothing,
    /// Between the brackets of an object or array.
    Brackets,
    String,
    /// A number or word.
    Scalar,
}

impl ValueEnd {
    /// One past the value's end, or `None` while that has not come. The buffer must be the one of
    /// the last time with more at its end. White space before the value belongs to it.
    ///
    /// A number or word ends with the byte after it. Where the input ends instead, see
    /// [`finish`](Self::finish).
    ///
    /// The error is that there is no value: a comma, a closing bracket, or nothing that JSON has.
    pub(crate) fn feed(&mut self, buffer: &[u8]) -> Result<Option<usize>, Syntax> {
        if self.inside == Inside::Nothing {
            self.at = space(buffer, self.at);
            match buffer.get(self.at) {
                None => return Ok(None),
                Some(b'{' | b'[') => {
                    self.inside = Inside::Brackets;
                    self.depth = 1;
                    self.at += 1;
                }
                Some(b'"') => {
                    self.inside = Inside::String;
                    self.at += 1;
                }
                Some(b'-' | b'0'..=b'9' | b'a'..=b'z') => self.inside = Inside::Scalar,
                Some(_) => return bad(self.at, "a value"),
            }
        }
        if self.inside == Inside::Scalar {
            return Ok(self.scalar(buffer));
        }
        while !self.is_over() && self.at < buffer.len() {
            if self.inside == Inside::String {
                self.string(buffer);
            } else {
                self.brackets(buffer);
            }
        }
        Ok(self.is_over().then_some(self.at))
    }

    /// The end of the value where the input ends with the buffer, or `None` if it was cut short.
    pub(crate) fn finish(&mut self, buffer: &[u8]) -> Result<Option<usize>, Syntax> {
        Ok(self.feed(buffer)?.or((self.inside == Inside::Scalar).then_some(buffer.len())))
    }

    /// A string that is no part of anything leaves its quotes for no brackets at all.
    fn is_over(&self) -> bool {
        self.depth == 0 && self.inside == Inside::Brackets
    }

    fn scalar(&mut self, buffer: &[u8]) -> Option<usize> {
        let part = |byte: &u8| matches!(byte, b'+' | b'-' | b'.') || byte.is_ascii_alphanumeric();
        while buffer.get(self.at).is_some_and(part) {
            self.at += 1;
        }
        (self.at < buffer.len()).then_some(self.at)
    }

    /// To the end of the string or of the buffer; past that by one if it ends with a backslash.
    fn string(&mut self, buffer: &[u8]) {
        loop {
            self.at = plain(buffer, self.at);
            match buffer.get(self.at) {
                None => return,
                Some(b'"') => {
                    self.at += 1;
                    self.inside = Inside::Brackets;
                    return;
                }
                // A backslash and what it escapes are passed together.
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
    }

    /// To the next string, or to the closing bracket, or to the end of the buffer.
    fn brackets(&mut self, buffer: &[u8]) {
        for (at, byte) in buffer.iter().enumerate().skip(self.at) {
            match byte {
                b'"' => {
                    self.inside = Inside::String;
                    self.at = at + 1;
                    return;
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.at = at + 1;
                        return;
                    }
                }
                _ => {}
            }
        }
        self.at = buffer.len();
    }
}

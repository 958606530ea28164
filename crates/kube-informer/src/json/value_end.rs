//! The end of a value that is still arriving.

use super::{Syntax, bad, plain, space};

/// A search for the end of a value that is still arriving. It looks at every byte once.
///
/// Feed it the buffer that the value starts in, repeatedly as the buffer grows:
///
/// ```text
/// let mut end = ValueEnd::default();
/// loop {
///     if let Some(end) = end.feed(&buffer)? { break &buffer[..end] }
///     buffer.extend(more().await?);
/// }
/// ```
///
/// It only counts brackets outside of strings. The value need not be valid JSON, which its reader has to
/// check; the text after it can still be found. The caller has to limit the size of the buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueEnd {
    /// How much of the buffer has been examined.
    at: usize,
    depth: usize,
    inside: Inside,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Inside {
    /// Only white space has arrived.
    #[default]
    Nothing,
    /// Between the brackets of an object or array.
    Brackets,
    String,
    /// A number or word.
    Scalar,
}

impl ValueEnd {
    /// Returns the position after the value, or `None` while its end has not arrived. The buffer must be that
    /// of the previous call with more at its end. White space before the value is part of it.
    ///
    /// A number or word ends with the byte after it. If the input ends instead, see [`finish`](Self::finish).
    ///
    /// Fails if there is no value: at a comma, a closing bracket, or a byte that cannot start a value.
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

    /// Returns the end of the value if the input ends with the buffer, or `None` if the value was cut short.
    pub(crate) fn finish(&mut self, buffer: &[u8]) -> Result<Option<usize>, Syntax> {
        Ok(self.feed(buffer)?.or((self.inside == Inside::Scalar).then_some(buffer.len())))
    }

    /// Returns whether the value is complete. After a string outside of all brackets, the depth is zero too.
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

    /// Advances to the end of the string or of the buffer, or one further if the buffer ends with a backslash.
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
                // A backslash is skipped together with the character that it escapes.
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
    }

    /// Advances to the next string, the closing bracket or the end of the buffer.
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

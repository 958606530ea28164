//! Uids. Nearly all are UUIDs, whose text fits into an object's header.

use std::ops::Deref;

/// The length of a UUID as text.
const INLINE_BYTES: usize = 36;

/// A uid as the server wrote it. A UUID needs no allocation.
#[derive(Clone)]
pub(super) enum Uid {
    Inline([u8; INLINE_BYTES]),
    Boxed(Box<str>),
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        match text.as_bytes().try_into() {
            Ok(bytes) => Self::Inline(bytes),
            Err(_) => Self::Boxed(text.into()),
        }
    }
}

impl Deref for Uid {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            // It was copied from a whole `str`.
            Self::Inline(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
            Self::Boxed(text) => text,
        }
    }
}

impl Uid {
    /// Returns the number of bytes outside of the header.
    pub(super) fn allocated(&self) -> usize {
        match self {
            Self::Inline(_) => 0,
            Self::Boxed(text) => text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_uid_is_the_text_that_it_was_made_of(text in "\\PC{0,80}", length in 30..40_usize) {
            let cut: String = text.chars().take(length).collect();
            for text in [text, cut, "7".repeat(length)] {
                prop_assert_eq!(&*Uid::from(&*text), &text);
            }
        }
    }

    #[test]
    fn only_a_uuid_needs_no_memory_of_its_own() {
        assert_eq!(Uid::from("0f0e4b6a-9d0b-4f3e-8a57-5d5b6a2c9d11").allocated(), 0);
        assert_eq!(Uid::from("web-0").allocated(), 5);
    }
}

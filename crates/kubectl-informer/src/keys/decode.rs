//! Keys from the bytes that a terminal sends.

/// A key that a user has pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    /// Ctrl-U, which erases a line.
    Erase,
}

/// A decoder, which keeps characters and sequences that are not complete.
#[derive(Default, Debug)]
pub(super) struct Decoder {
    state: State,
    /// The first bytes of a character: at most four.
    begun: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    #[default]
    Plain,
    /// After an escape character.
    Escaped,
    /// In the sequence that an arrow key or a function key sends.
    Sequence,
}

impl Decoder {
    /// Decodes the bytes of one read. Keys without a meaning here, such as arrows, are skipped.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys = Vec::new();
        for &byte in bytes {
            keys.extend(self.byte(byte));
        }
        // A terminal sends a sequence at once. An escape character at the end is the key itself.
        if self.state == State::Escaped {
            self.state = State::Plain;
            keys.push(Key::Escape);
        }
        keys
    }

    fn byte(&mut self, byte: u8) -> Option<Key> {
        match (self.state, byte) {
            (State::Escaped, b'[' | b'O') => self.state = State::Sequence,
            // Alt and a key, or the end of a sequence.
            (State::Escaped, _) | (State::Sequence, 0x40..=0x7e) => self.state = State::Plain,
            (State::Sequence, _) => {}
            (State::Plain, 0x1b) => self.state = State::Escaped,
            (State::Plain, 0x80..) => return self.letter(byte),
            (State::Plain, _) => {
                self.begun.clear();
                return match byte {
                    b'\n' | b'\r' => Some(Key::Enter),
                    0x08 | 0x7f => Some(Key::Backspace),
                    0x15 => Some(Key::Erase),
                    b' '..=b'~' => Some(Key::Char(char::from(byte))),
                    _ => None,
                };
            }
        }
        None
    }

    /// Adds a byte of a character that has several.
    fn letter(&mut self, byte: u8) -> Option<Key> {
        self.begun.push(byte);
        match std::str::from_utf8(&self.begun) {
            Ok(text) => {
                let letter = text.chars().next().filter(|letter| !letter.is_control());
                self.begun.clear();
                letter.map(Key::Char)
            }
            Err(error) => {
                if error.error_len().is_some() {
                    self.begun.clear();
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(pieces: &[&[u8]]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        pieces.iter().flat_map(|piece| decoder.decode(piece)).collect()
    }

    #[test]
    fn keys_are_decoded() {
        let all = b"q /\r\n\x7f\x08\x15";
        let expected = [
            Key::Char('q'),
            Key::Char(' '),
            Key::Char('/'),
            Key::Enter,
            Key::Enter,
            Key::Backspace,
            Key::Backspace,
            Key::Erase,
        ];
        assert_eq!(keys(&[all]), expected);
        assert_eq!(keys(&["ü日".as_bytes()]), [Key::Char('ü'), Key::Char('日')]);
        assert_eq!(keys(&[b"\xe6", b"\x97\xa5"]), [Key::Char('日')]);
        assert_eq!(keys(&[b"\x1b"]), [Key::Escape]);
    }

    #[test]
    fn arrows_and_function_keys_are_skipped() {
        assert_eq!(keys(&[b"\x1b[Aq"]), [Key::Char('q')]);
        assert_eq!(keys(&[b"\x1bOPq"]), [Key::Char('q')]);
        assert_eq!(keys(&[b"\x1b[1;5", b"Cq"]), [Key::Char('q')]);
        assert_eq!(keys(&[b"\x1bxq"]), [Key::Char('q')]);
        assert_eq!(keys(&[b"\x01\x04\t\0"]), []);
        assert_eq!(keys(&[b"\xff\xfeq"]), [Key::Char('q')]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..8), 0..8)) {
            let mut decoder = Decoder::default();
            for piece in &pieces {
                let keys = decoder.decode(piece);
                prop_assert!(keys.len() <= piece.len());
                prop_assert!(decoder.begun.len() < 4);
            }
        }
    }
}

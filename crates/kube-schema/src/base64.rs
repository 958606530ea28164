//! Bytes as JSON has them.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let index = bits >> (18 - 6 * digit) & 0x3f;
            let is_padding = digit > chunk.len();
            out.push(if is_padding { '=' } else { char::from(ALPHABET[index as usize]) });
        }
    }
    out
}

/// Reads what Go's standard encoding reads: padded, line ends ignored.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0_u32, 0, 0);
    for byte in text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')) {
        if byte == b'=' {
            padding += 1;
            continue;
        }
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | value(byte)?;
        count += 1;
        if count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, 0) => {}
        (2, 2) => out.push((bits >> 4) as u8),
        (3, 1) => out.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        _ => return None,
    }
    Some(out)
}

fn value(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_survives_the_round_trip() {
        let bytes: Vec<u8> = (0..=255).rev().collect();
        for len in 0..bytes.len() {
            assert_eq!(decode(&encode(&bytes[..len])).as_deref(), Some(&bytes[..len]));
        }
        assert_eq!(encode(b"kubernetes"), "a3ViZXJuZXRlcw==");
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in ["a", "ab", "abc", "ab=", "abc==", "ab=c", "ab==cd==", "a b=", "====", "abcd="]
        {
            assert_eq!(decode(text), None, "{text:?}");
        }
        assert_eq!(decode("a3Vi\r\nZXI=\n").as_deref(), Some(&b"kuber"[..]));
    }
}

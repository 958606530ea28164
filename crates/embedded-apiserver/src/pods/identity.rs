//! Ids and digests that are never verified. They look random and are unique, but are derived from
//! names, so that two runs of a test are identical.

/// Returns a random generator that is seeded by texts.
pub(super) fn rng(texts: &[&str]) -> fastrand::Rng {
    // FNV-1a, with a separator that occurs in no text.
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    fastrand::Rng::with_seed(hash)
}

/// Returns a text that looks like a SHA-256 in hex.
pub(super) fn digest(texts: &[&str]) -> String {
    let mut rng = rng(texts);
    format!("{:032x}{:032x}", rng.u128(..), rng.u128(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_differ_where_the_texts_do() {
        assert_eq!(digest(&["a", "b"]), digest(&["a", "b"]));
        assert_ne!(digest(&["a", "b"]), digest(&["ab", ""]));
        assert_eq!(digest(&[]).len(), 64);
    }
}

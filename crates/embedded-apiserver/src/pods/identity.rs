//! Ids and digests that nobody checks: they look random, are unique, and follow from names, so that
//! two runs of a test give the same.

/// Random numbers that follow from some texts.
pub(super) fn rng(texts: &[&str]) -> fastrand::Rng {
    // FNV-1a, with a byte between the texts that is in none of them.
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    fastrand::Rng::with_seed(hash)
}

/// What looks like a SHA-256 in hex.
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

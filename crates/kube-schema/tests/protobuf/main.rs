//! JSON to protobuf and back, for every kind, and hostile bytes.

mod hostile;
mod made;
mod values;

use kube_schema::{from_slice, kinds, to_vec};
use made::{Amount, Maker};
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn every_kind_with_every_field_survives_the_round_trip() {
    let mut count = 0;
    for (api_version, kind, message) in kinds() {
        let object = Maker::new(7, Amount::Everything).object(api_version, kind, message);
        let bytes = to_vec(&object).unwrap_or_else(|error| panic!("{api_version} {kind}: {error}"));
        let back: Value =
            from_slice(&bytes).unwrap_or_else(|error| panic!("{api_version} {kind}: {error}"));
        assert_eq!(back, object, "{api_version} {kind}");
        count += 1;
    }
    assert!(count > 300, "only {count} kinds");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_object_survives_the_round_trip(seed: u64) {
        let object = Maker::new(seed, Amount::Some).any_object();
        let bytes = to_vec(&object).expect("it was made to fit");
        prop_assert_eq!(from_slice::<Value>(&bytes).expect("it was just written"), object);
    }

    #[test]
    fn writing_again_gives_the_same_bytes(seed: u64) {
        let bytes = to_vec(&Maker::new(seed, Amount::Some).any_object()).expect("it was made to fit");
        let back: Value = from_slice(&bytes).expect("it was just written");
        prop_assert_eq!(to_vec(&back).expect("it was just read"), bytes);
    }
}

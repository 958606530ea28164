//! Any bytes parse as a selector or are refused, and what parses prints itself in a form that
//! parses to the same selector.

#![no_main]

use embedded_apiserver::selector::{FieldSelector, LabelSelector};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(selector) = LabelSelector::parse(&text) {
        assert_eq!(LabelSelector::parse(&selector.to_string()).as_ref(), Ok(&selector));
        selector.matches(&[("a", "b"), ("in", "1")]);
        assert!(!selector.is_empty() || selector.matches::<&str, &str>(&[]));
    }
    if let Ok(selector) = FieldSelector::parse(&text) {
        assert_eq!(FieldSelector::parse(&selector.to_string()).as_ref(), Ok(&selector));
        // The only object that can match is one that has what equality asks for.
        let object = |field: &str| selector.exact(field);
        let contradicts = selector.terms().any(|(field, operator, value)| {
            use embedded_apiserver::selector::FieldOperator::{Equals, NotEquals};
            let has = object(field).unwrap_or_default();
            match operator {
                Equals => has != value,
                NotEquals => has == value,
            }
        });
        assert_eq!(selector.matches(object), !contradicts);
    }
});

//! Any object with managedFields, in JSON or protobuf: the object that is kept is the one that came, without them.
//!
//! The first byte chooses the encoding, the rest is the object: its JSON, or the message of a pod.

#![no_main]

use kube_informer::Object;
use kube_informer_fuzz::{Answer, field};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((&encoding, object)) = data.split_first() else { return };
    if encoding & 1 == 0 { json(object) } else { protobuf(object) }
});

fn json(bytes: &[u8]) {
    let Ok(kept) = <Object>::from_json(bytes) else { return };
    let Ok(mut expected) = serde_json::from_slice::<Value>(bytes) else { return };
    // A member that is there twice is last in a map, and was cut each time.
    let kept = kept.to_json().expect("it was packed from JSON");
    let kept: Value = serde_json::from_slice(&kept).expect("the rest is JSON");
    without_managed_fields(&mut expected);
    assert_eq!(kept, expected);
}

fn protobuf(message: &[u8]) {
    let mut list = Vec::new();
    field(2, message, &mut list);
    let answer = Answer::new(1, &list, true);
    let Some(kept) = answer.objects().pop() else { return };
    let pod = kube_schema::message("v1", "Pod").expect("a built-in kind");
    // What is read only when it is asked for may be malformed.
    let Ok(mut expected) = pod.decode::<Value>(message) else { return };
    let kept = kept.to_json().expect("all of it could be read before the cut");
    let mut kept: Value = serde_json::from_slice(&kept).expect("it is written as JSON");
    without_managed_fields(&mut expected);
    for side in [&mut kept, &mut expected] {
        let side = side.as_object_mut().expect("an object");
        side.retain(|name, _| name != "apiVersion" && name != "kind");
    }
    assert_eq!(kept, expected);
}

fn without_managed_fields(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
}

//! Lists in protobuf.

use kube_schema::{Envelope, push_field, to_vec};

use super::*;

fn reader() -> ListReader {
    reader_of(call(), Encoding::Protobuf)
}

fn read(bytes: impl AsRef<[u8]>) -> Read {
    read_with(reader(), [bytes.as_ref()])
}

fn pods(count: u32) -> Value {
    let pod = |n: u32| {
        json!({
            "metadata": {"name": format!("pod-{n}"), "namespace": "web", "resourceVersion": n.to_string()},
            "spec": {"nodeName": "ü \u{1F600}", "containers": [{"name": "c"}]},
        })
    };
    list(&(0..count).map(pod).collect())
}

fn bytes(list: &Value) -> Vec<u8> {
    to_vec(list).unwrap()
}

/// Puts fields into the envelope of a list.
fn enveloped(kind: &str, message: &[u8]) -> Vec<u8> {
    Envelope { api_version: "v1", kind, raw: message }.to_vec()
}

fn fields(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut message = Vec::new();
    for (number, value) in fields {
        push_field(&mut message, *number, value);
    }
    message
}

/// Returns the message of the object `web/a` at version 1.
fn pod_a() -> Vec<u8> {
    let metadata = fields(&[(1, b"a"), (3, b"web"), (6, b"1")]);
    fields(&[(1, &metadata)])
}

/// Metadata of a list at version 7.
const METADATA: &[u8] = b"\x12\x017";

#[test]
fn both_encodings_are_read_alike() {
    for count in [0, 1, 3, 200] {
        let list = pods(count);
        let expected = read_with(super::reader(call()), [list.to_string().as_bytes()]);
        assert_eq!(read(bytes(&list)), expected);
        assert_eq!(expected.items.len(), count as usize);
    }
    let mut page = pods(2);
    page["metadata"]["continue"] = json!("next");
    assert_eq!(read(bytes(&page)).end, Ok(("7".into(), Some("next".into()))));
}

#[test]
fn chunks_do_not_change_what_is_read() {
    let bytes = bytes(&pods(3));
    let whole = read(&bytes);
    assert_eq!(whole.items.len(), 3);
    for first in 0..=bytes.len() {
        let (begin, rest) = bytes.split_at(first);
        assert_eq!(read_with(reader(), [begin, rest]), whole, "cut at {first}");
    }
    for size in 1..20 {
        assert_eq!(read_with(reader(), bytes.chunks(size)), whole, "chunks of {size}");
    }
}

/// Only the end of the envelope, which has no content, can be missing.
#[test]
fn a_list_that_breaks_off_has_no_end() {
    let bytes = bytes(&pods(3));
    let whole = read(&bytes);
    let message_end = bytes.len() - kube_schema::ENVELOPE_CLOSING.len();
    for cut in 0..bytes.len() {
        let all = read(&bytes[..cut]);
        if cut >= message_end && (cut - message_end).is_multiple_of(2) {
            assert_eq!(all, whole, "cut at {cut}");
        } else {
            let expected = format!("the list breaks off after {cut} bytes");
            assert!(all.error().ends_with(&expected), "cut at {cut}: {all:?}");
        }
    }
}

#[test]
fn fields_come_in_any_order_and_with_others() {
    let pod = pod_a();
    let item = (2, &pod[..]);
    for message in [
        fields(&[(1, METADATA), item, item]),
        fields(&[item, item, (1, METADATA)]),
        fields(&[item, (1, METADATA), item]),
        fields(&[(9, b"new"), item, (300, b""), (1, METADATA), item, (9, b"\xff")]),
        // Numbers of every form: fields 4, 5 and 6.
        [
            &fields(&[item])[..],
            b"\x20\xac\x02\x29\0\0\0\0\0\0\0\0\x35\0\0\0\0",
            &fields(&[item, (1, METADATA)]),
        ]
        .concat(),
    ] {
        let body = enveloped("PodList", &message);
        let expected = read(&body);
        assert_eq!(expected.items, [Ok("web/a@1".into()), Ok("web/a@1".into())]);
        assert_eq!(expected.end, Ok(("7".into(), None)));
        assert_eq!(read_with(reader(), body.chunks(1)), expected);
    }
    let mut newer = b"k8s\0\x28\x01\x32\x03new".to_vec();
    newer.extend_from_slice(&bytes(&pods(1))[4..]);
    assert_eq!(read(newer).items.len(), 1);
}

#[test]
fn a_list_without_a_version_leaves_it_to_the_reflector() {
    for message in [&b""[..], b"\x0a\0", b"\x0a\x02\x12\0"] {
        assert_eq!(read(enveloped("PodList", message)).end, Ok((String::new(), None)));
    }
}

#[test]
fn a_bad_item_is_one_bad_item() {
    let pod = pod_a();
    let broken = [&pod[..], b"\x12\x05x"].concat();
    for (bad, said) in [
        (&b""[..], "an object cannot be kept"),
        (b"\xff", "an object cannot be kept"),
        (b"\x0a\x00", "an object cannot be kept"),
        (&broken, "web/a: an object cannot be kept"),
    ] {
        let body = enveloped("PodList", &fields(&[(2, &pod), (2, bad), (2, &pod)]));
        let all = read(body);
        assert!(all.items[0].is_ok() && all.items[2].is_ok() && all.end.is_ok(), "{all:?}");
        assert!(all.items[1].as_ref().unwrap_err().starts_with(said), "{all:?}");
    }
}

#[test]
fn what_is_no_list_of_that_resource_is_an_error() {
    let (pod, empty) = (pod_a(), &b""[..]);
    let mut twice = bytes(&pods(1));
    twice.extend_from_slice(&fields(&[(2, b"")]));
    let gzip = [b"k8s\0", &fields(&[(1, b"\x0a\x02v1\x12\x07PodList"), (3, b"gzip")])[..]].concat();
    let json =
        [b"k8s\0", &fields(&[(1, b"\x0a\x02v1\x12\x07PodList"), (4, b"application/json")])[..]]
            .concat();
    let job = Envelope { api_version: "batch/v1", kind: "JobList", raw: b"" }.to_vec();
    let partial =
        Envelope { api_version: "meta.k8s.io/v1", kind: "PartialObjectMetadataList", raw: b"" };
    for (body, said) in [
        (b"{}".to_vec(), r#""k8s\0" expected at byte 0"#),
        (b"k8x".to_vec(), r#""k8s\0" expected at byte 0"#),
        (enveloped("", empty), "without a kind"),
        (b"k8s\0\x12\0".to_vec(), "without a kind"),
        (enveloped("Pod", empty), "\"Pod\" and has no items"),
        (enveloped("WidgetList", empty), "\"WidgetList\" and has no items"),
        (enveloped("List", empty), "\"List\" and has no items"),
        (job, "\"JobList\" of \"batch/v1\""),
        (partial.to_vec(), "PartialObjectMetadataList"),
        (twice, "its message twice"),
        (gzip, "not protobuf"),
        (json, "not protobuf"),
        (b"k8s\0\x08\x01".to_vec(), "a field expected at byte 4"),
        (b"k8s\0\0".to_vec(), "a field expected at byte 4"),
        (b"k8s\0\x0b".to_vec(), "a field expected at byte 4"),
        (b"k8s\0\x0a\x01\xff".to_vec(), "a field expected at byte 4"),
        (enveloped("PodList", b"\x10\x01"), "a field expected at byte"),
        (enveloped("PodList", b"\x12\x05x"), "a field expected at byte"),
        (enveloped("PodList", b"\x12"), "a field expected at byte"),
        (enveloped("PodList", b"\x1a\x09"), "a field expected at byte"),
        (enveloped("PodList", &fields(&[(1, METADATA), (1, METADATA)])), "its metadata twice"),
        (enveloped("PodList", &fields(&[(1, b"\x10\x01"), (2, &pod)])), "metadata of the list"),
        (enveloped("PodList", &fields(&[(1, b"\xff")])), "metadata of the list"),
    ] {
        let all = read(&body);
        assert!(all.error().contains(said), "{body:?}: {}", all.error());
        assert!(all.error().starts_with("cannot list pods in namespace \"web\": "), "{body:?}");
        let pieces = read_with(reader(), body.chunks(1));
        assert_eq!(pieces, all, "{body:?}");
    }
}

#[test]
fn what_follows_a_list_is_an_error() {
    let list = bytes(&pods(1));
    for more in [&b"\0"[..], b"x", b"\n", b"{}", b"\x28\x01", b"\x2a\0", &list] {
        let all = read([&list[..], more].concat());
        assert!(all.end.is_err(), "{more:?}: {all:?}");
    }
    for (more, said) in [(&b"\x28\x01"[..], "the end expected"), (b"\x1a\0", "a field expected")] {
        let all = read([&list[..], more].concat());
        assert!(all.error().contains(said), "{more:?}: {all:?}");
    }
}

#[test]
fn a_status_instead_of_a_list_is_quoted() {
    let status = |message: &str| {
        bytes(
            &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
                      "reason": "Timeout", "code": 504}),
        )
    };
    let said = "a Status came instead of a list: Timeout etcd is not there";
    for size in [1, 7, 1000] {
        let body = status("etcd is\nnot there");
        let all = read_with(reader(), body.chunks(size));
        assert!(all.error().ends_with(said), "{}", all.error());
    }
    let long = read(status(&"x".repeat(1 << 20)));
    assert!(long.error().ends_with("a Status came instead of a list: "), "{}", long.error());
}

#[test]
fn metadata_only_lists_are_those_or_whole_ones() {
    let meta = Target { metadata_only: true, ..(*call().target).clone() };
    let meta = Call { verb: Verb::List, target: Arc::new(meta) };
    for (kind, version) in [
        ("PartialObjectMetadataList", "meta.k8s.io/v1"),
        ("PartialObjectMetadataList", "meta.k8s.io/v1beta1"),
        ("PodList", "v1"),
    ] {
        let mut list = pods(2);
        (list["kind"], list["apiVersion"]) = (json!(kind), json!(version));
        for item in list["items"].as_array_mut().unwrap() {
            item.as_object_mut().unwrap().remove("spec");
        }
        let mut reader = reader_of(meta.clone(), Encoding::Protobuf);
        push(&mut reader, &bytes(&list));
        let Some(Ok(ListItem::Object(first))) = reader.next() else { panic!("{kind} {version}") };
        assert_eq!(first.field::<String>("kind").unwrap().unwrap() + "List", kind);
        assert!(matches!(reader.next(), Some(Ok(ListItem::Object(_)))));
        assert!(reader.next().is_none() && reader.finish().unwrap().is_ok());
    }
}

#[test]
fn what_is_over_the_limit_is_refused_by_its_length() {
    let opening = Envelope::opening("v1", "PodList", usize::MAX >> 1);
    for (field, at) in [(b"\x12", "item"), (b"\x0a", "metadata")] {
        let mut reader = reader();
        reader.list.bytes_max = 1000;
        push(&mut reader, &opening);
        push(&mut reader, field);
        push(&mut reader, b"\xe8\x07");
        assert!(reader.next().is_none(), "1000 bytes are allowed: {at}");
        let mut reader = self::reader();
        reader.list.bytes_max = 1000;
        push(&mut reader, &[&opening[..], field, b"\xe9\x07"].concat());
        let error = reader.next().unwrap().unwrap_err();
        let said = format!("byte {} of the list is over the limit of 1000", opening.len());
        assert!(error.to_string().contains(&said), "{at}: {error}");
        assert!(matches!(error.cause(), Cause::Protocol));
        push(&mut reader, b"more");
        assert_eq!(reader.list.buffer.capacity(), 0, "nothing is kept after an error");
    }
}

#[test]
fn a_list_of_any_length_takes_a_buffer_of_one_item() {
    let bytes = bytes(&pods(1000));
    let mut reader = reader();
    let mut count = 0;
    for chunk in bytes.chunks(4096) {
        push(&mut reader, chunk);
        while let Some(item) = reader.next() {
            assert!(matches!(item, Ok(ListItem::Object(_))), "{item:?}");
            count += 1;
        }
        assert!(reader.list.buffer.capacity() <= 16 << 10, "{}", reader.list.buffer.capacity());
    }
    assert_eq!(count, 1000);
    // Unknown fields are not kept, whatever their length.
    let body = enveloped("PodList", &fields(&[(9, &vec![0; 1 << 20])]));
    let mut reader = self::reader();
    for chunk in body.chunks(4096) {
        push(&mut reader, chunk);
        assert!(reader.next().is_none());
        assert!(reader.list.buffer.capacity() <= 16 << 10, "{}", reader.list.buffer.capacity());
    }
    assert!(reader.finish().unwrap().is_ok());
}

#[test]
fn errors_do_not_repeat_what_is_in_objects() {
    let secret = "c2VjcmV0";
    let metadata = fields(&[(1, b"a"), (3, secret.as_bytes())]);
    let named = fields(&[(1, &metadata), (2, secret.as_bytes())]);
    for body in [
        enveloped("PodList", &fields(&[(1, secret.as_bytes())])),
        enveloped("PodList", &fields(&[(2, secret.as_bytes())])),
        enveloped("PodList", secret.as_bytes()),
        [&bytes(&pods(1))[..], secret.as_bytes()].concat(),
        [b"k8s\0", secret.as_bytes()].concat(),
        enveloped("PodList", &fields(&[(2, &named[metadata.len() + 2..])])),
    ] {
        let shown = format!("{:?}", read(body));
        assert!(shown.contains("Err") && !shown.contains(secret), "{shown}");
    }
}

proptest! {
    #[test]
    fn any_change_is_read_without_a_panic(
        count in 0..4_u32,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut bytes = bytes(&pods(count));
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = read(&bytes);
        prop_assert_eq!(&read_with(reader(), cut(&bytes, places)), &whole);
        prop_assert_eq!(&read_with(reader(), bytes.chunks(1)), &whole);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
        prop_assert!(read(&bytes).end.is_err());
        prop_assert!(read([b"k8s\0", &bytes[..]].concat()).end.is_err());
        let _ = read(enveloped("PodList", &bytes));
        let _ = read(enveloped("PodList", &fields(&[(2, &bytes)])));
    }
}

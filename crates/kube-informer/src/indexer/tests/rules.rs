//! Writing: what goes in, what is said of it, and which version the store is at.

use super::*;

#[test]
fn s1_c10_the_store_decides_whether_an_object_is_new() {
    let store = Store::new();
    let web = object("shop/web@1");
    assert_eq!(said(&store.apply(vec![Change::Put(web.clone())])), "+shop/web@1");
    assert_eq!(put(&store, "shop/web@2"), "shop/web@1>shop/web@2");
    assert_eq!(put(&store, "web@3"), "+web@3");
    assert_eq!(content(&store), "shop/web@2 web@3 at 3");
}

#[test]
fn s1_i11_i16_the_delete_of_an_object_that_is_not_there_is_nothing() {
    let store = Store::new();
    put(&store, "a@1");
    assert_eq!(said(&store.apply(vec![deleted(object("b@2"))])), ".");
    assert_eq!(said(&store.apply(vec![missed(object("b@3"))])), ".");
    assert_eq!(said(&store.apply(vec![deleted(object("a@4"))])), "-a@4");
    assert_eq!(said(&store.apply(vec![deleted(object("a@4"))])), ".");
    assert_eq!(content(&store), " at 4");
}

#[test]
fn i16_i53_a_delete_that_was_seen_carries_the_object_as_it_went() {
    let store = Store::new();
    put(&store, "a@1");
    let last = object("a@5");
    let applied = store.apply(vec![deleted(last.clone())]);
    let [Applied::Deleted(gone)] = &*applied else { panic!("{applied:?}") };
    assert!(gone.object.is_same_instance(&last) && gone.final_state == FinalState::Known);
    assert_eq!(store.resource_version(), "5");
}

#[test]
fn i16_s17_a_delete_that_was_missed_carries_what_we_knew_and_no_version() {
    let store = Store::new();
    let known = object("a@4");
    store.apply(vec![Change::Put(known.clone()), Change::Bookmark("9".into())]);
    // It goes whatever the version says, since that is not the version of its end.
    let applied = store.apply(vec![missed(object("a@2"))]);
    let [Applied::Deleted(gone)] = &*applied else { panic!("{applied:?}") };
    assert!(gone.object.is_same_instance(&known) && gone.final_state == FinalState::Unknown);
    assert_eq!(content(&store), " at 9");

    let opaque = Store::new();
    opaque.apply(vec![Change::Put(object("a@x")), Change::Bookmark("y".into())]);
    opaque.apply(vec![missed(object("a@x"))]);
    assert_eq!(opaque.resource_version(), "y");
}

#[test]
fn i2_an_older_state_does_not_come_back() {
    let store = Store::new();
    put(&store, "a@10");
    assert_eq!(put(&store, "a@9"), ".");
    assert_eq!(said(&store.apply(vec![deleted(object("a@9"))])), ".");
    assert_eq!(content(&store), "a@10 at 10");
    // Not even under another uid: that one was before.
    let before = made("a", "other", "9", &[]);
    assert_eq!(said(&store.apply(vec![Change::Put(before)])), ".");
    // What cannot be compared is taken as it comes.
    assert_eq!(put(&store, "a@x"), "a@10>a@x");
    assert_eq!(put(&store, "a@3"), "a@x>a@3");
}

#[test]
fn i8_the_same_state_again_is_nothing_and_the_first_instance_stays() {
    let store = Store::new();
    let first = object("a@1");
    store.apply(vec![Change::Put(first.clone())]);
    assert_eq!(put(&store, "a@1"), ".");
    assert!(store.get("a".into()).unwrap().is_same_instance(&first));
    // An event that comes again after the delete it was before is a new object to us: the watch
    // that the store is filled from does not do that.
    store.apply(vec![deleted(object("a@2"))]);
    assert_eq!(put(&store, "a@1"), "+a@1");
    assert_eq!(store.resource_version(), "2");
}

#[test]
fn i16_another_uid_at_the_same_key_is_an_update() {
    let store = Store::new();
    put(&store, "a@1");
    let again = made("a", "other", "2", &[]);
    let applied = store.apply(vec![Change::Put(again)]);
    let [Applied::Updated { old, new }] = &*applied else { panic!("{applied:?}") };
    assert_eq!((old.uid(), new.uid()), ("uid", "other"));
}

#[test]
fn objects_without_a_version_are_never_taken_for_the_same_state() {
    let store = Store::new();
    store.apply(vec![Change::Bookmark("3".into())]);
    assert_eq!(put(&store, "a@"), "+a@");
    assert_eq!(put(&store, "a@"), "a@>a@");
    let difference = store.replace(vec![object("a@")], &[], &"4".into());
    assert_eq!((difference.updated.len(), difference.unchanged.len()), (1, 0));
}

#[test]
fn s16_s17_s18_the_version_goes_on_and_never_back_within_a_history() {
    let store = Store::new();
    let after = |change| {
        store.apply(vec![change]);
        store.resource_version().to_string()
    };
    assert_eq!(after(Change::Put(object("a@5"))), "5");
    assert_eq!(after(Change::Put(object("b@3"))), "5");
    assert_eq!(after(Change::Bookmark("10".into())), "10");
    assert_eq!(after(Change::Bookmark("9".into())), "10");
    assert_eq!(after(deleted(object("b@11"))), "11");
    assert_eq!(after(deleted(object("a@4"))), "11");
    assert_eq!(after(Change::Put(object("c@"))), "11");
    assert_eq!(after(Change::Bookmark("".into())), "11");
    assert_eq!(after(Change::Bookmark("opaque".into())), "opaque");
}

#[test]
fn s18_i21_replace_sets_the_version_whatever_it_was() {
    let store = Store::new();
    put(&store, "a@100");
    let difference = store.replace(vec![object("a@7")], &[], &"8".into());
    assert_eq!(texts(difference.updated.iter().flat_map(|(old, new)| [old, new])), "a@100 a@7");
    assert_eq!(content(&store), "a@7 at 8");
    store.replace(vec![], &[], &"".into());
    assert_eq!(content(&store), " at ");
}

#[test]
fn s19_i7_a_batch_is_in_order_and_the_version_is_the_greatest_of_it() {
    let store = Store::new();
    let batch = vec![
        Change::Put(object("a@1")),
        Change::Put(object("b@2")),
        Change::Put(object("a@3")),
        deleted(object("a@4")),
        Change::Bookmark("6".into()),
        Change::Put(object("a@5")),
    ];
    assert_eq!(said(&store.apply(batch)), "+a@1 +b@2 a@1>a@3 -a@4 . +a@5");
    assert_eq!(content(&store), "a@5 b@2 at 6");
}

#[test]
fn s20_there_is_no_version_and_no_sync_at_first() {
    let store = Store::new();
    assert!(store.resource_version().is_empty() && !store.has_synced());
    assert_eq!((store.len(), store.memory(), store.snapshot().0.len()), (0, 0, 0));
    store.set_synced();
    assert!(store.has_synced());
}

#[test]
fn s5_i5_replace_says_what_is_different() {
    let store = Store::new();
    let same = object("b/same@1");
    store.apply(vec![
        Change::Put(object("z@1")),
        Change::Put(same.clone()),
        Change::Put(object("a/changed@2")),
        Change::Put(object("a/gone@3")),
        Change::Put(object("b/unreadable@4")),
    ]);
    let list = ["n/new@7", "b/same@1", "a/changed@6", "m/new@5"].map(object).into();
    let keep = ["b/unreadable", "never/seen"].map(|key| key.parse().unwrap());
    let difference = store.replace(list, &keep, &"8".into());
    assert_eq!(texts(&difference.deleted), "z@1 a/gone@3");
    assert_eq!(texts(&difference.added), "n/new@7 m/new@5");
    let updated = difference.updated.iter().flat_map(|(old, new)| [old, new]);
    assert_eq!(texts(updated), "a/changed@2 a/changed@6");
    assert_eq!(texts(&difference.unchanged), "b/same@1");
    assert!(difference.unchanged[0].is_same_instance(&same));
    assert!(store.get("b/same".into()).unwrap().is_same_instance(&same));
    let (objects, version) = store.snapshot();
    let mut all: Vec<String> = objects.iter().map(text).collect();
    all.sort();
    assert_eq!(all, ["a/changed@6", "b/same@1", "b/unreadable@4", "m/new@5", "n/new@7"]);
    assert_eq!(version, "8");
}

#[test]
fn s5_of_several_with_one_key_the_last_counts() {
    let store = Store::new();
    put(&store, "b@1");
    let list = ["a@9", "b@4", "a@2", "b@1", "a@3"].map(object).into();
    let difference = store.replace(list, &[], &"10".into());
    assert_eq!(texts(&difference.added), "a@3");
    assert_eq!(texts(&difference.unchanged), "b@1");
    assert!(difference.updated.is_empty() && difference.deleted.is_empty());
    assert_eq!(store.len(), 2);
}

#[test]
fn an_unreadable_key_that_is_also_in_the_list_is_replaced() {
    let store = Store::new();
    put(&store, "a@1");
    let difference = store.replace(vec![object("a@2")], &["a".parse().unwrap()], &"2".into());
    assert_eq!((difference.updated.len(), &*content(&store)), (1, "a@2 at 2"));
}

#[test]
fn memory_is_the_sum_of_what_is_there() {
    let store = Store::new();
    let small = object("a@1");
    let large = labelled("b@2", &[("app", &"x".repeat(50))]);
    store.apply(vec![Change::Put(small.clone()), Change::Put(large.clone())]);
    assert_eq!(store.memory(), small.memory() + large.memory());
    store.apply(vec![deleted(object("a@3"))]);
    assert_eq!(store.memory(), large.memory());
    store.replace(vec![small.clone()], &[], &"4".into());
    assert_eq!(store.memory(), small.memory());
}

#[test]
fn s2_l6_i18_readers_get_the_cached_instance_and_keep_it_as_it_is() {
    let store = Store::new();
    let first = object("a@1");
    store.apply(vec![Change::Put(first.clone())]);
    let read = store.get("a".into()).unwrap();
    assert!(read.is_same_instance(&first));
    put(&store, "a@2");
    store.apply(vec![deleted(object("a@3"))]);
    assert_eq!(text(&read), "a@1");
}

#[test]
fn an_indexer_of_ones_own_takes_what_it_is_given() {
    let mut indexer = Indexer::<Untyped>::new();
    indexer.put(object("a@5"));
    indexer.put(object("a@3"));
    let same = object("a@3");
    indexer.put(same.clone());
    assert!(indexer.lister().get("a").unwrap().is_same_instance(&same));
    assert_eq!(indexer.resource_version(), "5");
    let key = "a".parse().unwrap();
    assert!(indexer.remove(&key).unwrap().is_same_instance(&same));
    assert!(indexer.remove(&key).is_none() && indexer.lister().is_empty());
    assert_eq!(format!("{indexer:?}"), "Indexer { len: 0, version: 5, .. }");
}

#[test]
fn a_reflector_can_fill_an_indexer() -> Result<()> {
    let mut indexer = Indexer::<Untyped>::default();
    let lister = indexer.lister();
    let unreadable = |key: &str| {
        let key = Some(key.parse().unwrap());
        Error::new(crate::error::Cause::Unreadable { key }, "no metadata")
    };
    indexer.replace(["a@1", "b@2", "c@2"].map(object).into(), vec![], "3".into())?;
    assert!(lister.has_synced());
    indexer.add(object("d@4"))?;
    indexer.update(object("a@5"))?;
    indexer.update(object("a@1"))?;
    indexer.delete(object("b@6"))?;
    indexer.bookmark("7".into())?;
    assert_eq!(texts(&lister.list()), "a@5 c@2 d@4");
    assert_eq!(lister.resource_version(), "7");
    let known = indexer.known(&"a".parse()?);
    assert!(known.unwrap().is_same_instance(&lister.get("a").unwrap()));
    assert!(indexer.known(&"b".parse()?).is_none());

    indexer.unreadable(unreadable("c"), "7".into(), true)?;
    indexer.unreadable(Error::invalid("no key"), "7".into(), true)?;
    assert_eq!(texts(&lister.list()), "a@5 d@4");
    // What a watch could not read says nothing of a later list. What the list could not read is there.
    indexer.unreadable(unreadable("a"), "8".into(), false)?;
    assert_eq!(lister.resource_version(), "8");
    indexer.replace(vec![object("e@8")], vec![unreadable("d")], "9".into())?;
    assert_eq!(texts(&lister.list()), "e@8 d@4");
    indexer.replace(vec![], vec![], "10".into())?;
    assert!(lister.is_empty());
    Ok(())
}

#[test]
fn i21_the_same_version_in_another_history_is_another_state() {
    let store = Store::new();
    let (before, after) = (labelled("a@5", &[("app", "web")]), labelled("a@5", &[("app", "db")]));
    store.replace(vec![before], &[], &"9".into());
    // Restored to 4, the server has given 5 to another write.
    let difference = store.replace(vec![after.clone()], &[], &"6".into());
    assert_eq!((difference.updated.len(), difference.unchanged.len()), (1, 0));
    assert!(store.get(after.key().into()).unwrap().is_same_instance(&after));
}

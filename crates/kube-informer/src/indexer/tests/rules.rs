//! Writes: the states that are accepted, their effects, and the store's version.

use super::*;

#[test]
fn s1_c10_the_store_decides_whether_an_object_is_new() {
    let store = Store::new();
    let web = object("shop/web@1");
    assert_eq!(said(&apply(&store, vec![put_delta(web.clone())])), "+shop/web@1");
    assert_eq!(put(&store, "shop/web@2"), "shop/web@1>shop/web@2");
    assert_eq!(put(&store, "web@3"), "+web@3");
    assert_eq!(content(&store), "shop/web@2 web@3 at 3");
}

#[test]
fn s1_i11_i16_the_delete_of_an_object_that_is_not_there_is_nothing() {
    let store = Store::new();
    put(&store, "a@1");
    assert_eq!(said(&apply(&store, vec![deleted(object("b@2"))])), "");
    assert_eq!(said(&apply(&store, vec![missed(object("b@3"))])), "");
    assert_eq!(said(&apply(&store, vec![deleted(object("a@4"))])), "-a@4");
    assert_eq!(said(&apply(&store, vec![deleted(object("a@4"))])), "");
    assert_eq!(content(&store), " at 4");
}

#[test]
fn i16_i53_a_delete_that_was_seen_carries_the_object_as_it_went() {
    let store = Store::new();
    put(&store, "a@1");
    let last = object("a@5");
    let applied = apply(&store, vec![deleted(last.clone())]);
    let [Applied::Deleted(gone)] = &*applied else { panic!("{applied:?}") };
    assert!(gone.object.is_same_instance(&last) && gone.final_state == FinalState::Known);
    assert_eq!(store.resource_version(), "5");
}

#[test]
fn i16_s17_a_delete_that_was_missed_carries_what_we_knew_and_no_version() {
    let store = Store::new();
    let known = object("a@4");
    apply(&store, vec![put_delta(known.clone()), Delta::Bookmark("9".into())]);
    // It goes whatever its version, which is not the version of the delete.
    let applied = apply(&store, vec![missed(object("a@2"))]);
    let [Applied::Deleted(gone)] = &*applied else { panic!("{applied:?}") };
    assert!(gone.object.is_same_instance(&known) && gone.final_state == FinalState::Unknown);
    assert_eq!(content(&store), " at 9");

    let opaque = Store::new();
    apply(&opaque, vec![put_delta(object("a@x")), Delta::Bookmark("y".into())]);
    apply(&opaque, vec![missed(object("a@x"))]);
    assert_eq!(opaque.resource_version(), "y");
}

#[test]
fn i2_an_older_state_does_not_come_back() {
    let store = Store::new();
    put(&store, "a@10");
    assert_eq!(put(&store, "a@9"), "");
    assert_eq!(said(&apply(&store, vec![deleted(object("a@9"))])), "");
    assert_eq!(content(&store), "a@10 at 10");
    // Not even under another uid, which is from before.
    let before = made("a", "other", "9", &[]);
    assert_eq!(said(&apply(&store, vec![put_delta(before)])), "");
    // A version that cannot be compared is accepted as it comes.
    assert_eq!(put(&store, "a@x"), "a@10>a@x");
    assert_eq!(put(&store, "a@3"), "a@x>a@3");
}

#[test]
fn i8_the_same_state_again_is_nothing_and_the_first_instance_stays() {
    let store = Store::new();
    let first = object("a@1");
    apply(&store, vec![put_delta(first.clone())]);
    assert_eq!(put(&store, "a@1"), "");
    assert!(store.get("a".into()).unwrap().is_same_instance(&first));
    // An event that is repeated after the delete that followed it looks like a new object. The watch that
    // fills the store does not do that.
    apply(&store, vec![deleted(object("a@2"))]);
    assert_eq!(put(&store, "a@1"), "+a@1");
    assert_eq!(store.resource_version(), "2");
}

#[test]
fn i16_another_uid_at_the_same_key_is_an_update() {
    let store = Store::new();
    put(&store, "a@1");
    let again = made("a", "other", "2", &[]);
    let applied = apply(&store, vec![put_delta(again)]);
    let [Applied::Updated { old, new }] = &*applied else { panic!("{applied:?}") };
    assert_eq!((old.uid(), new.uid()), ("uid", "other"));
}

#[test]
fn objects_without_a_version_are_never_taken_for_the_same_state() {
    let store = Store::new();
    apply(&store, vec![Delta::Bookmark("3".into())]);
    assert_eq!(put(&store, "a@"), "+a@");
    assert_eq!(put(&store, "a@"), "a@>a@");
    assert_eq!(said(&replace(&store, vec![object("a@")], &[], "4")), "a@>a@ synced");
}

#[test]
fn s16_s17_s18_the_version_goes_on_and_never_back_within_a_history() {
    let store = Store::new();
    let after = |change| {
        apply(&store, vec![change]);
        store.resource_version().to_string()
    };
    assert_eq!(after(put_delta(object("a@5"))), "5");
    assert_eq!(after(put_delta(object("b@3"))), "5");
    assert_eq!(after(Delta::Bookmark("10".into())), "10");
    assert_eq!(after(Delta::Bookmark("9".into())), "10");
    assert_eq!(after(deleted(object("b@11"))), "11");
    assert_eq!(after(deleted(object("a@4"))), "11");
    assert_eq!(after(put_delta(object("c@"))), "11");
    assert_eq!(after(Delta::Bookmark("".into())), "11");
    assert_eq!(after(Delta::Bookmark("opaque".into())), "opaque");
}

#[test]
fn s18_i21_replace_sets_the_version_whatever_it_was() {
    let store = Store::new();
    put(&store, "a@100");
    assert_eq!(said(&replace(&store, vec![object("a@7")], &[], "8")), "a@100>a@7 synced");
    assert_eq!(content(&store), "a@7 at 8");
    replace(&store, vec![], &[], "");
    assert_eq!(content(&store), " at ");
}

/// The object cannot be read in the current history, and is not kept from the previous one: its next state
/// would look old.
#[test]
fn i21_what_cannot_be_read_is_not_kept_from_another_history() {
    let store = Store::new();
    replace(&store, vec![object("a@5"), object("b@37")], &[], "54");
    let written = replace(&store, vec![], &["a", "b"], "28");
    assert_eq!(said(&written), "?b@37");
    assert_eq!(content(&store), "a@5 at 28");
    apply(&store, vec![put_delta(object("b@29"))]);
    assert_eq!(content(&store), "a@5 b@29 at 29");
}

#[test]
fn s19_i7_a_batch_is_in_order_and_the_version_is_the_greatest_of_it() {
    let store = Store::new();
    let batch = vec![
        put_delta(object("a@1")),
        put_delta(object("b@2")),
        put_delta(object("a@3")),
        deleted(object("a@4")),
        Delta::Bookmark("6".into()),
        put_delta(object("a@5")),
    ];
    assert_eq!(said(&apply(&store, batch)), "+a@1 +b@2 a@1>a@3 -a@4 +a@5");
    assert_eq!(content(&store), "a@5 b@2 at 6");
}

#[test]
fn s20_there_is_no_version_and_no_sync_at_first() {
    let store = Store::new();
    assert!(store.resource_version().is_empty() && !store.has_synced());
    assert_eq!((store.len(), store.memory(), store.snapshot().0.len()), (0, 0, 0));
    // Whatever precedes a list, even a version.
    apply(&store, vec![put_delta(object("a@1")), Delta::Bookmark("2".into())]);
    assert!(!store.has_synced());
    // A list counts even without objects and without a version.
    assert_eq!(said(&replace(&store, vec![], &["a"], "")), "synced");
    assert!(store.has_synced());
    assert_eq!(said(&replace(&store, vec![object("b@3")], &["a"], "3")), "+b@3");
}

#[test]
fn s5_i5_replace_says_what_is_different() {
    let store = Store::new();
    let same = object("b/same@1");
    apply(
        &store,
        vec![
            put_delta(object("z@1")),
            put_delta(same.clone()),
            put_delta(object("a/changed@2")),
            put_delta(object("a/gone@3")),
            put_delta(object("b/unreadable@4")),
        ],
    );
    let list = ["n/new@7", "b/same@1", "a/changed@6", "m/new@5"].map(object).into();
    let applied = replace(&store, list, &["b/unreadable", "never/seen"], "8");
    // Deletes first, sorted; the rest is the whole new content.
    let first = "?z@1 ?a/gone@3 a/changed@2>a/changed@6 *n/new@7 *m/new@5 =b/same@1 synced";
    assert_eq!(said(&applied), first);
    let unchanged = applied.iter().find_map(|applied| match applied {
        Applied::List(Listed::Unchanged, objects) => Some(objects),
        _ => None,
    });
    assert!(unchanged.unwrap()[0].is_same_instance(&same));
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
    assert_eq!(said(&replace(&store, list, &[], "10")), "*a@3 =b@1 synced");
    assert_eq!(store.len(), 2);
}

#[test]
fn an_unreadable_key_that_is_also_in_the_list_is_replaced() {
    let store = Store::new();
    put(&store, "a@1");
    assert_eq!(said(&replace(&store, vec![object("a@2")], &["a"], "2")), "a@1>a@2 synced");
    assert_eq!(content(&store), "a@2 at 2");
}

#[test]
fn memory_is_the_sum_of_what_is_there() {
    let store = Store::new();
    let small = object("a@1");
    let large = labelled("b@2", &[("app", &"x".repeat(50))]);
    apply(&store, vec![put_delta(small.clone()), put_delta(large.clone())]);
    assert_eq!(store.memory(), small.memory() + large.memory());
    apply(&store, vec![deleted(object("a@3"))]);
    assert_eq!(store.memory(), large.memory());
    replace(&store, vec![small.clone()], &[], "4");
    assert_eq!(store.memory(), small.memory());
}

#[test]
fn s2_l6_i18_readers_get_the_cached_instance_and_keep_it_as_it_is() {
    let store = Store::new();
    let first = object("a@1");
    apply(&store, vec![put_delta(first.clone())]);
    let read = store.get("a".into()).unwrap();
    assert!(read.is_same_instance(&first));
    put(&store, "a@2");
    apply(&store, vec![deleted(object("a@3"))]);
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
    // An object that a watch could not read does not affect a later list. One that the list could not read is
    // kept.
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
    replace(&store, vec![before], &[], "9");
    // Restored to 4, the server has assigned 5 to a different write.
    assert_eq!(said(&replace(&store, vec![after.clone()], &[], "6")), "a@5>a@5");
    assert!(store.get(after.key().into()).unwrap().is_same_instance(&after));
}

//! Lists at any version, in pages, with the number of remaining objects.

use super::*;

fn names(page: &Page) -> Vec<String> {
    page.items.iter().map(|item| item.key().to_string()).collect()
}

/// Returns all pages of a list. Each must start where the last one ended.
fn pages(
    scene: &Scene,
    at: u64,
    namespace: Option<&str>,
    limit: usize,
    select: Option<&dyn Select>,
) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    let mut start = None;
    loop {
        let request =
            PageRequest { namespace, start: start.as_ref(), limit, select, recount: false };
        let page = scene.store.list(&scene.table, Some(at), &request).expect("it is readable");
        assert_eq!(page.version, at);
        out.push(names(&page));
        let last = page.items.last().filter(|_| page.more);
        let Some(last) = last else { return out };
        start = Some(last.key().successor());
    }
}

struct EndsWith1;

impl Select for EndsWith1 {
    fn selects(&self, revision: &Revision) -> bool {
        revision.key().name().ends_with('1')
    }
}

fn populated() -> Scene {
    let scene = Scene::new();
    for namespace in ["b", "a", "aa"] {
        for name in ["y", "x", "x-1", "z"] {
            scene.put(namespace, name, "1");
        }
    }
    scene
}

#[test]
fn pages_join_to_the_list_over_namespaces() {
    let scene = populated();
    let at = scene.store.revision();
    let whole = pages(&scene, at, None, 0, None).concat();
    let sorted = [
        "a/x", "a/x-1", "a/y", "a/z", "aa/x", "aa/x-1", "aa/y", "aa/z", "b/x", "b/x-1", "b/y",
        "b/z",
    ];
    assert_eq!(whole, sorted);
    for limit in 1..14 {
        let paged = pages(&scene, at, None, limit, None);
        assert!(paged.iter().all(|page| page.len() <= limit && !page.is_empty()), "{paged:?}");
        assert_eq!(paged.concat(), sorted);
        let one = pages(&scene, at, Some("aa"), limit, None);
        assert_eq!(one.concat(), &sorted[4..8], "a namespace ends where the next begins");
    }
    assert!(pages(&scene, at, Some("none"), 2, None).concat().is_empty());
}

#[test]
fn a_full_page_with_nothing_after_it_is_the_last() {
    let scene = populated();
    let at = scene.store.revision();
    assert_eq!(pages(&scene, at, Some("b"), 4, None).len(), 1);
    let matching = pages(&scene, at, None, 3, Some(&EndsWith1));
    assert_eq!(matching, [["a/x-1", "aa/x-1", "b/x-1"]]);
    let first_two = pages(&scene, at, None, 2, Some(&EndsWith1));
    assert_eq!(first_two.len(), 2);
}

#[test]
fn a_start_beyond_the_namespace_is_an_empty_page() {
    let scene = populated();
    for (start, expected) in [(Key::new("b", "x"), 0), (Key::new("aa", "y"), 2)] {
        let request =
            PageRequest { namespace: Some("aa"), start: Some(&start), ..PageRequest::default() };
        let page = scene.store.list(&scene.table, None, &request).expect("it is readable");
        assert_eq!(page.items.len(), expected);
    }
    let before = Key::new("a", "x");
    let request =
        PageRequest { namespace: Some("aa"), start: Some(&before), ..PageRequest::default() };
    assert_eq!(scene.store.list(&scene.table, None, &request).unwrap().items.len(), 4);
}

#[test]
fn lists_at_a_version_do_not_see_what_came_later() {
    let scene = Scene::new();
    let empty = scene.store.revision();
    let one = scene.put("a", "x", "1");
    let two = scene.put("a", "y", "1");
    let changed = scene.put("a", "x", "2");
    let gone = scene.delete("a", "y");
    let back = scene.put("a", "y", "3");
    let none: [&str; 0] = [];
    assert_eq!(scene.list(empty).unwrap(), none);
    assert_eq!(scene.list(one).unwrap(), ["a/x=1"]);
    assert_eq!(scene.list(two).unwrap(), ["a/x=1", "a/y=1"]);
    assert_eq!(scene.list(changed).unwrap(), ["a/x=2", "a/y=1"]);
    assert_eq!(scene.list(gone).unwrap(), ["a/x=2"]);
    assert_eq!(scene.list(back).unwrap(), ["a/x=2", "a/y=3"]);
    assert_eq!(scene.list(back + 1), Err(Unreadable::Future { newest: back }));
}

#[test]
fn the_first_page_counts_the_list_now_and_in_the_past() {
    let scene = populated();
    let at = scene.store.revision();
    scene.delete("a", "x");
    scene.delete("aa", "x");
    let total = |at, namespace| {
        let request = PageRequest { namespace, limit: 1, ..PageRequest::default() };
        scene.store.list(&scene.table, at, &request).expect("it is readable").total
    };
    assert_eq!((total(None, None), total(Some(at), None)), (Some(10), Some(12)));
    assert_eq!((total(None, Some("aa")), total(Some(at), Some("aa"))), (Some(3), Some(4)));
}

//! Preconditions on other objects, and readers that do not block writers.

use super::*;

/// Selects every second object, and checks that a write can happen in the meantime.
struct Unlocked<'a>(&'a Store);

impl Select for Unlocked<'_> {
    fn selects(&self, revision: &Revision) -> bool {
        assert!(self.0.state.try_write().is_some(), "matched under the lock");
        revision.version().is_multiple_of(2)
    }
}

#[tokio::test(start_paused = true)]
async fn selectors_are_matched_without_the_lock() {
    let scene = Scene::new();
    for n in 0..2 * SELECT_PART + 10 {
        scene.put("a", &format!("{n:05}"), "1");
    }
    let select = Unlocked(&scene.store);
    let whole = PageRequest { select: Some(&select), ..PageRequest::default() };
    let all = scene.store.list(&scene.table, None, &whole).unwrap();
    assert_eq!((all.items.len(), all.more), (SELECT_PART + 5, false));
    // Pages give the same result, from parts of the table that are larger than a page.
    let mut paged = Vec::new();
    let mut start = None;
    loop {
        let request = PageRequest { limit: 300, start: start.as_ref(), ..whole };
        let page = scene.store.list(&scene.table, Some(all.version), &request).unwrap();
        paged.extend(page.items.iter().map(|item| item.version()));
        start = page.items.last().map(|last| last.key().successor());
        if !page.more {
            break;
        }
        assert_eq!(page.items.len(), 300);
    }
    assert_eq!(paged, all.items.iter().map(|item| item.version()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_object_is_created_only_while_its_holder_is_unchanged() {
    let scene = Scene::new();
    scene.put("", "a", "1");
    let seen = scene.store.get(&scene.table, &Key::new("", "a")).unwrap();
    let holder = Some((&*scene.table, &*seen));
    scene.store.create(&scene.table, &scene.draft("a", "x", "1"), holder).unwrap();
    scene.put("", "a", "2");
    let late = scene.store.create(&scene.table, &scene.draft("a", "y", "1"), holder);
    assert_eq!(late.unwrap_err(), Stale);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_only_while_nothing_is_in_it() {
    let scene = Scene::new();
    let namespace = scene.put("", "a", "1");
    scene.put("a", "x", "1");
    let key = Key::new("", "a");
    let gone = || scene.store.delete_vacant(&scene.table, &key, namespace, "events");
    assert_eq!(gone().unwrap_err(), Stale);
    scene.delete("a", "x");
    gone().unwrap();
}

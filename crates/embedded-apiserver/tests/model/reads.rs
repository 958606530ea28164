//! Lists: complete and paged, current and historical.

use http::Method;
use serde_json::{Value, json};

use super::history::{Key, Selection};
use super::run::Run;
use super::wire::{Reply, version_of};

/// A partially read list.
pub(crate) struct Paged {
    selection: Selection,
    /// `None` after its version has expired: it continues with the current state.
    version: Option<u64>,
    token: String,
    /// The last key that was listed.
    last: Key,
    limit: usize,
}

/// Returns an object as it appears in a list of a built-in kind.
pub(crate) fn listed(object: &Value) -> Value {
    let mut item = object.clone();
    let members = item.as_object_mut().expect("it is one");
    members.remove("apiVersion");
    members.remove("kind");
    item
}

impl Run {
    pub(crate) async fn list(&mut self) {
        let selection = self.any_selection();
        match self.rng.u8(..6) {
            0 => self.list_newest(&selection).await,
            1 => self.list_at_least(&selection).await,
            2 => self.list_exactly(&selection).await,
            3 => self.list_in_the_future(&selection).await,
            _ => self.first_page(&selection).await,
        }
    }

    pub(crate) async fn list_newest(&mut self, selection: &Selection) {
        let any = ["", "&resourceVersion=", "&resourceVersion=0", "&limit=0"];
        let any = any[self.rng.usize(..any.len())];
        let uri = format!("{}{any}", selection.uri());
        let reply = self.ask(&uri).await;
        self.check_page(selection, &reply, self.history.revision, None, 0);
    }

    async fn list_at_least(&mut self, selection: &Selection) {
        let version = self.any_version();
        let uri = selection.uri();
        let uri = format!("{uri}&resourceVersion={version}&resourceVersionMatch=NotOlderThan");
        let reply = self.ask(&uri).await;
        self.check_page(selection, &reply, self.history.revision, None, 0);
    }

    async fn list_exactly(&mut self, selection: &Selection) {
        let version = self.any_version();
        let uri = selection.uri();
        let uri = format!("{uri}&resourceVersion={version}&resourceVersionMatch=Exact");
        let reply = self.ask(&uri).await;
        if version < self.history.compacted {
            return expired(&reply, false);
        }
        self.check_page(selection, &reply, version, None, 0);
    }

    async fn list_in_the_future(&mut self, selection: &Selection) {
        let version = self.history.revision + self.rng.u64(1..5);
        let how = if self.rng.bool() { "" } else { "&resourceVersionMatch=Exact" };
        let uri = format!("{}&resourceVersion={version}{how}", selection.uri());
        let reply = self.ask(&uri).await;
        assert_eq!((reply.code, &reply.body["reason"]), (504, &json!("Timeout")));
    }

    async fn first_page(&mut self, selection: &Selection) {
        let limit = self.rng.usize(1..6);
        let past = self.rng.bool().then(|| self.any_version());
        let at = past.map_or_else(String::new, |version| format!("&resourceVersion={version}"));
        let reply = self.ask(&format!("{}&limit={limit}{at}", selection.uri())).await;
        if past.is_some_and(|version| version < self.history.compacted) {
            return expired(&reply, false);
        }
        let version = past.unwrap_or(self.history.revision);
        self.check_page(selection, &reply, version, None, limit);
        self.go_on(selection, &reply, Some(version), limit);
    }

    /// Keeps an unfinished list for later.
    fn go_on(&mut self, selection: &Selection, page: &Reply, version: Option<u64>, limit: usize) {
        let Some(token) = page.body["metadata"]["continue"].as_str() else { return };
        let last = page.body["items"].as_array().and_then(|items| items.last());
        let text = |name: &str| {
            let value = last.and_then(|last| last["metadata"][name].as_str());
            value.unwrap_or_default().to_owned()
        };
        let last = (text("namespace"), text("name"));
        let token = token.to_owned();
        self.paged.push(Paged { selection: selection.clone(), version, token, last, limit });
    }

    pub(crate) async fn next_page(&mut self) {
        if self.paged.is_empty() {
            return self.list().await;
        }
        let at = self.rng.usize(..self.paged.len());
        let Paged { selection, version, token, last, limit } = self.paged.swap_remove(at);
        let reply = self.ask(&format!("{}&limit={limit}&continue={token}", selection.uri())).await;
        if version.is_some_and(|version| version < self.history.compacted) {
            expired(&reply, true);
            let token = reply.body["metadata"]["continue"].as_str().expect("it has one").to_owned();
            self.paged.push(Paged { selection, version: None, token, last, limit });
            return;
        }
        let version = version.unwrap_or(self.history.revision);
        self.check_page(&selection, &reply, version, Some(&last), limit);
        self.go_on(&selection, &reply, Some(version), limit);
    }

    async fn ask(&mut self, uri: &str) -> Reply {
        let client = self.any_client();
        self.send(client, Method::GET, uri, &Value::Null).await
    }

    /// Checks that a page has the model's first objects after a key, up to `limit`.
    fn check_page(
        &self,
        selection: &Selection,
        page: &Reply,
        version: u64,
        after: Option<&Key>,
        limit: usize,
    ) {
        assert_eq!(page.code, 200, "{}", page.body);
        assert_eq!(version_of(&page.body), version);
        let state = self.history.at(selection, version);
        let all: Vec<Value> = state
            .into_iter()
            .filter(|(key, _)| after.is_none_or(|after| *key > after))
            .map(|(_, object)| listed(object))
            .collect();
        let shown = if limit == 0 { all.len() } else { limit.min(all.len()) };
        let items = page.body["items"].as_array().expect("it is a list");
        assert_eq!(items, &all[..shown]);
        let (token, remaining) =
            (&page.body["metadata"]["continue"], &page.body["metadata"]["remainingItemCount"]);
        assert_eq!(token.is_string(), shown < all.len(), "a token leads to more, if there is more");
        match remaining.as_u64() {
            Some(remaining) => {
                assert!(!selection.selects(), "a selector's matches are not counted");
                assert_eq!(remaining as usize, all.len() - shown);
            }
            // A list that had to change its version has no count.
            None => assert!(shown == all.len() || selection.selects() || after.is_some()),
        }
    }
}

fn expired(reply: &Reply, continued: bool) {
    assert_eq!((reply.code, &reply.body["reason"]), (410, &json!("Expired")), "{}", reply.body);
    assert_eq!(reply.body["metadata"]["continue"].is_string(), continued);
}

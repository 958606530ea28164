//! Writes: the results that the model predicts, compared with those received.

use http::Method;
use serde_json::{Value, json};

use super::history::{KINDS, Key, Selection, collection, count_of, path, set_count};
use super::objects::{finalizers, is_going, metadata, restore_status, table, tidy};
use super::run::{NAMESPACES, Run};
use super::wire::Reply;

const NAMES: [&str; 6] = ["a", "a-b", "a.b", "aa", "b", "z"];

impl Run {
    pub(crate) async fn write(&mut self) {
        let client = self.any_client();
        let selection = self.any_selection();
        let kind = selection.kind;
        let namespace = selection.namespace.unwrap_or("default");
        let namespace = if KINDS[kind].namespaced { namespace } else { "" };
        let key = (namespace.to_owned(), NAMES[self.rng.usize(..NAMES.len())].to_owned());
        match self.rng.u8(..100) {
            0..22 => self.create(client, kind, key).await,
            22..32 => self.get(client, kind, key).await,
            32..55 => self.count_up(client, kind, key).await,
            55..62 => self.overwrite(client, kind, key).await,
            62..68 => self.merge_patch(client, kind, key).await,
            68..74 => self.json_patch(client, kind, key).await,
            74..80 => self.set_status(client, kind, key).await,
            80..94 => self.delete(client, kind, key).await,
            94..98 => self.change_finalizers(client, kind, key).await,
            _ => {
                let namespace = NAMESPACES.into_iter().find(|n| *n == key.0);
                self.delete_collection(client, &Selection { namespace, ..selection }).await;
            }
        }
    }

    /// Makes more changes than a watch reads from the store at once.
    pub(crate) async fn burst(&mut self) {
        let (client, key) = (self.any_client(), ("default".to_owned(), "a".to_owned()));
        if self.history.current(0, &key).is_none() {
            self.create(client, 0, key.clone()).await;
        }
        self.get(client, 0, key.clone()).await;
        for _ in 0..self.rng.usize(250..350) {
            self.count_up(client, 0, key.clone()).await;
        }
    }

    fn any_labels(&mut self) -> Option<Value> {
        let colors = [None, Some("red"), Some("blue"), Some("green")];
        let color = colors[self.rng.usize(..colors.len())]?;
        Some(json!({"color": color, "n": self.rng.u8(..3).to_string()}))
    }

    async fn create(&mut self, client: usize, index: usize, mut key: Key) {
        let kind = &KINDS[index];
        let mut body = json!({"apiVersion": kind.api_version, "kind": kind.name, "metadata": {}});
        set_count(kind, &mut body, 0);
        let generated = self.rng.u8(..10) == 0;
        if generated {
            body["metadata"]["generateName"] = "b-".into();
        } else {
            body["metadata"]["name"] = key.1.clone().into();
        }
        if let Some(labels) = self.any_labels() {
            body["metadata"]["labels"] = labels;
        }
        if self.rng.u8(..5) == 0 {
            body["metadata"]["finalizers"] = json!(["x/one", "x/two"]);
        }
        if kind.section == "spec" && kind.status {
            body["spec"]["replicas"] = 3.into();
        }
        let mut expected = body.clone();
        if kind.first_status {
            expected["status"] = json!({});
        }
        if kind.status {
            // Clients cannot set this.
            body["status"] = json!({"said": "by a client"});
        }
        let uri = collection(kind, Some(&key.0));
        let Reply { code, body: made } = self.send(client, Method::POST, &uri, &body).await;
        if !generated && self.history.current(index, &key).is_some() {
            assert_eq!((code, &made["reason"]), (409, &json!("AlreadyExists")));
            return;
        }
        assert_eq!(code, 201, "{made}");
        if generated {
            made["metadata"]["name"].as_str().expect("it has a name").clone_into(&mut key.1);
            assert!(key.1.starts_with("b-") && key.1.len() == 7, "{}", key.1);
            assert_eq!(self.history.current(index, &key), None);
        }
        let metadata = expected["metadata"].as_object_mut().expect("it is one");
        metadata.insert("name".to_owned(), key.1.clone().into());
        if kind.namespaced {
            metadata.insert("namespace".to_owned(), key.0.clone().into());
        }
        if kind.generation {
            metadata.insert("generation".to_owned(), 1.into());
        }
        let uid = made["metadata"]["uid"].as_str().expect("it has a uid");
        let known = |uid: &str| {
            let mut states = self.history.changes.iter().filter_map(|c| c.after.as_ref());
            states.any(|state| state["metadata"]["uid"] == uid)
        };
        assert!(uid.len() == 36 && !known(uid), "a uid is given once");
        for servers in ["uid", "creationTimestamp"] {
            metadata.insert(servers.to_owned(), made["metadata"][servers].clone());
        }
        self.written(client, index, &key, expected, &made);
    }

    /// Assigns the next version to `expected`, which must equal the response.
    fn written(&mut self, client: usize, kind: usize, key: &Key, expected: Value, got: &Value) {
        let mut expected = expected;
        let version = self.history.revision + 1;
        expected["metadata"]["resourceVersion"] = version.to_string().into();
        assert_eq!(got, &expected, "{} {key:?}", KINDS[kind].plural);
        self.history.push(kind, key, Some(expected));
        self.clients[client].seen.insert((kind, key.clone()), got.clone());
    }

    /// Checks the result of an accepted change: nothing if nothing changed, the removal of an
    /// object that waited for its last finalizer, or a new state.
    fn changed(&mut self, client: usize, index: usize, key: &Key, mut new: Value, got: &Value) {
        let old = self.history.current(index, key).expect("it is there").clone();
        tidy(&mut new);
        let spec = |object: &Value| {
            let mut parts = object.as_object().cloned().unwrap_or_default();
            parts.retain(|name, _| !matches!(name.as_str(), "metadata" | "status"));
            parts
        };
        if KINDS[index].generation && spec(&old) != spec(&new) {
            let generation = old["metadata"]["generation"].as_i64().expect("it has one") + 1;
            new["metadata"]["generation"] = generation.into();
        }
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        if new == old {
            assert_eq!(got, &old, "nothing changed");
            return;
        }
        if is_going(&new) && finalizers(&new).is_empty() {
            assert_eq!(got, &new, "the answer to a last change is that change");
            self.history.push(index, key, None);
            return;
        }
        self.written(client, index, key, new, got);
    }

    async fn get(&mut self, client: usize, kind: usize, key: Key) {
        let Reply { code, body } =
            self.send(client, Method::GET, &path(&KINDS[kind], &key), &Value::Null).await;
        match self.history.current(kind, &key) {
            Some(object) => {
                assert_eq!((code, &body), (200, object));
                self.clients[client].seen.insert((kind, key), body);
            }
            None => assert_eq!((code, &body["reason"]), (404, &json!("NotFound"))),
        }
    }

    /// Reads, modifies and writes, with any time in between. No update is lost.
    async fn count_up(&mut self, client: usize, index: usize, key: Key) {
        let kind = &KINDS[index];
        let Some(seen) = self.clients[client].seen.get(&(index, key.clone())).cloned() else {
            return self.get(client, index, key).await;
        };
        let mut wanted = seen.clone();
        set_count(kind, &mut wanted, count_of(kind, &seen) + 1);
        match self.any_labels() {
            Some(labels) => wanted["metadata"]["labels"] = labels,
            None => drop(metadata(&mut wanted).remove("labels")),
        }
        if kind.status {
            wanted["status"] = json!({"not": "here"});
        }
        let Reply { code, body } = self.send(client, Method::PUT, &path(kind, &key), &wanted).await;
        let Some(current) = self.history.current(index, &key).cloned() else {
            return assert_eq!(code, 404, "{body}");
        };
        if current["metadata"]["resourceVersion"] != seen["metadata"]["resourceVersion"] {
            return assert_eq!((code, &body["reason"]), (409, &json!("Conflict")));
        }
        assert_eq!((code, &current), (200, &seen), "{body}");
        restore_status(kind, &current, &mut wanted);
        self.changed(client, index, &key, wanted, &body);
        let count = self.history.current(index, &key).map(|now| count_of(kind, now));
        assert_eq!(count, Some(count_of(kind, &current) + 1));
    }

    /// Sends a PUT without a resourceVersion.
    async fn overwrite(&mut self, client: usize, index: usize, key: Key) {
        let kind = &KINDS[index];
        let mut wanted = json!({"apiVersion": kind.api_version, "kind": kind.name,
            "metadata": {"name": key.1}});
        set_count(kind, &mut wanted, self.rng.i64(..3));
        if let Some(labels) = self.any_labels() {
            wanted["metadata"]["labels"] = labels;
        }
        let Reply { code, body } = self.send(client, Method::PUT, &path(kind, &key), &wanted).await;
        let Some(current) = self.history.current(index, &key).cloned() else {
            return assert_eq!(code, 404, "{body}");
        };
        if kind.needs_version {
            return assert_eq!((code, &body["reason"]), (422, &json!("Invalid")));
        }
        assert_eq!(code, 200, "{body}");
        restore_status(kind, &current, &mut wanted);
        let servers = [
            "namespace",
            "uid",
            "creationTimestamp",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ];
        for name in servers.into_iter().filter(|name| current["metadata"].get(name).is_some()) {
            wanted["metadata"][name] = current["metadata"][name].clone();
        }
        self.changed(client, index, &key, wanted, &body);
    }

    async fn merge_patch(&mut self, client: usize, index: usize, key: Key) {
        let kind = &KINDS[index];
        let labels = self.any_labels().unwrap_or(Value::Null);
        let count = self.rng.i64(..1000);
        let mut patch = json!({"metadata": {"labels": labels}});
        set_count(kind, &mut patch, count);
        let reply = self.send(client, Method::PATCH, &path(kind, &key), &patch).await;
        let Some(mut wanted) = self.history.current(index, &key).cloned() else {
            return assert_eq!(reply.code, 404, "{}", reply.body);
        };
        assert_eq!(reply.code, 200, "{}", reply.body);
        metadata(&mut wanted).insert("labels".to_owned(), labels);
        set_count(kind, &mut wanted, count);
        self.changed(client, index, &key, wanted, &reply.body);
    }

    /// Sends a conditional patch.
    async fn json_patch(&mut self, client: usize, index: usize, key: Key) {
        let kind = &KINDS[index];
        let labels = json!({"color": "red"});
        let tested = self.rng.i64(..4);
        let mut number = json!({});
        set_count(kind, &mut number, tested);
        let at = format!("/{}/count", kind.section);
        let patch = json!([
            {"op": "test", "path": at, "value": number[kind.section]["count"]},
            {"op": "add", "path": "/metadata/labels", "value": labels},
        ]);
        let reply = self.send(client, Method::PATCH, &path(kind, &key), &patch).await;
        let Some(mut wanted) = self.history.current(index, &key).cloned() else {
            return assert_eq!(reply.code, 404, "{}", reply.body);
        };
        if count_of(kind, &wanted) != tested {
            return assert_eq!(reply.code, 422, "{}", reply.body);
        }
        assert_eq!(reply.code, 200, "{}", reply.body);
        metadata(&mut wanted).insert("labels".to_owned(), labels);
        self.changed(client, index, &key, wanted, &reply.body);
    }

    async fn set_status(&mut self, client: usize, index: usize, key: Key) {
        let kind = &KINDS[index];
        let uri = format!("{}/status", path(kind, &key));
        let Some(mut wanted) = self.history.current(index, &key).cloned() else { return };
        let status = json!({"ready": self.rng.u8(..3)});
        let mut body = wanted.clone();
        body["status"] = status.clone();
        set_count(kind, &mut body, 77);
        body["metadata"]["labels"] = json!({"color": "through-the-status"});
        let reply = self.send(client, Method::PUT, &uri, &body).await;
        if !kind.status {
            return assert_eq!(reply.code, 404);
        }
        assert_eq!(reply.code, 200, "{}", reply.body);
        wanted["status"] = status;
        if kind.labels_with_status {
            wanted["metadata"]["labels"] = body["metadata"]["labels"].take();
        }
        self.changed(client, index, &key, wanted, &reply.body);
    }

    async fn change_finalizers(&mut self, client: usize, index: usize, key: Key) {
        let kind = &KINDS[index];
        let Some(mut wanted) = self.history.current(index, &key).cloned() else { return };
        let mut new = finalizers(&wanted);
        let adds = self.rng.u8(..3) == 0;
        if adds {
            new.push("x/three".to_owned());
        } else {
            new.pop();
        }
        new.dedup();
        let added = new.len() > finalizers(&wanted).len();
        let list = if new.is_empty() { Value::Null } else { json!(new) };
        let body = json!({"metadata": {"finalizers": list}});
        let reply = self.send(client, Method::PATCH, &path(kind, &key), &body).await;
        if added && is_going(&wanted) {
            return assert_eq!((reply.code, &reply.body["reason"]), (422, &json!("Invalid")));
        }
        assert_eq!(reply.code, 200, "{}", reply.body);
        metadata(&mut wanted).insert("finalizers".to_owned(), list);
        self.changed(client, index, &key, wanted, &reply.body);
    }

    async fn delete(&mut self, client: usize, index: usize, key: Key) {
        let kind = &KINDS[index];
        let seen = self.clients[client].seen.get(&(index, key.clone())).cloned();
        let precondition = seen.filter(|_| self.rng.u8(..4) == 0);
        let body = precondition.as_ref().map_or(Value::Null, |seen| {
            json!({"preconditions": {"uid": seen["metadata"]["uid"],
                "resourceVersion": seen["metadata"]["resourceVersion"]}})
        });
        let reply = self.send(client, Method::DELETE, &path(kind, &key), &body).await;
        let Some(current) = self.history.current(index, &key).cloned() else {
            return assert_eq!(reply.code, 404, "{}", reply.body);
        };
        if precondition.is_some_and(|seen| seen != current) {
            return assert_eq!(reply.code, 409, "{}", reply.body);
        }
        assert_eq!(reply.code, 200, "{}", reply.body);
        match self.marked(index, &key, &reply.body["metadata"]["deletionTimestamp"]) {
            None => assert_eq!(reply.body["details"]["uid"], current["metadata"]["uid"]),
            Some(state) => assert_eq!(reply.body, state),
        }
    }

    /// Applies a delete to the model. Returns the new state, or `None` if the object was removed.
    fn marked(&mut self, index: usize, key: &Key, at: &Value) -> Option<Value> {
        let mut state = self.history.current(index, key).expect("it is there").clone();
        if finalizers(&state).is_empty() {
            self.history.push(index, key, None);
            return None;
        }
        if is_going(&state) {
            return Some(state);
        }
        state["metadata"]["deletionTimestamp"] = at.clone();
        state["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        if KINDS[index].generation {
            let generation = state["metadata"]["generation"].as_i64().expect("it has one") + 1;
            state["metadata"]["generation"] = generation.into();
        }
        let version = self.history.revision + 1;
        state["metadata"]["resourceVersion"] = version.to_string().into();
        self.history.push(index, key, Some(state.clone()));
        Some(state)
    }

    async fn delete_collection(&mut self, client: usize, selection: &Selection) {
        let reply = self.send(client, Method::DELETE, &selection.uri(), &Value::Null).await;
        assert_eq!(reply.code, 200, "{}", reply.body);
        let state = self.history.at(selection, self.history.revision);
        let keys: Vec<Key> = state.into_keys().cloned().collect();
        let listed = reply.body["items"].as_array().expect("it is a list").len();
        assert_eq!(listed, keys.len());
        for key in keys {
            // The time is the same as in any other response at this moment, so the store's value is
            // used.
            let (kind, table) = (selection.kind, table(&KINDS[selection.kind]));
            let now = self.server.get(&table, &key.0, &key.1).unwrap_or_default();
            self.marked(kind, &key, &now["metadata"]["deletionTimestamp"]);
        }
    }
}

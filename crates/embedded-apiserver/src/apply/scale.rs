//! Managers of an object's replicas, as its `scale` subresource shows them.

use super::managers::{Author, Entry, Managers};
use super::set::{Element, Set};

/// The field of an object that its scale shows as `spec.replicas`.
pub(crate) struct Replicas {
    path: Vec<Element>,
}

impl Replicas {
    /// Returns the field at a dotted path.
    pub(crate) fn at(path: &str) -> Self {
        Self { path: path.split('.').map(Element::field).collect() }
    }

    /// Returns the managers of the scale: those of the object that own its replicas.
    pub(crate) fn of_scale(&self, managers: &Managers, scale_version: &str) -> Managers {
        let owners = managers.0.iter().filter(|entry| entry.fields.has(&self.path));
        let entries = owners.map(|entry| Entry {
            author: Author { api_version: scale_version.to_owned(), ..entry.author.clone() },
            time: entry.time.clone(),
            fields: Set::of_fields(&[&["spec", "replicas"]]),
        });
        Managers(entries.collect())
    }

    /// Returns the managers of the object after a write to its scale.
    pub(crate) fn of_object(
        &self,
        managers: &Managers,
        scale: &Managers,
        api_version: &str,
    ) -> Managers {
        let mut replicas = Set::default();
        replicas.insert(&self.path);
        let in_scale = |author: &Author| {
            // The versions differ, the managers are the same.
            scale.0.iter().position(|entry| {
                let other =
                    Author { api_version: author.api_version.clone(), ..entry.author.clone() };
                other.is_same_as(author)
            })
        };
        let mut claimed = vec![false; scale.0.len()];
        let mut out = Managers::default();
        for entry in &managers.0 {
            let mut entry = entry.clone();
            if entry.fields.has(&self.path) {
                match in_scale(&entry.author) {
                    Some(at) => claimed[at] = true,
                    None => entry.fields = entry.fields.difference(&replicas),
                }
            }
            if !entry.fields.is_empty() {
                out.0.push(entry);
            }
        }
        for (entry, _) in scale.0.iter().zip(claimed).filter(|(_, claimed)| !claimed) {
            let author = Author { api_version: api_version.to_owned(), ..entry.author.clone() };
            let previous = out.take(&author);
            let fields = previous
                .map_or_else(|| replicas.clone(), |previous| previous.fields.union(&replicas));
            out.0.push(Entry { author, time: entry.time.clone(), fields });
        }
        out
    }
}

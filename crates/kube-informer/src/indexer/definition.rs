//! What an index is by: how the values of an object are found.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{FieldPath, Object};

/// A function of somebody's own, without the type of its objects.
pub(crate) type IndexFn = Box<dyn Fn(&Object) -> Vec<Arc<str>> + Send + Sync>;

/// A name, and how the values of an object are found.
pub(crate) struct Definition {
    pub(super) name: Arc<str>,
    source: Source,
    panics: AtomicU64,
}

/// Where the values of an object come from.
pub(crate) enum Source {
    Label(Arc<str>),
    Field(FieldPath),
    Controller,
    Function(IndexFn),
}

impl Definition {
    pub(super) fn new(name: Arc<str>, source: Source) -> Self {
        Self { name, source, panics: AtomicU64::new(0) }
    }

    /// The values of an object, sorted, each once. This is the only place that calls functions of
    /// users, and what calls it holds no lock.
    pub(super) fn values(&self, object: &Object) -> Vec<Arc<str>> {
        let mut values = match &self.source {
            Source::Label(label) => {
                object.labels().get(label).map(Into::into).into_iter().collect()
            }
            Source::Field(path) => object.index_values(path),
            Source::Controller => {
                object.controller().map(|owner| owner.uid.into()).into_iter().collect()
            }
            Source::Function(function) => self.contained(function, object),
        };
        values.sort_unstable();
        values.dedup();
        values
    }

    /// An object for which the function panics has no values.
    fn contained(&self, function: &IndexFn, object: &Object) -> Vec<Arc<str>> {
        catch_unwind(AssertUnwindSafe(|| function(object))).unwrap_or_else(|_| {
            // The text of the panic is left out: it may quote the object.
            if self.panics.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::error!(
                    index = &*self.name,
                    object = %object.key(),
                    "the function of this index panicked; objects for which it does are not in the \
                     index (said once, counted from now on)"
                );
            }
            Vec::new()
        })
    }

    /// How often the function has panicked.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// By the same thing. A function is never the same as another.
    pub(super) fn is_same(&self, source: &Source) -> bool {
        match (&self.source, source) {
            (Source::Label(ours), Source::Label(theirs)) => ours == theirs,
            (Source::Field(ours), Source::Field(theirs)) => ours == theirs,
            (Source::Controller, Source::Controller) => true,
            _ => false,
        }
    }
}

/// What an object has in each of the indexes, in their order, as far as it was asked.
#[derive(Default)]
pub(super) struct Prepared(Vec<Vec<Arc<str>>>);

impl Prepared {
    /// Asks the indexes that were not asked yet.
    pub(super) fn extend(&mut self, object: &Object, definitions: &[Arc<Definition>]) {
        let new = definitions.iter().skip(self.0.len());
        self.0.extend(new.map(|definition| definition.values(object)));
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = Vec<Arc<str>>> {
        self.0.into_iter()
    }
}

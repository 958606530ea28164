//! A handler's view, folded from its events, and checks that each event is allowed.

use std::collections::BTreeMap;

use super::history::{History, Place, Scope, Told};

/// An event that a handler received.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Added { told: Told, initial: bool },
    Updated { old: Told, new: Told },
    Deleted { told: Told, known: bool },
    Resynced(Told),
    Synced,
}

impl What {
    pub(crate) fn told(&self) -> Option<&Told> {
        match self {
            What::Added { told, .. } | What::Deleted { told, .. } | What::Resynced(told) => {
                Some(told)
            }
            What::Updated { new, .. } => Some(new),
            What::Synced => None,
        }
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            What::Added { told, initial } => write!(f, "added {told} initial={initial}"),
            What::Updated { old, new } => write!(f, "updated {old} -> {new}"),
            What::Deleted { told, known } => write!(f, "deleted {told} known={known}"),
            What::Resynced(told) => write!(f, "resynced {told}"),
            What::Synced => f.write_str("synced"),
        }
    }
}

/// The options of a handler.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is chosen by itself")]
pub(crate) struct Wants {
    pub(crate) resync: bool,
    pub(crate) only_changes: bool,
    pub(crate) filtered: bool,
    /// Whether it distinguishes resyncs from updates.
    pub(crate) knows_resyncs: bool,
}

pub(crate) struct Fold {
    wants: Wants,
    pub(crate) view: BTreeMap<String, Told>,
    /// The last place of each key in the history; kept after the object is gone.
    places: BTreeMap<String, Place>,
    pub(crate) synced: bool,
    /// The number of repetitions so far.
    pub(crate) repeated: usize,
}

impl Fold {
    pub(crate) fn new(wants: Wants) -> Self {
        let (view, places) = (BTreeMap::new(), BTreeMap::new());
        Self { wants, view, places, synced: false, repeated: 0 }
    }

    /// Folds one event. `base` is the oldest history that it can belong to.
    pub(crate) fn take(
        &mut self,
        history: &History,
        scope: &Scope,
        base: usize,
        what: &What,
    ) -> Result<(), String> {
        // Across histories, versions do not show whether two states are the same.
        let comparable = history.current() == base;
        // While one namespace is still being listed, another may be watched already.
        let in_parts = scope.namespaces.len() > 1;
        match what {
            What::Synced if self.synced => return Err("I12: synced twice".into()),
            What::Synced => self.synced = true,
            What::Added { told, initial } => {
                if *initial && self.synced || !(*initial || self.synced || in_parts) {
                    return Err("I12: initial adds come before synced, and only they".into());
                }
                if let Some(had) = self.view.get(&told.key) {
                    return Err(format!("I11: added, but it had {had}"));
                }
                self.is_state(history, scope, base, told)?;
                self.view.insert(told.key.clone(), told.clone());
            }
            _ if !self.synced && !in_parts => return Err("I12: this comes after synced".into()),
            What::Updated { old, new } => {
                if self.view.get(&old.key) != Some(old) {
                    let had = self.view.get(&old.key);
                    return Err(format!("I11: updated from what it was not told; it had {had:?}"));
                }
                self.is_state(history, scope, base, new)?;
                if old == new {
                    self.repeated += 1;
                    if self.wants.only_changes && comparable {
                        return Err("only changes were asked for".into());
                    }
                }
                self.view.insert(new.key.clone(), new.clone());
            }
            What::Deleted { told, known } => {
                let Some(had) = self.view.remove(&told.key) else {
                    return Err("I16: deleted, but it did not have it".into());
                };
                self.is_deletion(history, scope, base, told, *known, &had)?;
            }
            What::Resynced(told) => {
                self.repeated += 1;
                if !self.wants.resync || self.wants.only_changes || !self.wants.knows_resyncs {
                    return Err("I17: did not ask for a resync".into());
                }
                if self.view.get(&told.key) != Some(told) {
                    let had = self.view.get(&told.key);
                    return Err(format!("I17: a resync is inert; it had {had:?}"));
                }
            }
        }
        Ok(())
    }

    fn from(&self, base: usize, key: &str) -> Place {
        let place = self.places.get(key).copied().unwrap_or_default();
        if place.0 < base { (base, 0) } else { place }
    }

    /// I1, I2, I3: checks that the state existed, and that it is not older than the last one delivered.
    fn is_state(
        &mut self,
        history: &History,
        scope: &Scope,
        base: usize,
        told: &Told,
    ) -> Result<(), String> {
        let from = self.from(base, &told.key);
        let place = history.place_state(from, scope, told);
        let place = place.ok_or_else(|| {
            format!("I1, I2: no such state in any history from {from:?} on, or one going back")
        })?;
        self.places.insert(told.key.clone(), place);
        Ok(())
    }

    /// I16: checks that a delete carries the final state if it was observed.
    fn is_deletion(
        &mut self,
        history: &History,
        scope: &Scope,
        base: usize,
        told: &Told,
        known: bool,
        had: &Told,
    ) -> Result<(), String> {
        let from = self.from(base, &told.key);
        let end = history.place_end(from, scope, told);
        let state = history.place_state(from, scope, told);
        let place = match (known, self.wants.filtered) {
            (true, false) => end,
            (true, true) => end.or(state.filter(|_| told == had)),
            (false, _) => state,
        };
        let place = place.ok_or_else(|| format!("I16: it did not end so, from {from:?} on"))?;
        self.places.insert(told.key.clone(), place);
        Ok(())
    }
}

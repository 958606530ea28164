//! The effects of a write on the store, and the corresponding events.

use std::sync::Arc;

use crate::{Deleted, Event, Object};

/// One effect of a write. Lists are shared between all listeners.
#[derive(Clone, Debug)]
pub(crate) enum Applied {
    /// A new object.
    Added(Object),
    /// A changed object, with its previous state.
    Updated { old: Object, new: Object },
    /// An object that was stored and is gone.
    Deleted(Deleted),
    /// Many objects with the same effect.
    List(Listed, Arc<[Object]>),
    /// The first list is complete.
    Synced,
}

/// The sort of a list, which decides the event that its objects are delivered as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listed {
    /// Objects of the first list: each is added, as initial.
    Initial,
    /// Objects that a relist found unchanged: each is an update to the same version.
    Unchanged,
    /// All objects, because a resync period has elapsed.
    Resync,
}

impl Applied {
    /// Returns the event, or the list whose objects are one event each.
    pub(crate) fn into_event(self) -> Result<Event, (Listed, Arc<[Object]>)> {
        match self {
            Applied::Added(object) => Ok(Event::Added { object, initial: false }),
            Applied::Updated { old, new } => Ok(Event::Updated { old, new }),
            Applied::Deleted(deleted) => Ok(Event::Deleted(deleted)),
            Applied::Synced => Ok(Event::Synced),
            Applied::List(listed, objects) => Err((listed, objects)),
        }
    }
}

impl Listed {
    /// Returns the event for an object of such a list.
    pub(crate) fn event(self, object: Object) -> Event {
        match self {
            Listed::Initial => Event::Added { object, initial: true },
            Listed::Unchanged => Event::Updated { old: object.clone(), new: object },
            Listed::Resync => Event::Resynced(object),
        }
    }
}

/// Returns all events, in order. `initial` says whether added objects are part of the initial list.
pub(super) fn events(applied: Vec<Applied>, initial: bool) -> Vec<Event> {
    let mut events = Vec::with_capacity(applied.len());
    for applied in applied {
        match applied.into_event() {
            Ok(event) => events.push(event),
            Err((listed, objects)) => {
                events.extend(objects.iter().map(|object| listed.event(object.clone())));
            }
        }
    }
    for event in &mut events {
        if let Event::Added { initial: said, .. } = event {
            *said = initial;
        }
    }
    events
}

//! The effects of a write on the store, and the events that they are.

use std::sync::Arc;

use crate::{Deleted, Event, Object};

/// One effect of a write. Lists are shared between all listeners.
#[derive(Clone, Debug)]
pub(crate) enum Applied {
    /// The object was not there.
    Added(Object),
    /// It was, as this.
    Updated { old: Object, new: Object },
    /// It was there, and went.
    Deleted(Deleted),
    /// Many objects, of which the same is to be said.
    List(Listed, Arc<[Object]>),
    /// The first list is complete.
    Synced,
}

/// The event that the objects of a list are delivered as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listed {
    /// They are in the first list: each is added, as an initial one.
    Initial,
    /// A relist found them as they were: each is an update to the same version.
    Unchanged,
    /// All objects, since a resync period is over.
    Resync,
}

impl Applied {
    /// The event that it is, or the list of which each object is one.
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
    /// The event that an object of such a list is.
    pub(crate) fn event(self, object: Object) -> Event {
        match self {
            Listed::Initial => Event::Added { object, initial: true },
            Listed::Unchanged => Event::Updated { old: object.clone(), new: object },
            Listed::Resync => Event::Resynced(object),
        }
    }
}

/// All events, in order. The caller knows whether objects that are added are initial ones.
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

//! Matches objects by namespace, label selector and field selector.

use std::sync::Arc;

use crate::kinds::Resource;
use crate::request::Target;
use crate::selector::{FieldOperator, FieldSelector, LabelSelector};
use crate::status::Status;
use crate::store::{Event, EventType, PageRequest, Revision, Select};

/// The selection of a request, prepared for matching revisions.
#[derive(Debug)]
pub(crate) struct Matcher {
    namespace: Option<String>,
    labels: LabelSelector,
    terms: Vec<Term>,
}

#[derive(Debug)]
struct Term {
    field: Field,
    equal: bool,
    value: String,
}

#[derive(Debug)]
enum Field {
    Name,
    Namespace,
    /// An index into `Revision::fields`.
    At(usize),
    /// A path into a custom object.
    Path(String),
}

impl Matcher {
    pub(crate) fn new(target: &Target) -> Result<Self, Status> {
        let labels =
            LabelSelector::parse(&target.query.label_selector).map_err(Status::bad_request)?;
        let fields =
            FieldSelector::parse(&target.query.field_selector).map_err(Status::bad_request)?;
        let terms = fields.terms().map(|(field, operator, value)| {
            let field = field_of(&target.resource, &target.storage, field)?;
            let equal = operator == FieldOperator::Equals;
            Ok(Term { field, equal, value: value.to_owned() })
        });
        Ok(Self {
            namespace: target.namespace.clone(),
            labels,
            terms: terms.collect::<Result<_, _>>()?,
        })
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns a request for all selected objects, as a single page.
    pub(crate) fn page(&self) -> PageRequest<'_> {
        let select = self.has_selectors().then_some(self as &dyn Select);
        PageRequest { namespace: self.namespace(), select, ..PageRequest::default() }
    }

    fn has_selectors(&self) -> bool {
        !self.labels.is_empty() || !self.terms.is_empty()
    }

    fn matches(&self, revision: &Revision) -> bool {
        self.namespace().is_none_or(|namespace| namespace == revision.key().namespace())
            && self.terms.iter().all(|term| term.matches(revision))
            && self.labels.matches(revision.labels())
    }

    /// Returns how a watcher with this selection sees a change. An object that starts to match is
    /// an ADDED. One that no longer matches is a DELETED with the last matching state and the
    /// version of the change.
    pub(crate) fn event(&self, event: &Event) -> Option<(EventType, Arc<Revision>)> {
        let Event { revision, previous } = event;
        if !self.has_selectors() {
            return self.matches(revision).then(|| (revision.event_type(), Arc::clone(revision)));
        }
        let is = !revision.is_deleted() && self.matches(revision);
        let was = previous.as_ref().filter(|previous| self.matches(previous));
        match (was, is) {
            (None, true) => Some((EventType::Added, Arc::clone(revision))),
            (Some(_), true) => Some((EventType::Modified, Arc::clone(revision))),
            (Some(_), false) if revision.is_deleted() => {
                Some((EventType::Deleted, Arc::clone(revision)))
            }
            (Some(previous), false) => {
                let left = previous.at_version(EventType::Deleted, revision.version());
                Some((EventType::Deleted, Arc::new(left)))
            }
            (None, false) => None,
        }
    }
}

impl Select for Matcher {
    fn selects(&self, revision: &Revision) -> bool {
        self.matches(revision)
    }
}

impl Term {
    fn matches(&self, revision: &Revision) -> bool {
        let value = match &self.field {
            Field::Name => revision.key().name(),
            Field::Namespace => revision.key().namespace(),
            Field::At(at) => revision.fields().get(*at).map_or("", |value| &**value),
            Field::Path(path) => &revision.custom_field(path),
        };
        (value == self.value) == self.equal
    }
}

fn field_of(resource: &Resource, storage: &Resource, field: &str) -> Result<Field, Status> {
    if !resource.is_selectable(field) {
        return Err(Status::bad_request(if resource.selectable.is_empty() && !resource.custom {
            format!(
                "{field:?} is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\""
            )
        } else {
            format!("field label not supported: {field}")
        }));
    }
    Ok(match field {
        "metadata.name" => Field::Name,
        "metadata.namespace" => Field::Namespace,
        field if resource.custom => Field::Path(field.to_owned()),
        field => {
            let stored = resource.stored_name(field);
            let at = storage.selectable.iter().position(|other| other == stored);
            at.map_or_else(
                || Err(Status::bad_request(format!("field label not supported: {field}"))),
                |at| Ok(Field::At(at)),
            )?
        }
    })
}

//! What an object's metadata must be before it is stored.
//!
//! Pure functions of JSON: they look nothing up and change nothing. [`shape`] comes first and
//! refuses JSON of the wrong types; [`create`] and [`update`] then judge the values.

mod meta;
pub(crate) mod names;
mod shape;

pub(crate) use meta::{create, update, version_required};
pub(crate) use shape::shape;

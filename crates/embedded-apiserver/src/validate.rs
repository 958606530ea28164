//! Validates the metadata of objects, and the data of config maps and secrets, before they are
//! stored. The `spec` of other kinds is not validated.
//!
//! These are pure functions of JSON. [`shape()`] comes first and rejects values of the wrong
//! types; [`create`] and [`update`] then validate the values.

mod data;
mod meta;
pub(crate) mod names;
mod shape;

pub(crate) use data::{data, data_shape, data_update, drop_empty_data};
pub(crate) use meta::{create, update, version_required};
pub(crate) use shape::{is_known, shape};

//! What an object's metadata must be before it is stored, and the data of config maps and secrets, which all
//! clients write. The `spec` of other kinds is not looked at.
//!
//! Pure functions of JSON: they look nothing up and change nothing. [`shape`] comes first and
//! refuses JSON of the wrong types; [`create`] and [`update`] then judge the values.

mod data;
mod meta;
pub(crate) mod names;
mod shape;

pub(crate) use data::{data, data_shape, data_update, drop_empty_data};
pub(crate) use meta::{create, update, version_required};
pub(crate) use shape::{is_known, json_type, shape};

//! Label and field selectors.
//!
//! Both parse the `labelSelector` and `fieldSelector` of a request, with Kubernetes' grammar and
//! error messages. They print themselves in a canonical form that parses to the same selector.
//! Parsing takes one pass and a sort, and never recurses.
//!
//! ```
//! use embedded_apiserver::selector::{FieldSelector, LabelSelector};
//!
//! let labels = LabelSelector::parse("app in (web, api), !canary")?;
//! assert!(labels.matches(&[("app", "web"), ("tier", "front")]));
//!
//! let fields = FieldSelector::parse("metadata.name=web-0")?;
//! assert_eq!(fields.exact("metadata.name"), Some("web-0"));
//! # Ok::<(), String>(())
//! ```

mod fields;
mod grammar;
mod labels;

pub use fields::{FieldOperator, FieldSelector};
pub use labels::LabelSelector;

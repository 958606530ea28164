//! Reads and writes one Lease of an API server, each request within a time limit.

use std::time::Duration;

use super::lease::{API_GROUP, API_VERSION, Lease};
use crate::list_watch::Client;
use crate::wire::{Endpoint, Target};
use crate::{Error, Result};

/// Names of Leases are DNS subdomains, which are no longer than this.
const NAME_BYTES_MAX: usize = 253;

/// One Lease of an API server.
pub(super) struct Leases {
    endpoint: Endpoint,
    name: String,
}

impl Leases {
    pub(super) fn new(
        client: Client,
        namespace: &str,
        name: &str,
        wait_max: Duration,
    ) -> Result<Self> {
        if !is_name(name) {
            return Err(Error::invalid(format!(
                "{name:?} is not a valid name of a Lease: expected up to {NAME_BYTES_MAX} lower case letters, \
                 digits, '-' and '.', starting and ending with a letter or digit"
            )));
        }
        let target = Target {
            group: API_GROUP.to_owned(),
            version: API_VERSION.to_owned(),
            plural: "leases".to_owned(),
            kind: Some("Lease".to_owned()),
            namespace: Some(namespace.to_owned()),
            ..Target::default()
        };
        // Checks the namespace.
        target.path()?;
        let endpoint = Endpoint::new(client, target).wait_max(wait_max);
        Ok(Self { endpoint, name: name.to_owned() })
    }

    /// Returns the current Lease; `None` if it does not exist.
    pub(super) async fn get(&self) -> Result<Option<Lease>> {
        match self.endpoint.get(&self.name).await {
            Err(error) if error.is_not_found() => Ok(None),
            answer => Lease::read(&answer?.to_json()?).map(Some),
        }
    }

    pub(super) async fn create(&self, lease: &Lease) -> Result<Lease> {
        Lease::read(&self.endpoint.create(&lease.to_json()).await?.to_json()?)
    }

    /// Updates the Lease. Fails with a conflict if its version on the server is not this one's.
    pub(super) async fn update(&self, lease: &Lease) -> Result<Lease> {
        Lease::read(&self.endpoint.update(&self.name, &lease.to_json()).await?.to_json()?)
    }
}

fn is_name(name: &str) -> bool {
    let edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = name.as_bytes();
    let fits = |byte: &u8| edge(Some(byte)) || matches!(byte, b'-' | b'.');
    bytes.len() <= NAME_BYTES_MAX
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_subdomains() {
        for name in ["a", "my-operator", "1.example.com"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", "a.", "A", "a/b", "a?b", "ä", &"a".repeat(254)] {
            assert!(!is_name(name), "{name}");
        }
    }
}

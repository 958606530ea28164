//! Unique addresses for pods, from the network that most clusters use.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The network of pods, a /16.
const NETWORK: [u8; 2] = [10, 244];

/// The network in CIDR notation.
pub(super) const CIDR: &str = "10.244.0.0/16";

/// The number of addresses. The first and the last of a network are reserved.
const COUNT: usize = 65_534;

/// The addresses in use, by their last two bytes.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    used: BTreeSet<u16>,
    last: u16,
}

impl Addresses {
    /// Takes the next free address, if there is one. A freed address is reused as late as possible.
    pub(super) fn take(&mut self) -> Option<u16> {
        if self.used.len() >= COUNT {
            return None;
        }
        let free = |host: &u16| is_hosts(*host) && !self.used.contains(host);
        let next = (1..=u16::MAX).map(|step| self.last.wrapping_add(step)).find(free)?;
        self.used.insert(next);
        self.last = next;
        Some(next)
    }

    /// Takes a specific address, if it belongs to this network and is free.
    pub(super) fn claim(&mut self, text: &str) -> Option<u16> {
        let [a, b, c, d] = text.parse::<Ipv4Addr>().ok()?.octets();
        let host = u16::from_be_bytes([c, d]);
        ([a, b] == NETWORK && is_hosts(host) && self.used.insert(host)).then_some(host)
    }

    pub(super) fn free(&mut self, host: u16) {
        self.used.remove(&host);
    }
}

fn is_hosts(host: u16) -> bool {
    !matches!(host, 0 | u16::MAX)
}

pub(super) fn text(host: u16) -> String {
    let ([a, b], [c, d]) = (NETWORK, host.to_be_bytes());
    Ipv4Addr::new(a, b, c, d).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unique_until_there_are_none() {
        let mut addresses = Addresses::default();
        assert_eq!(addresses.claim("10.244.0.2"), Some(2));
        assert_eq!(addresses.claim("10.244.0.2"), None);
        assert_eq!(addresses.claim("10.0.0.2"), None);
        assert_eq!(addresses.claim("10.244.255.255"), None);
        assert_eq!(addresses.claim("nonsense"), None);
        assert_eq!(addresses.take().map(text).as_deref(), Some("10.244.0.1"));
        assert_eq!(addresses.take().map(text).as_deref(), Some("10.244.0.3"));
        let rest = std::iter::from_fn(|| addresses.take()).count();
        assert_eq!(rest, COUNT - 3);
        addresses.free(0x0105);
        assert_eq!(addresses.take().map(text).as_deref(), Some("10.244.1.5"));
    }
}

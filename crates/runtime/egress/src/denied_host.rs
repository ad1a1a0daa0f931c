//! Hosts that an operator denies to every tool. Nothing overrides them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use rcrt_breadcrumb::{Host, HostEntry, HostError, reached_address};

/// `HOST`, `*.HOST`, `ADDRESS` or `ADDRESS/BITS`. A name denies itself, on all ports. An address or
/// a block also denies every name that resolves to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeniedHost {
    Name(HostEntry),
    Block { network: IpAddr, bits: u8 },
}

impl DeniedHost {
    pub fn denies(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Name(entry), host) => entry.covers(host),
            (Self::Block { .. }, Host::Address(address)) => self.denies_address(*address),
            (Self::Block { .. }, Host::Name(_)) => false,
        }
    }

    /// Also if the address embeds another one that a connection would reach.
    pub fn denies_address(&self, address: IpAddr) -> bool {
        let Self::Block { network, bits } = self else { return false };
        [address, reached_address(address)].into_iter().any(|address| same_start(address, *network, *bits))
    }
}

fn same_start(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let differ = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            u128::from((one.to_bits() ^ other.to_bits()).checked_shr(32 - u32::from(bits)).unwrap_or(0))
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            (one.to_bits() ^ other.to_bits()).checked_shr(128 - u32::from(bits)).unwrap_or(0)
        }
        _ => return false,
    };
    differ == 0
}

/// Why a text is not a valid [`DeniedHost`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeniedHostError {
    #[error("{0:?} is not a valid address block; expected ADDRESS/BITS, such as 10.0.0.0/8 or fd00::/8")]
    Block(String),
    #[error("{0:?} names a port; a host is denied on all ports")]
    Port(String),
    #[error(transparent)]
    Host(#[from] HostError),
}

impl FromStr for DeniedHost {
    type Err = DeniedHostError;

    fn from_str(text: &str) -> Result<Self, DeniedHostError> {
        if let Some((address, bits)) = text.split_once('/') {
            let wrong = || DeniedHostError::Block(text.chars().take(80).collect());
            let address: IpAddr = address.trim_matches(['[', ']']).parse().map_err(|_| wrong())?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits: u8 = bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?;
            return Ok(Self::Block { network: address, bits });
        }
        let entry = HostEntry::parse(text)?;
        if entry.port.is_some() {
            return Err(DeniedHostError::Port(text.chars().take(80).collect()));
        }
        Ok(match entry.host {
            Host::Address(network) => Self::Block { network, bits: if network.is_ipv4() { 32 } else { 128 } },
            Host::Name(_) => Self::Name(entry),
        })
    }
}

impl fmt::Display for DeniedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(entry) => entry.fmt(f),
            Self::Block { network, bits } => write!(f, "{network}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn denies_names_wildcards_addresses_and_blocks() {
        for (entry, denied, open) in [
            ("evil.example", "EVIL.example", "www.evil.example"),
            ("*.evil.example", "a.b.evil.example", "evil.example"),
            ("203.0.113.7", "203.0.113.7", "203.0.113.8"),
            ("203.0.113.0/24", "203.0.113.255", "203.0.114.0"),
            ("2001:db8::/32", "[2001:db8:1::1]", "[2001:db9::1]"),
            ("0.0.0.0/0", "8.8.8.8", "[2001:db8::1]"),
            ("203.0.113.0/24", "[::ffff:203.0.113.1]", "[::ffff:203.0.112.1]"),
            ("203.0.113.0/24", "[64:ff9b::cb00:7101]", "[64:ff9b::cb01:7101]"),
        ] {
            let rule: DeniedHost = entry.parse().unwrap();
            assert!(rule.denies(&Host::parse(denied).unwrap()), "{entry} {denied}");
            assert!(!rule.denies(&Host::parse(open).unwrap()), "{entry} {open}");
        }
    }

    #[test]
    fn invalid_hosts_are_refused() {
        for text in [
            "",
            "*",
            "https://a.example",
            "a.example:443",
            "10.0.0.0/33",
            "::/129",
            "a.example/8",
            "10.0.0.0/",
            "/8",
            "10/8",
        ] {
            assert!(text.parse::<DeniedHost>().is_err(), "{text:?}");
        }
    }
}

//! Which addresses a request can connect to.

use std::io;
use std::net::IpAddr;

use rcrt_breadcrumb::{Purpose, reached_address, special_purpose};

use super::{DeniedHost, Interfaces};

/// The most addresses of one name that are checked. No real service has more.
const MAX_ADDRESSES: usize = 64;

/// Which addresses are permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressScope {
    /// Only the public internet.
    Public,
    /// A name that the operator allowed: also private networks and this machine. Link-local
    /// addresses, a cloud's metadata service, multicast and reserved addresses stay refused.
    Private,
}

/// Why no connection was made. It is found again in the chain of causes of a client's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DialError {
    #[error("{host} is, or resolves to, an address that the operator denies")]
    Denied { host: String },
    #[error("{host} is, or resolves to, a non-public address ({purpose}){}", advice(*.purpose))]
    NonPublic { host: String, purpose: Purpose },
    #[error("{host} is, or resolves to, an address of the runner's own machine{ALLOW}")]
    Own { host: String },
    #[error("{name} cannot be resolved: {reason}")]
    Unresolved { name: String, reason: String },
    #[error("no connection to {host}, because the runner cannot determine its own addresses: {reason}")]
    Blind { host: String, reason: String },
}

impl DialError {
    /// Whether the tool is not allowed to connect there; otherwise a step failed.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::NonPublic { .. } | Self::Own { .. })
    }

    /// Whether the operator can allow it. The text then ends with the option.
    pub fn can_be_allowed(&self) -> bool {
        match self {
            Self::NonPublic { purpose, .. } => purpose.is_private_use(),
            Self::Own { .. } => true,
            _ => false,
        }
    }
}

const ALLOW: &str = "; the operator can allow it with --allow-private-host";

fn advice(purpose: Purpose) -> &'static str {
    if purpose.is_private_use() { ALLOW } else { ", which cannot be allowed" }
}

/// Every address must pass: one internal address among public ones is how a name is made to point
/// inside.
pub(super) fn check_addresses(
    host: &str,
    addresses: &[IpAddr],
    reach: AddressScope,
    machine: &dyn Interfaces,
    denied: &[DeniedHost],
) -> Result<(), DialError> {
    if addresses.is_empty() || addresses.len() > MAX_ADDRESSES {
        let reason = match addresses.len() {
            0 => "the name exists, but has no address".to_owned(),
            many => format!("the name has {many} addresses, and at most {MAX_ADDRESSES} are checked"),
        };
        return Err(DialError::Unresolved { name: host.to_owned(), reason });
    }
    if addresses.iter().any(|address| denied.iter().any(|rule| rule.denies_address(*address))) {
        return Err(DialError::Denied { host: host.to_owned() });
    }
    let refused = |purpose: &Purpose| reach == AddressScope::Public || !purpose.is_private_use();
    if let Some(purpose) = addresses.iter().filter_map(|address| special_purpose(*address)).find(refused) {
        return Err(DialError::NonPublic { host: host.to_owned(), purpose });
    }
    if reach == AddressScope::Private {
        return Ok(());
    }
    let blind = |error: io::Error| DialError::Blind { host: host.to_owned(), reason: error.to_string() };
    let own = machine.addresses().map_err(blind)?;
    if addresses.iter().any(|address| own.contains(address) || own.contains(&reached_address(*address))) {
        return Err(DialError::Own { host: host.to_owned() });
    }
    Ok(())
}

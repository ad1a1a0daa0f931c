//! Which addresses a request can connect to.

use std::io;
use std::net::IpAddr;

use breadcrumb::{Purpose, reached_address, special_purpose};

use super::{DeniedHost, Interfaces};

/// Most addresses of one name that are looked at: more is no name of a service.
const MAX_ADDRESSES: usize = 64;

/// For whom an address is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressScope {
    /// The public internet and nothing else.
    Public,
    /// A name that the operator allowed: private networks and this machine too. What a name must never lead to stays
    /// refused: link-local addresses, a cloud's metadata service, multicast and whatever is reserved.
    Private,
}

/// Why a host was not dialled. Found again in the chain of causes of a client's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DialError {
    #[error("{host} is, or resolves to, an address that the operator denies")]
    Denied { host: String },
    #[error("{host} is, or resolves to, a non-public address ({purpose})")]
    NonPublic { host: String, purpose: Purpose },
    #[error("{host} is, or resolves to, an address of the runner's own machine")]
    Own { host: String },
    #[error("{name} cannot be resolved: {reason}")]
    Unresolved { name: String, reason: String },
    #[error("{host} is not dialled, because the runner cannot tell its own addresses: {reason}")]
    Blind { host: String, reason: String },
}

impl DialError {
    /// The tool is not allowed to go there; otherwise a step failed.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::NonPublic { .. } | Self::Own { .. })
    }
}

/// Every address must pass: one bad address among good ones is how a name is made to point inside.
pub(super) fn check_addresses(
    host: &str,
    addresses: &[IpAddr],
    reach: AddressScope,
    machine: &dyn Interfaces,
    denied: &[DeniedHost],
) -> Result<(), DialError> {
    if addresses.is_empty() || addresses.len() > MAX_ADDRESSES {
        let reason = format!("the name has {} addresses, and 1 to {MAX_ADDRESSES} can be dialled", addresses.len());
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

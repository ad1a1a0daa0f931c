//! Private hosts that an operator allows.

use std::fmt;
use std::str::FromStr;

use crate::{Host, HostEntry, HostError, Purpose, special_purpose};

/// `[TOOL=]HOST[:PORT]`: a host that can have a non-public address, for every tool or for one tool.
/// Without a port it applies to every port. It grants no access by itself: the tool's
/// `permissions.net` must list the host too, or every host, which then includes the port named
/// here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateHost {
    pub tool: Option<String>,
    pub entry: HostEntry,
}

impl PrivateHost {
    /// Whether this tool can reach the host although the address is not public.
    pub fn allows(&self, tool: &str, host: &Host, port: u16) -> bool {
        self.is_for(tool) && self.entry.covers(host) && self.entry.port.is_none_or(|named| named == port)
    }

    /// Whether this tool can have the entry in its `permissions.net`.
    pub fn allows_entry(&self, tool: &str, asked: &HostEntry) -> bool {
        self.is_for(tool)
            && self.entry.covers_all_of(asked)
            && self.entry.port.is_none_or(|named| asked.port == Some(named))
    }

    fn is_for(&self, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|named| named == tool)
    }
}

/// Why a text is not a valid [`PrivateHost`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrivateHostError {
    #[error("{0:?} has no tool name before the =; expected HOST, HOST:PORT or TOOL=HOST:PORT")]
    NoTool(String),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("{host} is a non-public address ({purpose}) that cannot be allowed; name a host of a private network")]
    NeverAllowed { host: HostEntry, purpose: Purpose },
}

impl FromStr for PrivateHost {
    type Err = PrivateHostError;

    fn from_str(text: &str) -> Result<Self, PrivateHostError> {
        let Some((tool, host)) = text.split_once('=') else {
            return Ok(Self { tool: None, entry: allowable(text)? });
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(PrivateHostError::NoTool(text.to_owned()));
        }
        Ok(Self { tool: Some(tool.to_owned()), entry: allowable(host)? })
    }
}

/// Parses a host, and refuses an address to which no request is ever sent.
fn allowable(text: &str) -> Result<HostEntry, PrivateHostError> {
    let host = HostEntry::parse(text)?;
    if let Host::Address(address) = &host.host
        && let Some(purpose) = special_purpose(*address).filter(|purpose| !purpose.is_private_use())
    {
        return Err(PrivateHostError::NeverAllowed { host, purpose });
    }
    Ok(host)
}

impl fmt::Display for PrivateHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tool) = &self.tool {
            write!(f, "{tool}=")?;
        }
        self.entry.fmt(f)
    }
}

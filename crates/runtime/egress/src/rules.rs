//! Which hosts one tool can reach: its `permissions.net`, parsed once.

use rcrt_breadcrumb::{Host, HostEntry, HostError, NetPermission, is_web_port};

/// What `permissions.net` allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetRules {
    Nothing,
    /// Every host, on the ports of http and https.
    EveryHost,
    Listed(Vec<HostEntry>),
}

impl NetRules {
    /// The error names the invalid entry and what is accepted.
    pub fn read(permission: &NetPermission) -> Result<Self, String> {
        Ok(match permission {
            NetPermission::None => Self::Nothing,
            NetPermission::All => Self::EveryHost,
            NetPermission::Listed(entries) => Self::Listed(
                entries
                    .iter()
                    .map(|entry| HostEntry::parse(entry))
                    .collect::<Result<_, _>>()
                    .map_err(|error: HostError| error.to_string())?,
            ),
        })
    }

    /// Only this host and port.
    pub fn only(host: Host, port: u16) -> Self {
        Self::Listed(vec![HostEntry { host, port: Some(port), subdomains: false }])
    }

    /// The error is the refusal, for the tool's author.
    pub fn check(&self, host: &Host, port: u16) -> Result<(), String> {
        let admitted = match self {
            Self::Nothing => false,
            Self::EveryHost => is_web_port(port),
            Self::Listed(entries) => entries.iter().any(|entry| entry.admits(host, port)),
        };
        if admitted {
            return Ok(());
        }
        let wanted = if is_web_port(port) { host.to_string() } else { format!("{host}:{port}") };
        Err(match self {
            Self::Nothing => format!("the tool cannot use the network; add {wanted:?} to permissions.net"),
            Self::EveryHost => {
                format!("the tool can reach port {port} of {host} only if permissions.net lists {wanted:?}")
            }
            Self::Listed(_) => format!("{wanted:?} is not among the hosts in the tool's permissions.net"),
        })
    }
}

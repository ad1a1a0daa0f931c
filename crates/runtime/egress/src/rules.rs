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
        let wanted = with_port(host, port);
        Err(match self {
            Self::Nothing => format!("the tool cannot use the network; add {wanted:?} to permissions.net"),
            // The users of an included tool cannot change its permissions.
            Self::EveryHost => format!(
                "the tool reaches only the ports of http and https; the operator can allow port {port} with \
                 --allow-private-host {wanted}, and the author of a tool by listing {wanted:?} in permissions.net"
            ),
            Self::Listed(_) => format!("{wanted:?} is not among the hosts in the tool's permissions.net; add it there"),
        })
    }
}

/// The host as an entry of `permissions.net` or an option: with its port, unless that is the port
/// of http or https.
pub(crate) fn with_port(host: &Host, port: u16) -> String {
    if is_web_port(port) { host.to_string() } else { format!("{host}:{port}") }
}

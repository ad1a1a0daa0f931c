//! Which hosts one tool can reach: its `permissions.net`, parsed once, or the host of one URL.

use rcrt_breadcrumb::{Host, HostEntry, HostError, NetPermission, is_web_port};

/// What is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetRules {
    Nothing,
    /// Every host, on the ports of http and https.
    EveryHost,
    Listed(Vec<HostEntry>),
    /// Only the host of one URL, which `field` names for a person.
    Only {
        entry: HostEntry,
        field: &'static str,
    },
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
        Self::only_of("its URL", host, port)
    }

    /// The same. `field` is what has the URL, for the refusal of another host.
    pub fn only_of(field: &'static str, host: Host, port: u16) -> Self {
        Self::Only { entry: HostEntry { host, port: Some(port), subdomains: false }, field }
    }

    /// The error is the refusal, for the tool's author, or for who configured the URL.
    pub fn check(&self, host: &Host, port: u16) -> Result<(), String> {
        let admitted = match self {
            Self::Nothing => false,
            Self::EveryHost => is_web_port(port),
            Self::Listed(entries) => entries.iter().any(|entry| entry.admits(host, port)),
            Self::Only { entry, .. } => entry.admits(host, port),
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
            Self::Only { field, .. } => format!(
                "{wanted:?} is not the host of {field}, and requests are not redirected to another host; if you trust \
                 it, name it in {field}"
            ),
        })
    }
}

/// The host as an entry of `permissions.net` or an option: with its port, unless that is the port
/// of http or https.
pub(crate) fn with_port(host: &Host, port: u16) -> String {
    if is_web_port(port) { host.to_string() } else { format!("{host}:{port}") }
}

//! Host names in one spelling, and the `host` or `host:port` entries that permissions and operators write.

use std::net::{IpAddr, Ipv6Addr};

use url::Url;

/// A host in its one spelling: a lower-case ASCII name without a trailing dot, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// The URL standard's reading of a host (case, IDNA, percent-encoding, `0x7f.1`), and no trailing dot.
    /// IPv6 addresses stand in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_url_host(url::Host::parse(text).ok()?)
    }

    pub fn of(url: &Url) -> Option<Self> {
        Self::from_url_host(url.host()?.to_owned())
    }

    fn from_url_host(host: url::Host<String>) -> Option<Self> {
        match host {
            url::Host::Ipv4(address) => Some(Self::Address(address.into())),
            url::Host::Ipv6(address) => Some(Self::Address(address.into())),
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name);
                let is_good = name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()));
                is_good.then(|| Self::Name(name.to_owned()))
            }
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// `example.com`, `example.com:8443`, `*.example.com`, `10.0.0.7`, `[fd00::1]:80`. Without a port: the ports of http
/// and https.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEntry {
    pub host: Host,
    pub port: Option<u16>,
    /// Every name under the host, at any depth, but not the host itself.
    pub subdomains: bool,
}

impl HostEntry {
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no host; write host or host:port, such as api.example.com or 10.0.0.7:8080");
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Self { host: Host::Address(address.into()), port: None, subdomains: false });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse::<u16>().ok().filter(|port| is_number && *port > 0).ok_or_else(wrong)?;
                (host, Some(port))
            }
            _ => (text, None),
        };
        let (host, subdomains) = host.strip_prefix("*.").map_or((host, false), |rest| (rest, true));
        if host.contains(['*', '%']) {
            return Err(wrong());
        }
        let host = Host::parse(host).ok_or_else(wrong)?;
        match &host {
            Host::Name(name) if subdomains && !name.contains('.') => Err(wrong()),
            Host::Address(_) if subdomains => Err(wrong()),
            _ => Ok(Self { host, port, subdomains }),
        }
    }

    /// Whether a tool with this entry may go there.
    pub fn admits(&self, host: &Host, port: u16) -> bool {
        self.covers(host) && self.port.map_or(is_web_port(port), |named| named == port)
    }

    pub(super) fn covers(&self, host: &Host) -> bool {
        match (&self.host, host) {
            (Host::Name(base), Host::Name(name)) if self.subdomains => {
                name.strip_suffix(base.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (mine, other) => !self.subdomains && mine == other,
        }
    }
}

/// The ports of http and https.
pub fn is_web_port(port: u16) -> bool {
    matches!(port, 80 | 443)
}

impl std::fmt::Display for HostEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.subdomains {
            f.write_str("*.")?;
        }
        self.host.fmt(f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

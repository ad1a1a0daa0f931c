//! Host names in canonical form, and the `host` or `host:port` entries of permissions, secrets and
//! operators' settings.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use url::Url;

/// A host in canonical form: a lower-case ASCII name without a trailing dot, or an address. All
/// comparisons, lookups and connections use this form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// At most 253 bytes; labels of 1 to 63 letters, digits, `-` and `_`, with no `-` at either
    /// end.
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Parses a host as the URL standard does (case, IDNA, full-width letters and dots,
    /// percent-encoding, `0x7f.1`), without a trailing dot. IPv6 addresses are in brackets and have
    /// no zone. `None` for what cannot be resolved or connected to.
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_url_host(url::Host::parse(text).ok()?)
    }

    /// The host of an absolute URL.
    pub fn of(url: &Url) -> Option<Self> {
        Self::from_url_host(url.host()?.to_owned())
    }

    fn from_url_host(host: url::Host<String>) -> Option<Self> {
        match host {
            url::Host::Ipv4(address) => Some(Self::Address(address.into())),
            url::Host::Ipv6(address) => Some(Self::Address(address.into())),
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name);
                let is_good = name.len() <= 253 && name.split('.').all(is_label);
                is_good.then(|| Self::Name(name.to_owned()))
            }
        }
    }
}

/// Whether the URL leads to this machine. The host name is not resolved.
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => is_localhost(name),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether a lower-case name is `localhost` or one below it.
pub fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Expects the URL standard's output: lower-case letters and ASCII names.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Why a text is not a [`HostEntry`], and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} {problem}")]
pub struct HostError {
    /// At most the first 80 characters of the entry.
    pub entry: String,
    pub problem: &'static str,
}

/// `example.com`, `example.com:8443`, `*.example.com`, `10.0.0.7`, `[fd00::1]:80`. Without a port:
/// the ports of http and https.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostEntry {
    pub host: Host,
    pub port: Option<u16>,
    /// Covers every name under the host, at any depth, but not the host itself.
    pub subdomains: bool,
}

impl HostEntry {
    pub fn parse(text: &str) -> Result<Self, HostError> {
        Self::read(text).map_err(|problem| HostError { entry: text.chars().take(80).collect(), problem })
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        const MALFORMED: &str =
            "is not a valid host; write host or host:port, such as api.example.com or 10.0.0.7:8080";
        if text.is_empty() || text.len() > 300 {
            return Err("must be a host of at most 300 bytes, such as api.example.com");
        }
        if text.contains("://") {
            return Err("must be a host without a scheme: api.example.com, not https://api.example.com");
        }
        let is_foreign = |c: char| matches!(c, '/' | '\\' | '@' | '?' | '#' | '%') || c.is_control();
        if text.contains(|c: char| is_foreign(c) || c.is_whitespace()) {
            return Err("must be a host or host:port, with no path, user, zone or space");
        }
        if text == "*" {
            return Err("must name a host");
        }
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Self { host: Host::Address(address.into()), port: None, subdomains: false });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(read_port(port)?)),
            _ => (text, None),
        };
        let (host, subdomains) = host.strip_prefix("*.").map_or((host, false), |rest| (rest, true));
        if host.contains('*') {
            return Err("can have a * only as the whole first label, such as *.example.com");
        }
        let host = Host::parse(host).ok_or(MALFORMED)?;
        match &host {
            Host::Name(name) if subdomains && !name.contains('.') => {
                Err("covers a whole top-level domain; narrow it to a form such as *.example.com")
            }
            Host::Address(_) if subdomains => Err("has a wildcard before an address; wildcards are for names"),
            _ => Ok(Self { host, port, subdomains }),
        }
    }

    /// Whether a tool with this entry can connect there.
    pub fn admits(&self, host: &Host, port: u16) -> bool {
        self.covers(host) && self.port.map_or(is_web_port(port), |named| named == port)
    }

    /// Whether the entry covers the host, on any port.
    pub fn covers(&self, host: &Host) -> bool {
        match (&self.host, host) {
            (Host::Name(base), Host::Name(name)) if self.subdomains => is_below(name, base),
            (mine, other) => !self.subdomains && mine == other,
        }
    }

    /// Whether this entry covers every host of the other entry, on any port.
    pub fn covers_all_of(&self, other: &Self) -> bool {
        match (&self.host, &other.host) {
            (Host::Name(base), Host::Name(name)) if self.subdomains && other.subdomains => {
                name == base || is_below(name, base)
            }
            _ => !other.subdomains && self.covers(&other.host),
        }
    }
}

fn is_below(name: &str, base: &str) -> bool {
    name.strip_suffix(base).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

fn read_port(text: &str) -> Result<u16, &'static str> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| is_number && *port > 0);
    port.ok_or("has an invalid port; expected a number from 1 to 65535")
}

impl FromStr for HostEntry {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

impl fmt::Display for HostEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.subdomains {
            f.write_str("*.")?;
        }
        self.host.fmt(f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The ports of http and https.
pub fn is_web_port(port: u16) -> bool {
    matches!(port, 80 | 443)
}

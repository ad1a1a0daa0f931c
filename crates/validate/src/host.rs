//! Whether a host that a tool asks for is well formed and public, as far as its spelling tells. What a name resolves
//! to is judged when it is dialled, not here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Names that no public resolver answers, or that lead into the operator's own network.
const PRIVATE_SUFFIXES: &[&str] = &[
    "arpa",
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "test",
];

/// `Ok` for `api.example.com`, `api.example.com:8443`, `*.example.com` (every subdomain, at any depth, but not
/// `example.com` itself) and public addresses; else what is wrong.
pub(crate) fn check(entry: &str) -> Result<(), String> {
    if entry.is_empty() || entry.len() > 300 {
        return Err("must be a host of at most 300 characters, such as api.example.com".into());
    }
    if entry.contains("://") {
        return Err("must be a host without a scheme: api.example.com, not https://api.example.com".into());
    }
    if entry.contains(['/', '\\', '@', '?', '#', '%', ' '])
        || entry.chars().any(|c| c.is_control() || c.is_whitespace())
    {
        return Err("must be a host or host:port, with no path, user or space".into());
    }
    if entry == "*" {
        return Err("must name a host; for every public host write net: true".into());
    }
    let (wildcard, host) = match entry.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, entry),
    };
    if host.contains('*') {
        return Err("may have a * only as the whole first label, such as *.example.com".into());
    }
    let host = parse(host)?;
    if wildcard {
        return match host {
            Host::Domain(name) if name.trim_end_matches('.').contains('.') => public_name(&name),
            Host::Domain(_) => Err("covers a whole top-level domain: name at least *.example.com".into()),
            Host::Ipv4(_) | Host::Ipv6(_) => Err("has a wildcard before an address".into()),
        };
    }
    match host {
        Host::Domain(name) => public_name(&name),
        Host::Ipv4(address) => public_address(IpAddr::V4(address)),
        Host::Ipv6(address) => public_address(IpAddr::V6(address)),
    }
}

/// Reads a host with the URL standard's parser, so that every spelling of an address (`0x7f.1`, `2130706433`) and of a
/// name (IDNA, full-width letters) means here what it means to `fetch`.
fn parse(entry: &str) -> Result<Host<String>, String> {
    if let Ok(address) = entry.parse::<Ipv6Addr>() {
        return Ok(Host::Ipv6(address));
    }
    let malformed = || "is no host or host:port, such as api.example.com or api.example.com:8443".to_owned();
    let url = Url::parse(&format!("http://{entry}/")).map_err(|_| malformed())?;
    if entry.ends_with(':') || url.port() == Some(0) {
        return Err("has a port that is no number from 1 to 65535".into());
    }
    match url.host().ok_or_else(malformed)? {
        Host::Domain(name) => Ok(Host::Domain(name.to_owned())),
        Host::Ipv4(address) => Ok(Host::Ipv4(address)),
        Host::Ipv6(address) => Ok(Host::Ipv6(address)),
    }
}

fn public_name(name: &str) -> Result<(), String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let labels: Vec<&str> = name.split('.').collect();
    let label_is_good = |label: &&str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > 253 || !labels.iter().all(label_is_good) {
        return Err("is no well-formed host name".into());
    }
    let last = labels.last().copied().unwrap_or_default();
    if labels.len() == 1 && !PRIVATE_SUFFIXES.contains(&last) {
        return Err("has a single label, which only a local network resolves: use the full public name".into());
    }
    if PRIVATE_SUFFIXES.contains(&last) {
        return Err(format!("is a private or local name (.{last}): tools reach public hosts only"));
    }
    Ok(())
}

fn public_address(address: IpAddr) -> Result<(), String> {
    let is_public = match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    };
    if is_public {
        Ok(())
    } else {
        Err(format!("is the address {address}, which is private, local or reserved: tools reach public hosts only"))
    }
}

/// Outside of every special-purpose block. Whatever the egress gate refuses to dial must be refused here too, so that
/// an author learns of it early.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    // The address at which Azure serves machines their own agent; it stands in a public block.
    let is_metadata = address == Ipv4Addr::new(168, 63, 129, 16);
    let special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !special && !is_metadata
}

/// Global unicast, and neither a tunnel nor another spelling of an IPv4 address that is not public.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let s = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match s {
        // IPv4-mapped, and the translation prefix, carry an IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        // Teredo, 6to4 and the documentation blocks are no place to go.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002, ..] => false,
        [first, ..] => (0x2000..=0x3ffe).contains(&first),
    }
}

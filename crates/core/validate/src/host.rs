//! Whether a host that a tool asks for is public, by its spelling alone. The addresses of a name
//! are checked when a tool connects. The egress gate uses the same parser and table of addresses.

use rcrt_breadcrumb::{Host, HostEntry, special_purpose};

/// Suffixes of names that no public resolver resolves, or that lead into the operator's own
/// network.
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

const UNLESS_ALLOWED: &str = "unless the operator allows it with --allow-private-host";

/// `Ok` for `api.example.com`, `api.example.com:8443`, `*.example.com` (every subdomain, at any
/// depth, but not `example.com` itself) and public addresses. Otherwise a message that says what is
/// wrong.
pub(crate) fn check(entry: &str) -> Result<(), String> {
    if entry == "*" {
        return Err("must name a host; for every public host write net: true".into());
    }
    match HostEntry::parse(entry).map_err(|error| error.problem.to_owned())?.host {
        Host::Name(name) => public_name(&name),
        Host::Address(address) => match special_purpose(address) {
            None => Ok(()),
            Some(purpose) => {
                Err(format!("is the address {address} ({purpose}): tools reach public hosts only, {UNLESS_ALLOWED}"))
            }
        },
    }
}

fn public_name(name: &str) -> Result<(), String> {
    let last = name.rsplit('.').next().unwrap_or_default();
    if PRIVATE_SUFFIXES.contains(&last) {
        return Err(format!("is a private or local name (.{last}): tools reach public hosts only, {UNLESS_ALLOWED}"));
    }
    if !name.contains('.') {
        return Err(format!(
            "has a single label, which only a local network resolves: use the full public name, {UNLESS_ALLOWED}"
        ));
    }
    Ok(())
}

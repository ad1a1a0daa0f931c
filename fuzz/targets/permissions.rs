//! Untrusted `permissions`, and what they open: the rules allow exactly what an entry names, in any
//! order, and nothing more.
//!
//! Input: a host or host:port to go to, a line end, the JSON of `permissions`.
#![no_main]

// Included by path, because its crate needs an HTTP stack.
#[path = "../../crates/runtime/egress/src/rules.rs"]
#[allow(dead_code)]
mod rules;

use libfuzzer_sys::{Corpus, fuzz_target};
use rcrt_breadcrumb::{AccessList, Host, HostEntry, Permissions};
use rules::NetRules;

fuzz_target!(|input: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(input) else { return Corpus::Reject };
    let Some((wanted, json)) = text.split_once('\n') else { return Corpus::Reject };
    let Ok(permissions) = serde_json::from_str::<Permissions>(json) else { return Corpus::Keep };
    let written = serde_json::to_string(&permissions).expect("what was read can be written");
    assert_eq!(serde_json::from_str::<Permissions>(&written).expect("and read again"), permissions);

    let Ok(rules) = NetRules::read(&permissions.net) else {
        let AccessList::Listed(entries) = &permissions.net else { panic!("only an entry can be wrong: {written}") };
        assert!(entries.iter().any(|entry| HostEntry::parse(entry).is_err()), "{written}");
        return Corpus::Keep;
    };
    let Ok(target) = HostEntry::parse(wanted) else { return Corpus::Keep };
    for port in [target.port.unwrap_or(443), 80, 22] {
        let verdict = rules.check(&target.host, port);
        assert_eq!(verdict.is_ok(), opens(&permissions.net, &target.host, port), "{written}: {}:{port}", target.host);
        if let AccessList::Listed(entries) = &permissions.net {
            let other = AccessList::Listed(entries.iter().rev().map(|entry| respelled(entry)).collect());
            let other = NetRules::read(&other).expect("another spelling is valid too");
            assert_eq!(other.check(&target.host, port).is_ok(), verdict.is_ok(), "{written}: {}:{port}", target.host);
        }
    }
    Corpus::Keep
});

/// The rule as documented: it compares strings, and parses only the port at an entry's end.
fn opens(net: &AccessList, host: &Host, port: u16) -> bool {
    let entries = match net {
        AccessList::None => return false,
        AccessList::All => return matches!(port, 80 | 443),
        AccessList::Listed(entries) => entries,
    };
    let wanted = host.to_string();
    entries.iter().any(|entry| {
        let canonical = HostEntry::parse(entry).expect("was read before").to_string();
        let (mut name, mut is_named) = (canonical.as_str(), matches!(port, 80 | 443));
        if let Some((before, digits)) = canonical.rsplit_once(':')
            && !digits.ends_with(']')
        {
            (name, is_named) = (before, digits == port.to_string());
        }
        let is_meant = match name.strip_prefix('*') {
            Some(suffix) => wanted.len() > suffix.len() && wanted.ends_with(suffix),
            None => wanted == name,
        };
        is_named && is_meant
    })
}

/// The same host with upper and lower case swapped.
fn respelled(entry: &str) -> String {
    let swapped = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    entry.chars().map(swapped).collect()
}

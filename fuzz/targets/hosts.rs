//! Hosts and addresses: an entry has one spelling, the egress gate and a URL parser agree about it,
//! and what the validator calls public is public to the egress gate.
//!
//! Input: the text of an entry; its first bytes are also used as an address.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use rcrt_breadcrumb::{
    AccessList, Host, HostEntry, Implementation, Limits, NativeImplementation, Permissions, ToolDefinition, Violations,
    special_purpose,
};
use serde_json::{Map, Value};
use url::Url;

fuzz_target!(|input: &[u8]| {
    if let Some(bytes) = input.first_chunk::<4>() {
        check_v4(Ipv4Addr::from(*bytes));
    }
    if let Some(bytes) = input.first_chunk::<16>() {
        check_v6(Ipv6Addr::from(*bytes));
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(address) = text.parse::<IpAddr>() {
        match address {
            IpAddr::V4(address) => check_v4(address),
            IpAddr::V6(address) => check_v6(address),
        }
    }
    let entry = HostEntry::parse(text);
    if let Ok(entry) = &entry {
        check_entry(text, entry);
    }
    if is_accepted(text) {
        let entry = entry.expect("the gate accepts what the validator accepts");
        if let Host::Address(address) = entry.host {
            assert_eq!(special_purpose(address), None, "the validator calls {text:?} public");
        }
    }
});

/// The special addresses of the standard library, as an independent check.
fn check_v4(address: Ipv4Addr) {
    let special = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_unspecified()
        || address.is_multicast();
    let verdict = special_purpose(address.into());
    assert!(verdict.is_some() || !special, "{address} is not public");
    // However it is wrapped, this address is connected to.
    let [a, b, c, d] = address.octets().map(u16::from);
    let (high, low) = (a << 8 | b, c << 8 | d);
    assert_eq!(special_purpose(address.to_ipv6_mapped().into()).is_some(), verdict.is_some(), "{address}, mapped");
    for wrapped in [
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
    ] {
        assert!(special_purpose(wrapped.into()).is_some() || verdict.is_none(), "{wrapped} wraps {address}");
    }
    let public = verdict.is_none();
    assert_eq!(is_accepted(&address.to_string()), public, "{address}: the validator and the gate differ");
}

fn check_v6(address: Ipv6Addr) {
    let special = address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local();
    let verdict = special_purpose(address.into());
    assert!(verdict.is_some() || !special, "{address} is not public");
    assert_eq!(is_accepted(&format!("[{address}]")), verdict.is_none(), "{address}: the validator and the gate differ");
}

fn check_entry(text: &str, entry: &HostEntry) {
    let spelled = entry.to_string();
    assert_eq!(HostEntry::parse(&spelled).as_ref(), Ok(entry), "{text:?} as {spelled:?}");
    if let Host::Name(name) = &entry.host {
        assert!(!name.is_empty() && name.len() <= 253 && name.is_ascii() && !name.ends_with('.'), "{text:?}: {name:?}");
        assert!(
            !name.bytes().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_control() || b" /@?#%".contains(&byte))
        );
        assert!(name.parse::<IpAddr>().is_err(), "{text:?} is an address under the name {name:?}");
    }
    // A bare IPv6 address is an entry, but cannot be part of a URL.
    if text.parse::<Ipv6Addr>().is_err() {
        let authority = text.strip_prefix("*.").unwrap_or(text);
        let url = Url::parse(&format!("http://{authority}/")).expect("an entry can be part of a URL");
        assert_eq!((url.username(), url.password(), url.path()), ("", None, "/"), "{text:?}");
        assert_eq!(Host::of(&url).as_ref(), Some(&entry.host), "{text:?}");
    }
    for port in [0, 1, 79, 80, 443, 8080, 65535, entry.port.unwrap_or(7)] {
        let named = entry.port.map_or(matches!(port, 80 | 443), |only| only == port);
        assert_eq!(entry.admits(&entry.host, port), named && !entry.subdomains, "{text:?} and port {port}");
        if let Host::Name(name) = &entry.host {
            let below = Host::Name(format!("a.{name}"));
            assert_eq!(entry.admits(&below, port), named && entry.subdomains, "{text:?} and {below}:{port}");
            let beside = Host::Name(format!("a{name}"));
            assert!(!entry.admits(&beside, port), "{text:?} and {beside}:{port}");
        }
    }
}

/// Whether a tool with this entry is offered.
fn is_accepted(entry: &str) -> bool {
    let definition = ToolDefinition {
        name: "t".into(),
        description: "d".into(),
        version: String::new(),
        category: None,
        input_schema: Value::Bool(true),
        output_schema: Value::Bool(true),
        permissions: Permissions { net: AccessList::Listed(vec![entry.to_owned()]), ..Permissions::default() },
        limits: Limits::default(),
        required_secrets: Vec::new(),
        examples: Vec::new(),
        annotations: rcrt_breadcrumb::Annotations::default(),
        deprecated: None,
        subscriptions: Vec::new(),
        ui_schema: None,
        bootstrap: None,
        // No code, so that nothing has to be parsed for each address.
        implementation: Implementation::Native(NativeImplementation { kind: "http".into(), settings: Map::new() }),
        ignored: Violations::default(),
        misspelled: Violations::default(),
    };
    rcrt_validate::tool(&definition).errors.iter().all(|finding| finding.rule != "net-host")
}

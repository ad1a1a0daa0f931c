//! Canonical forms of hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use rcrt_breadcrumb::{Host, HostEntry};

fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

#[test]
fn hosts_are_parsed_to_canonical_form() {
    for spelling in ["example.com", "EXAMPLE.com", "example.com.", "ex%61mple.com", "ｅｘａｍｐｌｅ.com"] {
        assert_eq!(host(spelling), Host::Name("example.com".into()), "{spelling}");
    }
    for spelling in ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1."] {
        assert_eq!(host(spelling), Host::Address([127, 0, 0, 1].into()), "{spelling}");
    }
    assert_eq!(host("[::0:1]"), host("[::1]"));
    assert_eq!(host("bücher.example").to_string(), "xn--bcher-kva.example");
}

#[test]
fn entries_read_host_and_port() {
    for (text, written) in [
        ("API.example.com", "api.example.com"),
        ("api.example.com:8443", "api.example.com:8443"),
        ("10.0.0.7", "10.0.0.7"),
        ("10.0.0.7:80", "10.0.0.7:80"),
        ("*.Example.com", "*.example.com"),
        ("*.example.com:8443", "*.example.com:8443"),
        ("::1", "[::1]"),
        ("[::1]", "[::1]"),
        ("[::1]:8080", "[::1]:8080"),
    ] {
        assert_eq!(HostEntry::parse(text).unwrap().to_string(), written);
    }
    for text in [
        "",
        ".",
        "a..b",
        "*",
        "*.com",
        "*.10.0.0.7",
        "a.*.com",
        "*.*.example.com",
        "https://example.com",
        "example.com/path",
        "user@example.com",
        "a b",
        "example.com:",
        "example.com:0",
        "example.com:70000",
        "example.com:+80",
        "example.com:x",
        "a:1:2",
        "[::1",
        "a%2fb",
        "a?b",
        "a#b",
    ] {
        assert!(HostEntry::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn unicode_full_stops_are_dots() {
    for spelling in ["127\u{3002}0\u{3002}0\u{3002}1", "127\u{ff0e}0\u{ff0e}0\u{ff0e}1", "127\u{ff61}0.0\u{3002}1"] {
        assert_eq!(host(spelling), Host::Address([127, 0, 0, 1].into()), "{spelling:?}");
    }
    assert_eq!(host("localhost\u{3002}"), Host::Name("localhost".into()));
    assert_eq!(host("example\u{ff0e}com\u{ff61}"), Host::Name("example.com".into()));
}

#[test]
fn unusual_ipv4_spellings_are_addresses_or_refused() {
    for (spelling, address) in [
        ("0", [0, 0, 0, 0]),
        ("1", [0, 0, 0, 1]),
        ("010.0.0.1", [8, 0, 0, 1]),
        ("0X7F.0.0.0x1", [127, 0, 0, 1]),
        ("0x7f000001", [127, 0, 0, 1]),
        ("017700000001", [127, 0, 0, 1]),
        ("127.0.1", [127, 0, 0, 1]),
        ("127.65535", [127, 0, 255, 255]),
        ("4294967295", [255, 255, 255, 255]),
        ("0xffffffff", [255, 255, 255, 255]),
        ("0x", [0, 0, 0, 0]),
        ("169.254.43518", [169, 254, 169, 254]),
        ("\u{ff11}\u{ff12}\u{ff17}.\u{2460}", [127, 0, 0, 1]),
    ] {
        assert_eq!(host(spelling), Host::Address(address.into()), "{spelling}");
    }
    for spelling in [
        "4294967296",
        "256.0.0.1",
        "127.0.0.256",
        "127.0.65536",
        "1.2.3.4.5",
        "08.0.0.1",
        "0x100000000",
        "1.2.3.4..",
        "1..2",
    ] {
        assert_eq!(Host::parse(spelling), None, "{spelling}");
    }
}

#[test]
fn ipv6_addresses_have_brackets_and_no_zone() {
    for spelling in ["[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:127.0.0.1]", "[::ffff:127.0.0.1]"] {
        assert_eq!(host(spelling).to_string(), "[::ffff:127.0.0.1]");
    }
    for spelling in
        ["[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1", "::1]", "[::1].", "[1::2::3]", "[::g]", "[]", "[1.2.3.4]"]
    {
        assert_eq!(Host::parse(spelling), None, "{spelling}");
    }
    for entry in
        ["fe80::1%eth0", "[fe80::1%25eth0]:80", "::ffff:1.2.3.4:80:", "[::1]80", "[::1]:", "[::1]:x", "1::2::3"]
    {
        assert!(HostEntry::parse(entry).is_err(), "{entry}");
    }
}

#[test]
fn host_names_are_valid_dns_names() {
    let label = "a".repeat(63);
    assert!(Host::parse(&format!("{label}.test")).is_some());
    assert_eq!(Host::parse(&format!("{label}a.test")), None);
    assert!(Host::parse(&[label.as_str(); 4].join(".")[..253]).is_some());
    assert_eq!(Host::parse(&[label.as_str(); 4].join(".")[..254]), None);
    for name in ["a_b.test", "xn--bcher-kva.test", "r3---sn.test", "123.test", "a.b.c.d.e.test"] {
        assert!(Host::parse(name).is_some(), "{name}");
    }
    for name in [
        "",
        ".",
        "..",
        ".a",
        "a..b",
        "a.test..",
        "-a.test",
        "a-.test",
        "a b",
        "a\0b",
        "a!b",
        "a'b",
        "a*b",
        "xn--a.test",
        "a\u{202e}b",
    ] {
        assert_eq!(Host::parse(name), None, "{name:?}");
    }
    // Invalid characters are refused, never dropped, because dropping one could yield another name.
    assert_eq!(host("exa\u{ad}mple.com"), host("example.com"));
    assert_ne!(host("ex\u{0430}mple.com"), host("example.com"));
}

proptest! {
    #[test]
    fn parsing_never_panics_and_is_idempotent(text in ".{0,40}") {
        if let Some(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()), Some(host));
        }
        if let Ok(entry) = HostEntry::parse(&text) {
            prop_assert_eq!(HostEntry::parse(&entry.to_string()), Ok(entry));
        }
    }


    #[test]
    fn every_spelling_of_an_ipv4_address_is_parsed(bits in any::<u32>()) {
        let address = Ipv4Addr::from(bits);
        let [a, b, c, d] = address.octets();
        for spelling in [
            address.to_string(),
            format!("{address}."),
            bits.to_string(),
            format!("{bits:#x}"),
            format!("0{bits:o}"),
            format!("{a:#x}.0{b:o}.{}", u16::from_be_bytes([c, d])),
            format!("{a}.{}", bits & 0x00ff_ffff),
            address.to_string().replace('.', "\u{3002}"),
        ] {
            prop_assert_eq!(Host::parse(&spelling), Some(Host::Address(address.into())), "{}", spelling);
        }
    }

    #[test]
    fn ipv6_entries_parse_with_and_without_brackets(bits in any::<u128>(), port in 1_u16..) {
        let address = Ipv6Addr::from(bits);
        let plain = HostEntry { host: Host::Address(IpAddr::V6(address)), port: None, subdomains: false };
        for spelling in [address.to_string(), format!("[{address}]")] {
            prop_assert_eq!(HostEntry::parse(&spelling), Ok(plain.clone()));
        }
        prop_assert_eq!(HostEntry::parse(&format!("[{address}]:{port}")), Ok(HostEntry { port: Some(port), ..plain }));
    }

    #[test]
    fn case_width_and_trailing_dot_are_normalized(name in "[a-z][a-z0-9]{0,8}(\\.[a-z][a-z0-9]{0,8}){1,3}") {
        let wide: String = name.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect();
        for spelling in [name.to_uppercase(), format!("{name}."), wide] {
            prop_assert_eq!(Host::parse(&spelling), Some(Host::Name(name.clone())), "{}", spelling);
        }
    }

    #[test]
    fn wildcard_covers_subdomains_only(name in "[a-z]{1,5}\\.[a-z]{2,4}", more in "[a-z]{1,5}(\\.[a-z]{1,5})?") {
        let wild = HostEntry::parse(&format!("*.{name}")).unwrap();
        let [below, joined, beside] = [format!("{more}.{name}"), format!("{more}{name}"), format!("{name}.{more}.zz")];
        prop_assert!(wild.covers(&host(&below)));
        prop_assert!(!wild.covers(&host(&name)));
        prop_assert!(!wild.covers(&host(&joined)));
        prop_assert!(!wild.covers(&host(&beside)));
    }

    #[test]
    fn covering_entry_covers_all_hosts_of_the_other(a in "(\\*\\.)?(a\\.|b\\.){0,2}x\\.y", b in "(\\*\\.)?(a\\.|b\\.){0,2}x\\.y", below in "[ab]") {
        let (wide, narrow) = (HostEntry::parse(&a).unwrap(), HostEntry::parse(&b).unwrap());
        let base = narrow.host.to_string();
        let one = host(&if narrow.subdomains { format!("{below}.{base}") } else { base });
        prop_assert!(narrow.covers(&one));
        if wide.covers_all_of(&narrow) {
            prop_assert!(wide.covers(&one));
        }
        prop_assert!(narrow.covers_all_of(&narrow));
    }
}

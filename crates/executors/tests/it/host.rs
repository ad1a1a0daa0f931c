use breadcrumb::NetPermission;
use executors::egress::{Host, HostEntry, NetRules};
use proptest::prelude::*;

fn listed(entries: &[&str]) -> NetRules {
    NetRules::read(&NetPermission::Listed(entries.iter().map(ToString::to_string).collect())).unwrap()
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

#[test]
fn one_host_has_one_spelling() {
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
fn a_listed_host_opens_the_web_ports_and_a_listed_port_only_itself() {
    let rules = listed(&["example.com", "api.example.com:8443", "*.wild.example"]);
    for (name, port, admitted) in [
        ("example.com", 80, true),
        ("example.com", 443, true),
        ("example.com", 8080, false),
        ("www.example.com", 443, false),
        ("notexample.com", 443, false),
        ("a.wild.example", 443, true),
        ("b.a.wild.example", 80, true),
        ("a.wild.example", 8080, false),
        ("wild.example", 443, false),
        ("notwild.example", 443, false),
        ("api.example.com", 8443, true),
        ("api.example.com", 443, false),
    ] {
        assert_eq!(rules.check(&host(name), port).is_ok(), admitted, "{name}:{port}");
    }
    assert!(NetRules::read(&NetPermission::None).unwrap().check(&host("example.com"), 443).is_err());
    let all = NetRules::read(&NetPermission::All).unwrap();
    assert!(all.check(&host("example.com"), 443).is_ok());
    assert!(all.check(&host("example.com"), 22).is_err());
}

proptest! {
    #[test]
    fn parsing_never_fails_badly_and_is_stable(text in ".{0,40}") {
        if let Some(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()), Some(host));
        }
        if let Ok(entry) = HostEntry::parse(&text) {
            prop_assert_eq!(HostEntry::parse(&entry.to_string()), Ok(entry));
        }
    }

    #[test]
    fn only_the_listed_host_is_admitted(a in "[a-z]{1,8}\\.[a-z]{2,4}", b in "[a-z]{1,8}\\.[a-z]{2,4}", port in 1_u16..) {
        let rules = listed(&[&a]);
        let admitted = rules.check(&host(&b), port).is_ok();
        prop_assert_eq!(admitted, a == b && (port == 80 || port == 443));
    }
}

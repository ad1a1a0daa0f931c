//! Which hosts and ports a permission allows, and which private ones an operator allows.

use proptest::prelude::*;
use rcrt_breadcrumb::{Host, HostEntry, NetPermission};
use rcrt_egress::{NetRules, PrivateHost};

fn listed(entries: &[&str]) -> NetRules {
    NetRules::read(&NetPermission::Listed(entries.iter().map(ToString::to_string).collect())).unwrap()
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

#[test]
fn listed_host_opens_the_web_ports_and_listed_port_only_itself() {
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

#[test]
fn the_refusal_of_another_host_than_that_of_a_url_names_what_has_the_url() {
    let rules = NetRules::only_of("transport.url", host("example.com"), 443);
    assert_eq!(rules.check(&host("example.com"), 443), Ok(()));
    let refused = rules.check(&host("example.com"), 8443).unwrap_err();
    assert!(refused.starts_with("\"example.com:8443\" is not the host of transport.url"), "{refused}");
}

#[test]
fn private_host_is_for_every_tool_or_for_one() {
    for (text, tool, url_host, port, allowed) in [
        ("10.0.0.7", "any", "10.0.0.7", 9, true),
        ("10.0.0.7", "any", "10.0.0.8", 9, false),
        ("10.0.0.7:80", "any", "10.0.0.7", 81, false),
        ("ollama=localhost:11434", "ollama", "localhost", 11434, true),
        ("ollama=localhost:11434", "ollama2", "localhost", 11434, false),
        ("ollama=localhost:11434", "OLLAMA", "localhost", 11434, false),
        ("ollama=localhost:11434", "ollama", "localhost", 11435, false),
        ("ollama=127.0.0.1", "ollama", "localhost", 80, false),
        ("my.tool-2=[::1]:8080", "my.tool-2", "[::1]", 8080, true),
        ("db=*.corp.internal", "db", "a.corp.internal", 5432, true),
        ("db=*.corp.internal", "db", "corp.internal", 5432, false),
    ] {
        let entry: PrivateHost = text.parse().unwrap();
        assert_eq!(entry.to_string(), text);
        assert_eq!(entry.allows(tool, &host(url_host), port), allowed, "{text} for {tool} at {url_host}:{port}");
    }
    for text in ["", "=localhost", "a b=localhost", "a=", "a=b=c", "tool=http://localhost", "tool=localhost:0"] {
        assert!(text.parse::<PrivateHost>().is_err(), "{text:?}");
    }
    for never in ["169.254.169.254", "chat=[fe80::1]:80", "224.0.0.1", "0.0.0.0", "[::ffff:169.254.169.254]"] {
        let error = never.parse::<PrivateHost>().unwrap_err().to_string();
        assert!(error.contains("cannot be allowed"), "{never}: {error}");
    }
}

#[test]
fn tool_can_list_only_the_private_hosts_that_the_operator_allowed() {
    for (allowed, tool, asked, fits) in [
        ("db.internal", "any", "db.internal", true),
        ("db.internal", "any", "db.internal:5432", true),
        ("db.internal:5432", "any", "db.internal", false),
        ("db.internal", "any", "*.db.internal", false),
        ("*.internal.corp", "any", "db.internal.corp", true),
        ("*.internal.corp", "any", "*.db.internal.corp", true),
        ("*.internal.corp", "any", "*.internal.corp", true),
        ("*.internal.corp", "any", "internal.corp", false),
        ("a=db.internal", "a", "db.internal", true),
        ("a=db.internal", "b", "db.internal", false),
    ] {
        let allowed: PrivateHost = allowed.parse().unwrap();
        assert_eq!(
            allowed.allows_entry(tool, &HostEntry::parse(asked).unwrap()),
            fits,
            "{allowed} for {tool}: {asked}"
        );
    }
}

proptest! {
    #[test]
    fn only_the_listed_host_is_allowed(a in "[a-z]{1,8}\\.[a-z]{2,4}", b in "[a-z]{1,8}\\.[a-z]{2,4}", port in 1_u16..) {
        let rules = listed(&[&a]);
        let admitted = rules.check(&host(&b), port).is_ok();
        prop_assert_eq!(admitted, a == b && (port == 80 || port == 443));
    }
}

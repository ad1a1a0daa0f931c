use chrono::Utc;
use proptest::prelude::*;
use rcrt_breadcrumb::{
    GrantedTool, HostEntry, MAX_SECRET_BYTES, MIN_OPAQUE_BYTES, NewSecret, SecretChanges, SecretInfo,
    SecretUnavailable, Violations, is_secret_name, secret_hosts,
};
use serde_json::json;
use uuid::Uuid;

fn fields(result: Result<(), Violations>) -> Vec<String> {
    result.err().map(|violations| violations.0.into_iter().map(|one| one.field).collect()).unwrap_or_default()
}

#[test]
fn secret_names_are_identifiers() {
    for good in ["A", "_", "_9", "API_KEY", "apiKey2", &"x".repeat(200)] {
        assert!(is_secret_name(good), "{good}");
    }
    for bad in ["", "9A", "API-KEY", "API.KEY", "API KEY", "ÄPI", "A\0", "A\n", &"x".repeat(201)] {
        assert!(!is_secret_name(bad), "{bad:?}");
    }
}

#[test]
fn stored_secret_names_allow_more_characters() {
    for good in ["A", "_9", "9A", "API-KEY", "openrouter.ai key", "OpenRouter (work)", &"x".repeat(200)] {
        let secret = NewSecret::new(good, "a long value");
        assert!(secret.check().is_ok(), "{good}");
        assert_eq!(secret.check_for_tools().is_ok(), is_secret_name(good), "{good}");
    }
    for bad in ["", " ", " A", "-A", "ÄPI", "A\0", "A\n", "A\"", "A\\", "A{", "A'", &"x".repeat(201)] {
        assert_eq!(fields(NewSecret::new(bad, "a long value").check()), ["name"], "{bad:?}");
    }
}

#[test]
fn only_readable_values_can_be_short() {
    let secret = |length: usize, readable| NewSecret { readable, ..NewSecret::new("KEY", "x".repeat(length)) };
    for (length, readable, is_good) in [
        (0, false, false),
        (0, true, false),
        (1, true, true),
        (MIN_OPAQUE_BYTES - 1, false, false),
        (MIN_OPAQUE_BYTES, false, true),
        (MAX_SECRET_BYTES, false, true),
        (MAX_SECRET_BYTES + 1, false, false),
        (MAX_SECRET_BYTES + 1, true, false),
    ] {
        let found = fields(secret(length, readable).check());
        assert_eq!(found.is_empty(), is_good, "{length} {readable}: {found:?}");
        assert!(found.iter().all(|field| field == "value"));
        let changes = SecretChanges { readable: Some(readable), ..SecretChanges::value("x".repeat(length)) };
        assert_eq!(fields(changes.check()), found, "{length} {readable}");
    }
    // The limit counts bytes, not characters.
    assert!(NewSecret::new("KEY", "ääää").check().is_ok());
}

#[test]
fn empty_changes_are_refused() {
    assert_eq!(fields(SecretChanges::default().check()), [""]);
    assert_eq!(fields(SecretChanges { hosts: Some(vec![]), ..SecretChanges::default() }.check()), Vec::<String>::new());
    let read = |value| serde_json::from_value::<SecretChanges>(value);
    assert_eq!(read(json!({"value": null})).unwrap(), SecretChanges::default());
    assert!(read(json!({"valeu": "x"})).is_err());
    assert!(read(json!({"name": "OTHER"})).is_err());
    assert_eq!(serde_json::to_value(SecretChanges::value("v")).unwrap(), json!({"value": "v"}));
}

#[test]
fn invalid_hosts_are_reported_by_index() {
    let hosts = |hosts: &[&str]| secret_hosts(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>());
    let read = hosts(&["A.example.com", "a.example.com.", "b.example.com:443", "*.C.example.com"]).unwrap();
    assert_eq!(read, ["a.example.com", "b.example.com:443", "*.c.example.com"]);
    for bad in [
        "",
        " ",
        "*",
        "*.com",
        "a.*.com",
        "https://a.example.com",
        "a.example.com/path",
        "user@a.example.com",
        "a.example.com:0",
        "a.example.com:70000",
        "a.example.com:",
        "a b.example.com",
        "a.example.com\0",
        "[fe80::1%eth0]",
    ] {
        assert_eq!(fields(hosts(&["good.example.com", bad]).map(|_| ())), ["hosts[1]"], "{bad:?}");
    }
    let many: Vec<String> = (0..51).map(|n| format!("h{n}.example.com")).collect();
    assert_eq!(fields(secret_hosts(&many).map(|_| ())), ["hosts"]);
    assert_eq!(secret_hosts(&many[..50]).unwrap().len(), 50);
}

#[test]
fn debug_output_hides_values() {
    let shown = format!("{:?} {:?}", NewSecret::new("KEY", "hunter2hunter2"), SecretChanges::value("hunter2hunter2"));
    assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn first_missing_requirement_is_reported() {
    let tool_id = Uuid::new_v4();
    let grant = |tool_id| GrantedTool {
        tool_id,
        tool: "t".into(),
        tool_version: 3,
        granted_at: Utc::now(),
        granted_by: Uuid::new_v4(),
    };
    let mut secret = SecretInfo {
        id: Uuid::new_v4(),
        name: "KEY".into(),
        version: 1,
        hosts: vec![],
        readable: false,
        scope_type: None,
        scope_id: None,
        tools: vec![grant(Uuid::new_v4())],
        created_at: Utc::now(),
        updated_at: Utc::now(),
    };
    let between = |version, secret: Option<&SecretInfo>| SecretUnavailable::check(Some((tool_id, version)), secret);
    assert_eq!(between(3, None), Some(SecretUnavailable::Missing));
    assert_eq!(between(3, Some(&secret)), Some(SecretUnavailable::NotGranted));
    secret.tools.push(grant(tool_id));
    assert_eq!(SecretUnavailable::check(None, Some(&secret)), Some(SecretUnavailable::NotGranted));
    assert_eq!(between(2, Some(&secret)), Some(SecretUnavailable::NewerOnly));
    assert_eq!(between(3, Some(&secret)), Some(SecretUnavailable::Unbound));
    secret.readable = true;
    assert_eq!(between(3, Some(&secret)), None);
    secret.readable = false;
    secret.hosts = vec!["api.example.com".into()];
    assert_eq!(between(4, Some(&secret)), None);
}

proptest! {
    /// Stored hosts can be parsed again, with the same result.
    #[test]
    fn secret_hosts_are_canonical(hosts in prop::collection::vec("[A-Za-z0-9.*:\\[\\]äßﬀ。%-]{1,20}|\\PC{0,12}", 0..4)) {
        if let Ok(kept) = secret_hosts(&hosts) {
            prop_assert_eq!(&secret_hosts(&kept).unwrap(), &kept);
            for host in &kept {
                prop_assert_eq!(HostEntry::parse(host).unwrap().to_string(), host.clone());
            }
        }
    }
}

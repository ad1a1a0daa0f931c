//! The protection levels, without a worker.

use proptest::prelude::*;
use rcrt_sandbox::level::{missing, names};
use rcrt_sandbox::{Level, Protection, ProtectionState, SandboxError};

fn protection(name: &str, reason: Option<&str>) -> Protection {
    let state = reason.map_or(ProtectionState::Applied, |reason| ProtectionState::Unavailable(reason.into()));
    Protection { name: name.into(), state }
}

const ENOUGH: [&str; 9] = [
    names::DESCRIPTORS,
    names::PRIVILEGES,
    names::CAPABILITIES,
    names::NO_CORE_DUMPS,
    names::SECCOMP,
    names::LANDLOCK,
    names::RESOURCE_LIMITS,
    names::PARENT_DEATH,
    names::MEMORY_CEILING,
];

#[test]
fn levels_are_parsed_from_their_names() {
    for level in [Level::Strict, Level::Minimal] {
        assert_eq!(level.to_string().parse::<Level>().unwrap(), level);
    }
    assert_eq!(Level::default(), Level::Strict);
    for wrong in ["", "Strict", "none", " minimal", "minimal "] {
        let error = wrong.parse::<Level>().unwrap_err().to_string();
        assert!(error.contains("`strict` or `minimal`"), "{error}");
    }
}

#[test]
fn each_required_protection_is_needed() {
    let protections: Vec<Protection> = ENOUGH.iter().map(|name| protection(name, None)).collect();
    assert_eq!(missing(&protections), []);
    for left_out in ENOUGH {
        let rest: Vec<Protection> = protections.iter().filter(|found| found.name != left_out).cloned().collect();
        let missing = missing(&rest);
        assert!(!missing.is_empty(), "{left_out}");
        assert!(missing.iter().any(|(_, reason)| reason.contains(left_out) && reason.contains("not reported")));
    }
}

#[test]
fn one_of_two_alternative_protections_is_enough() {
    for (one, other, what) in [
        (names::EMPTY_ROOT, names::LANDLOCK, "no files"),
        (names::MEMORY_CGROUP, names::MEMORY_CEILING, "a memory bound"),
        (names::NETWORK_NAMESPACE, names::SECCOMP, "no network"),
    ] {
        let lacks = |first: Option<&str>, second: Option<&str>| {
            missing(&[protection(one, first), protection(other, second)]).into_iter().find(|(name, _)| name == what)
        };
        assert_eq!(lacks(None, Some("off")), None);
        assert_eq!(lacks(Some("off"), None), None);
        let (_, reason) = lacks(Some("this"), Some("that")).unwrap();
        assert!(reason.contains(&format!("{one}: this")) && reason.contains(&format!("{other}: that")), "{reason}");
    }
}

#[test]
fn a_refusal_names_what_is_missing_and_the_minimal_level() {
    let missing = missing(&[protection(names::SECCOMP, Some("disabled"))]);
    let text = SandboxError::Unprotected { missing: missing.clone() }.to_string();
    for (name, reason) in &missing {
        assert!(text.contains(name) && text.contains(reason), "{text}");
    }
    assert!(text.contains("--sandbox minimal") && text.contains("rcrt doctor"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// More protections never make more missing.
    #[test]
    fn another_protection_never_makes_more_missing(have in proptest::collection::vec(0..ENOUGH.len(), 0..7), more in 0..ENOUGH.len()) {
        let protections: Vec<Protection> = have.iter().map(|n| protection(ENOUGH[*n], None)).collect();
        let with: Vec<Protection> = protections.iter().cloned().chain([protection(ENOUGH[more], None)]).collect();
        let names = |missing: Vec<(String, String)>| missing.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let before = names(missing(&protections));
        prop_assert!(names(missing(&with)).iter().all(|name| before.contains(name)));
    }
}

//! How much protection is called for, without a worker.

use proptest::prelude::*;
use sandbox::level::{missing, names};
use sandbox::{Level, Protection, ProtectionState, SandboxError};

fn wall(name: &str, reason: Option<&str>) -> Protection {
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
fn levels_are_called_by_name() {
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
fn what_is_enough_is_enough_and_each_of_it_is_needed() {
    let walls: Vec<Protection> = ENOUGH.iter().map(|name| wall(name, None)).collect();
    assert_eq!(missing(&walls), []);
    for left_out in ENOUGH {
        let rest: Vec<Protection> = walls.iter().filter(|wall| wall.name != left_out).cloned().collect();
        let missing = missing(&rest);
        assert!(!missing.is_empty(), "{left_out}");
        assert!(missing.iter().any(|(_, reason)| reason.contains(left_out) && reason.contains("not reported")));
    }
}

#[test]
fn one_of_two_walls_for_the_same_is_enough() {
    for (one, other, what) in [
        (names::EMPTY_ROOT, names::LANDLOCK, "no files"),
        (names::MEMORY_CGROUP, names::MEMORY_CEILING, "a memory bound"),
        (names::NETWORK_NAMESPACE, names::SECCOMP, "no network"),
    ] {
        let lacks = |first: Option<&str>, second: Option<&str>| {
            missing(&[wall(one, first), wall(other, second)]).into_iter().find(|(name, _)| name == what)
        };
        assert_eq!(lacks(None, Some("off")), None);
        assert_eq!(lacks(Some("off"), None), None);
        let (_, reason) = lacks(Some("this"), Some("that")).unwrap();
        assert!(reason.contains(&format!("{one}: this")) && reason.contains(&format!("{other}: that")), "{reason}");
    }
}

#[test]
fn a_refusal_says_what_is_missing_and_how_the_bar_is_lowered() {
    let missing = missing(&[wall(names::SECCOMP, Some("switched off"))]);
    let text = SandboxError::Unprotected { missing: missing.clone() }.to_string();
    for (name, reason) in &missing {
        assert!(text.contains(name) && text.contains(reason), "{text}");
    }
    assert!(text.contains("--sandbox minimal") && text.contains("rcrt doctor"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// More walls never make more missing.
    #[test]
    fn a_wall_more_never_hurts(have in proptest::collection::vec(0..ENOUGH.len(), 0..7), more in 0..ENOUGH.len()) {
        let walls: Vec<Protection> = have.iter().map(|n| wall(ENOUGH[*n], None)).collect();
        let with: Vec<Protection> = walls.iter().cloned().chain([wall(ENOUGH[more], None)]).collect();
        let names = |missing: Vec<(String, String)>| missing.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let before = names(missing(&walls));
        prop_assert!(names(missing(&with)).iter().all(|name| before.contains(name)));
    }
}

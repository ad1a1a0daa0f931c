use rcrt_breadcrumb::{Claim, OLDEST_RUNNER_PROTOCOL, RUNNER_PROTOCOL, check_runner_protocol};
use serde_json::json;
use uuid::Uuid;

#[test]
fn a_server_accepts_the_numbers_that_it_knows() {
    for number in OLDEST_RUNNER_PROTOCOL..=RUNNER_PROTOCOL {
        assert_eq!(check_runner_protocol(Some(&number.to_string())), Ok(()));
    }
    assert_eq!(check_runner_protocol(None), Ok(()), "a program without a number");
    for (sent, says) in [
        ((OLDEST_RUNNER_PROTOCOL - 1).to_string(), "upgrade the runner"),
        ((RUNNER_PROTOCOL + 1).to_string(), "upgrade the servers"),
        (String::new(), "whole number"),
        ("-1".to_owned(), "whole number"),
    ] {
        let refused = check_runner_protocol(Some(&sent)).unwrap_err();
        assert!(refused.to_string().contains(says), "{sent:?}: {refused}");
    }
}

/// A runner that is older than its server ignores what is new in a claim.
#[test]
fn a_claim_can_have_fields_of_a_newer_version() {
    let request = json!({"id": Uuid::nil(), "owner_id": Uuid::nil(), "title": "a call", "context": {}, "tags": [],
        "visibility": "team", "sensitivity": "low", "version": 1, "checksum": "", "size_bytes": 2,
        "created_at": "2026-01-31T12:00:00Z", "updated_at": "2026-01-31T12:00:00Z", "new_of_record": 1});
    let claim = json!({"lease": {"request": Uuid::nil(), "fence": 7, "new_of_lease": 1}, "attempt": 1,
        "request": request, "queued_at": "2026-01-31T12:00:00Z", "new_of_claim": {"n": 1}});
    let claim: Claim = serde_json::from_value(claim).unwrap();
    assert_eq!((claim.lease.fence, claim.attempt), (7, 1));
    // But not a restriction: ignoring it would allow what the server denies.
    let mut restricted = serde_json::to_value(&claim).unwrap();
    restricted["allowed_tools"] = json!({"names": ["echo"], "except": ["echo"]});
    assert!(serde_json::from_value::<Claim>(restricted).is_err());
}

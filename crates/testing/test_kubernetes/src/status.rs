//! The states of pods and containers, as a kubelet reports them.

use serde_json::{Value, json};

pub fn waiting(reason: &str, message: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": message}})
}

pub fn running() -> Value {
    json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})
}

pub fn terminated(exit_code: i32, reason: &str) -> Value {
    json!({"terminated": {"exitCode": exit_code, "reason": reason}})
}

/// The status of a pod with these containers, by name and state, init containers first.
pub fn pod(phase: &str, init: &[(String, Value)], containers: &[(String, Value)]) -> Value {
    let statuses = |of: &[(String, Value)]| {
        of.iter().map(|(name, state)| json!({"name": name, "state": state, "ready": false})).collect::<Vec<_>>()
    };
    json!({"phase": phase, "initContainerStatuses": statuses(init), "containerStatuses": statuses(containers)})
}

/// The status of a pod that ended as a whole.
pub fn ended(reason: &str, message: &str) -> Value {
    json!({"phase": "Failed", "reason": reason, "message": message})
}

pub fn unschedulable() -> Value {
    json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient memory."}]})
}

/// The body of an error.
pub fn refusal(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message,
        "code": code})
}

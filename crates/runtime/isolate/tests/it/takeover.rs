//! The engine was exploited: native code in the worker's jail does what it likes, without success.
//! The program is `takeover`; its list has the attempts and their expected outcomes.

#[path = "../../takeover/expected.rs"]
mod expected;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_sandbox::level::names;
use rcrt_sandbox::{
    ApiCall, BodyStream, CgroupUse, FetchRequest, FetchResponse, HostOps, Level, OpError, ProtectionState, Report,
    Sandbox, SandboxError, SandboxOptions, WorkerCommand,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{PATIENCE_MS, block_on, function, invocation, run_in, shared, worker};
use crate::leftovers::Zygote;
use expected::Expected;

const TAKEOVER: &str = env!("CARGO_BIN_EXE_takeover");
/// Timeout of attempts that must reach it, in ms.
const SHORT: u64 = 300;

struct Attempt {
    name: String,
    expected: Expected,
}

fn attempts() -> Vec<Attempt> {
    let output = std::process::Command::new(TAKEOVER).arg("list").output().unwrap();
    let list: Vec<(String, Expected)> = serde_json::from_slice(&output.stdout).unwrap();
    list.into_iter().map(|(name, expected)| Attempt { name, expected }).collect()
}

fn takeover() -> WorkerCommand {
    WorkerCommand { program: PathBuf::from(TAKEOVER), args: Vec::new() }
}

/// The same program under a filter that refuses these system calls.
fn behind(calls: &str, command: &WorkerCommand) -> WorkerCommand {
    let args = vec!["behind".into(), calls.into(), command.program.clone().into()];
    WorkerCommand { program: PathBuf::from(TAKEOVER), args }
}

async fn started(command: WorkerCommand, level: Level) -> Result<Sandbox, SandboxError> {
    started_in(CgroupUse::WhereTheyAre, command, level).await
}

async fn started_in(cgroups: CgroupUse, command: WorkerCommand, level: Level) -> Result<Sandbox, SandboxError> {
    let mut options = SandboxOptions::new(command);
    options.cgroups = cgroups;
    options.level = level;
    options.max_workers = 1;
    options.spares = 1;
    Sandbox::start(options).await
}

async fn tried(sandbox: &Sandbox, name: &str, timeout_ms: u64) -> Result<Value, ToolFailure> {
    let mut call = invocation("", json!(name));
    call.limits.timeout_ms = timeout_ms;
    sandbox.run(call, Arc::new(NoReply), CancellationToken::new()).await.result
}

/// A host that never replies.
struct NoReply;

#[async_trait]
impl HostOps for NoReply {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        std::future::pending().await
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        std::future::pending().await
    }
}

/// Says how the outcome differs from the expected one.
fn wrong(expected: &Expected, outcome: &Result<Value, ToolFailure>) -> Option<String> {
    let is_right = match (expected, outcome) {
        (Expected::Killed, Err(failure)) => {
            failure.code == ErrorCode::ExecutionFailed && failure.message.contains("forbidden system call")
        }
        (Expected::Refused(errors), Ok(found)) => {
            found["refused"].as_i64().is_some_and(|error| errors.iter().any(|known| i64::from(*known) == error))
        }
        (Expected::Returns(value), Ok(found)) => found["done"] == json!(*value),
        (Expected::AtMost(bound), Ok(found)) => {
            found["refused"].is_i64() || found["done"].as_i64().is_some_and(|value| value <= *bound)
        }
        // Without namespaces the kernel's memory limit may kill the process first.
        (Expected::AtMost(_), Err(failure)) => failure.code == ErrorCode::ResourceExhausted,
        (Expected::TimesOut, Err(failure)) => failure.code == ErrorCode::Timeout,
        (Expected::Breach, Err(failure)) => {
            failure.code == ErrorCode::ExecutionFailed && failure.message.contains("was terminated")
        }
        (Expected::Exits, Err(failure)) => {
            [ErrorCode::ExecutionFailed, ErrorCode::ResourceExhausted].contains(&failure.code)
        }
        _ => false,
    };
    (!is_right).then(|| format!("expected {expected:?}, got {outcome:?}"))
}

fn try_all(command: WorkerCommand, wanted: impl Fn(&Attempt) -> bool) {
    try_all_in(CgroupUse::WhereTheyAre, command, wanted);
}

fn try_all_in(cgroups: CgroupUse, command: WorkerCommand, wanted: impl Fn(&Attempt) -> bool) {
    block_on(async {
        let sandbox = started_in(cgroups, command, Level::Strict).await.unwrap();
        let mut found = Vec::new();
        for attempt in attempts().into_iter().filter(wanted) {
            let timeout = if attempt.expected == Expected::TimesOut { SHORT } else { PATIENCE_MS };
            let outcome = tried(&sandbox, &attempt.name, timeout).await;
            found.extend(wrong(&attempt.expected, &outcome).map(|what| format!("{}: {what}", attempt.name)));
            let after = tried(&sandbox, "a good call", PATIENCE_MS).await;
            if after != Ok(json!("a good answer")) {
                found.push(format!("after {}: {after:?}", attempt.name));
            }
        }
        sandbox.close().await;
        assert!(found.is_empty(), "{}", found.join("\n"));
    });
}

fn is_deadly(attempt: &Attempt) -> bool {
    attempt.expected == Expected::Killed
}

#[test]
fn attempts_that_only_an_attacker_makes_kill_the_process() {
    try_all(takeover(), is_deadly);
}

#[test]
fn all_other_attempts_have_no_effect() {
    try_all(takeover(), |attempt| !is_deadly(attempt));
}

/// Its copies would draw the same numbers.
#[test]
fn a_zygote_whose_generator_was_used_is_not_forked() {
    use std::io::Read;
    let mut command = std::process::Command::new(TAKEOVER);
    command.arg("used").stderr(std::process::Stdio::piped());
    let mut zygote = Zygote::start_as(command);
    // Otherwise it would end successfully now: nothing more is asked of it.
    zygote.socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut told = String::new();
    zygote.process.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(!zygote.process.wait().unwrap().success());
    assert!(told.contains("random number generator was used"), "{told}");
}

/// In the second case a zygote refuses to be forked.
#[test]
fn a_generator_that_was_used_before_a_fork_is_detected() {
    let output = std::process::Command::new(TAKEOVER).arg("copies").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "true false\n", "{output:?}");
}

#[test]
fn memory_is_bounded_without_control_groups_too() {
    let is_of_memory = |attempt: &Attempt| ["memory", "pages"].iter().any(|word| attempt.name.contains(word));
    try_all_in(CgroupUse::None, takeover(), is_of_memory);
    try_all_in(CgroupUse::None, behind("unshare", &takeover()), is_of_memory);
}

#[test]
fn there_are_many_attempts_with_unique_names() {
    let all = attempts();
    let names: BTreeSet<_> = all.iter().map(|attempt| &attempt.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(names.len() > 100, "{}", names.len());
}

#[test]
fn a_successful_attempt_is_detected() {
    // The same program without the restrictions that matter here.
    let bare = behind("unshare,landlock,seccomp", &takeover());
    let all = attempts();
    block_on(async {
        let sandbox = started(bare, Level::Minimal).await.unwrap();
        for name in ["a socket on this machine", "the list of users", "who its parent is", "a file in memory"] {
            let attempt = all.iter().find(|attempt| attempt.name == name).unwrap();
            let outcome = tried(&sandbox, name, PATIENCE_MS).await;
            assert!(outcome.as_ref().is_ok_and(|found| found["done"].is_i64()), "{name}: {outcome:?}");
            assert!(wrong(&attempt.expected, &outcome).is_some(), "{name}");
        }
        let failure = tried(&sandbox, "no such attempt", PATIENCE_MS).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::ToolNotFound);
        sandbox.close().await;
    });
}

#[test]
fn takeover_runs_in_the_same_jail_as_a_worker() {
    let states = |report: &Report| names::OF_THE_WORKER.map(|name| state(report, name));
    let of_the_worker = states(shared().report());
    block_on(async {
        let sandbox = started(takeover(), Level::Strict).await.unwrap();
        assert_eq!(states(sandbox.report()), of_the_worker);
        sandbox.close().await;
    });
}

fn state(report: &Report, name: &str) -> Option<ProtectionState> {
    report.protections.iter().find(|protection| protection.name == name).map(|protection| protection.state.clone())
}

fn is_in_force(report: &Report, name: &str) -> bool {
    state(report, name) == Some(ProtectionState::Applied)
}

#[test]
fn the_jail_holds_without_namespaces() {
    block_on(async {
        let sandbox = started(behind("unshare", &worker()), Level::Strict).await.unwrap();
        let report = sandbox.report();
        for name in [names::USER_NAMESPACE, names::PROCESS_NAMESPACE, names::NETWORK_NAMESPACE, names::EMPTY_ROOT] {
            assert!(matches!(state(report, name), Some(ProtectionState::Unavailable(_))), "{name}");
        }
        assert!(is_in_force(report, names::LANDLOCK) && is_in_force(report, names::SECCOMP));
        let outcome = run_in(&sandbox, invocation(&function("return 1 + 1"), Value::Null)).await;
        assert_eq!(outcome.result.unwrap(), json!(2));
        sandbox.close().await;
    });
    try_all(behind("unshare", &takeover()), |_| true);
}

#[test]
fn the_jail_holds_if_workers_cannot_be_forked_from_the_zygote() {
    block_on(async {
        let sandbox = started(behind("copies", &worker()), Level::Strict).await.unwrap();
        assert!(is_in_force(sandbox.report(), names::SECCOMP));
        for n in 1..=3 {
            let outcome = run_in(&sandbox, invocation(&function("return input + 1"), json!(n))).await;
            assert_eq!(outcome.result.unwrap(), json!(n + 1));
        }
        sandbox.close().await;
    });
}

async fn missing(command: WorkerCommand) -> Vec<(String, String)> {
    match started(command, Level::Strict).await {
        Err(error @ SandboxError::Unprotected { .. }) => {
            let text = error.to_string();
            assert!(text.contains("--sandbox minimal"), "{text}");
            let SandboxError::Unprotected { missing } = error else { unreachable!() };
            for (name, reason) in &missing {
                assert!(text.contains(name) && text.contains(reason), "{text}");
            }
            missing
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the sandbox started"),
    }
}

#[test]
fn strict_requires_each_protection() {
    let cases: [(&str, &[&str]); 7] = [
        ("unshare,landlock", &["no files"]),
        ("mount,landlock", &["no files"]),
        ("seccomp", &["seccomp"]),
        ("close_range", &["no inherited descriptors"]),
        ("capset", &["no capabilities"]),
        ("prctl", &["no core dumps"]),
        ("unshare,landlock,seccomp", &["seccomp", "no files", "no network"]),
    ];
    block_on(async {
        for (calls, expected) in cases {
            let missing = missing(behind(calls, &worker())).await;
            // More may be missing if this kernel refuses more.
            for name in expected {
                assert!(missing.iter().any(|(found, _)| found == name), "{calls}: {missing:?}");
            }
        }
    });
}

#[test]
fn minimal_runs_and_reports_what_is_missing() {
    block_on(async {
        let sandbox = started(behind("unshare,landlock,seccomp", &worker()), Level::Minimal).await.unwrap();
        assert_eq!(sandbox.report().missing().len(), 3);
        assert_eq!(sandbox.report().level, Level::Minimal);
        let outcome = run_in(&sandbox, invocation(&function("return 1 + 1"), Value::Null)).await;
        assert_eq!(outcome.result.unwrap(), json!(2));
        sandbox.close().await;
    });
}

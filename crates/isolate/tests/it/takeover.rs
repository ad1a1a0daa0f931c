//! The engine has fallen: native code in the worker's jail does what it likes, and nothing comes of it. The program is
//! `takeover`; what it tries, and what must come of each, stands in its own list.

#[path = "../../takeover/must.rs"]
mod must;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::{ErrorCode, ToolFailure};
use sandbox::level::names;
use sandbox::{
    ApiCall, BodyStream, CgroupUse, FetchRequest, FetchResponse, HostOps, Level, OpError, ProtectionState, Report,
    Sandbox, SandboxError, SandboxOptions, WorkerCommand,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{block_on, function, invocation, run_in, shared, worker};
use crate::walls::OF_THE_WORKER;
use must::Must;

const TAKEOVER: &str = env!("CARGO_BIN_EXE_takeover");
/// Time for attempts that must run out of it, in ms.
const SHORT: u64 = 300;

struct Attempt {
    name: String,
    must: Must,
}

fn attempts() -> Vec<Attempt> {
    let told = std::process::Command::new(TAKEOVER).arg("list").output().unwrap();
    let list: Vec<(String, Must)> = serde_json::from_slice(&told.stdout).unwrap();
    list.into_iter().map(|(name, must)| Attempt { name, must }).collect()
}

fn takeover() -> WorkerCommand {
    WorkerCommand { program: PathBuf::from(TAKEOVER), args: Vec::new() }
}

/// The same program on a kernel that refuses these system calls.
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
    sandbox.run(call, Arc::new(NoAnswer), CancellationToken::new()).await.result
}

/// A world in which every op is under way for ever.
struct NoAnswer;

#[async_trait]
impl HostOps for NoAnswer {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        std::future::pending().await
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        std::future::pending().await
    }
}

/// What is wrong with what came of the attempt.
fn wrong(must: &Must, came: &Result<Value, ToolFailure>) -> Option<String> {
    let is_right = match (must, came) {
        (Must::Die, Err(failure)) => {
            failure.code == ErrorCode::ExecutionFailed && failure.message.contains("forbidden system call")
        }
        (Must::Refuse(errors), Ok(told)) => {
            told["refused"].as_i64().is_some_and(|error| errors.iter().any(|known| i64::from(*known) == error))
        }
        (Must::Give(value), Ok(told)) => told["done"] == json!(*value),
        (Must::AtMost(bound), Ok(told)) => {
            told["refused"].is_i64() || told["done"].as_i64().is_some_and(|value| value <= *bound)
        }
        // Without namespaces the kernel's own count of memory may end the process first.
        (Must::AtMost(_), Err(failure)) => failure.code == ErrorCode::ResourceExhausted,
        (Must::TimeOut, Err(failure)) => failure.code == ErrorCode::Timeout,
        (Must::Breach, Err(failure)) => {
            failure.code == ErrorCode::ExecutionFailed && failure.message.contains("was terminated")
        }
        (Must::End, Err(failure)) => [ErrorCode::ExecutionFailed, ErrorCode::ResourceExhausted].contains(&failure.code),
        _ => false,
    };
    (!is_right).then(|| format!("must {must:?}, came {came:?}"))
}

fn try_all(command: WorkerCommand, wanted: impl Fn(&Attempt) -> bool) {
    try_all_in(CgroupUse::WhereTheyAre, command, wanted);
}

fn try_all_in(cgroups: CgroupUse, command: WorkerCommand, wanted: impl Fn(&Attempt) -> bool) {
    block_on(async {
        let sandbox = started_in(cgroups, command, Level::Strict).await.unwrap();
        let mut found = Vec::new();
        for attempt in attempts().into_iter().filter(wanted) {
            let timeout = if attempt.must == Must::TimeOut { SHORT } else { 20_000 };
            let came = tried(&sandbox, &attempt.name, timeout).await;
            found.extend(wrong(&attempt.must, &came).map(|what| format!("{}: {what}", attempt.name)));
            let after = tried(&sandbox, "a good call", 20_000).await;
            if after != Ok(json!("a good answer")) {
                found.push(format!("after {}: {after:?}", attempt.name));
            }
        }
        sandbox.close().await;
        assert!(found.is_empty(), "{}", found.join("\n"));
    });
}

fn is_deadly(attempt: &Attempt) -> bool {
    attempt.must == Must::Die
}

#[test]
fn what_only_an_attacker_does_ends_the_process() {
    try_all(takeover(), is_deadly);
}

#[test]
fn everything_else_comes_to_nothing() {
    try_all(takeover(), |attempt| !is_deadly(attempt));
}

/// The zygote refuses to be copied in the second case.
#[test]
fn a_generator_that_was_used_before_a_fork_is_noticed() {
    let told = std::process::Command::new(TAKEOVER).arg("copies").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), "true false\n", "{told:?}");
}

#[test]
fn memory_is_bounded_without_control_groups_too() {
    let is_of_memory = |attempt: &Attempt| ["memory", "pages"].iter().any(|word| attempt.name.contains(word));
    try_all_in(CgroupUse::None, takeover(), is_of_memory);
    try_all_in(CgroupUse::None, behind("unshare", &takeover()), is_of_memory);
}

#[test]
fn there_are_many_attempts_and_each_has_a_name_of_its_own() {
    let all = attempts();
    let names: BTreeSet<_> = all.iter().map(|attempt| &attempt.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(names.len() > 100, "{}", names.len());
}

#[test]
fn an_attempt_that_works_is_seen() {
    // The same program where the kernel gives nothing of the jail that matters here.
    let bare = behind("unshare,landlock,seccomp", &takeover());
    let all = attempts();
    block_on(async {
        let sandbox = started(bare, Level::Minimal).await.unwrap();
        for name in ["a socket on this machine", "the list of users", "who its parent is", "a file in memory"] {
            let attempt = all.iter().find(|attempt| attempt.name == name).unwrap();
            let came = tried(&sandbox, name, 20_000).await;
            assert!(came.as_ref().is_ok_and(|told| told["done"].is_i64()), "{name}: {came:?}");
            assert!(wrong(&attempt.must, &came).is_some(), "{name}");
        }
        let failure = tried(&sandbox, "no such attempt", 20_000).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::ToolNotFound);
        sandbox.close().await;
    });
}

#[test]
fn it_is_the_very_jail_of_the_worker() {
    let walls = |report: &Report| OF_THE_WORKER.map(|name| state(report, name));
    let of_the_worker = walls(shared().report());
    block_on(async {
        let sandbox = started(takeover(), Level::Strict).await.unwrap();
        assert_eq!(walls(sandbox.report()), of_the_worker);
        sandbox.close().await;
    });
}

fn state(report: &Report, name: &str) -> Option<ProtectionState> {
    report.protections.iter().find(|protection| protection.name == name).map(|protection| protection.state.clone())
}

fn stands(report: &Report, name: &str) -> bool {
    state(report, name) == Some(ProtectionState::Applied)
}

#[test]
fn without_namespaces_the_jail_still_holds() {
    block_on(async {
        let sandbox = started(behind("unshare", &worker()), Level::Strict).await.unwrap();
        let report = sandbox.report();
        for name in [names::USER_NAMESPACE, names::PROCESS_NAMESPACE, names::NETWORK_NAMESPACE, names::EMPTY_ROOT] {
            assert!(matches!(state(report, name), Some(ProtectionState::Unavailable(_))), "{name}");
        }
        assert!(stands(report, names::LANDLOCK) && stands(report, names::SECCOMP));
        let answer = run_in(&sandbox, invocation(&function("return 1 + 1"), Value::Null)).await;
        assert_eq!(answer.result.unwrap(), json!(2));
        sandbox.close().await;
    });
    try_all(behind("unshare", &takeover()), |_| true);
}

#[test]
fn where_the_zygote_cannot_be_copied_workers_are_started_and_the_jail_holds() {
    block_on(async {
        let sandbox = started(behind("copies", &worker()), Level::Strict).await.unwrap();
        assert!(stands(sandbox.report(), names::SECCOMP));
        for n in 1..=3 {
            let answer = run_in(&sandbox, invocation(&function("return input + 1"), json!(n))).await;
            assert_eq!(answer.result.unwrap(), json!(n + 1));
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
fn what_strict_calls_for_is_called_for() {
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
            // More is missing where the kernel refuses more by itself.
            for name in expected {
                assert!(missing.iter().any(|(found, _)| found == name), "{calls}: {missing:?}");
            }
        }
    });
}

#[test]
fn minimal_takes_what_there_is_and_says_what_is_missing() {
    block_on(async {
        let sandbox = started(behind("unshare,landlock,seccomp", &worker()), Level::Minimal).await.unwrap();
        assert_eq!(sandbox.report().missing().len(), 3);
        assert_eq!(sandbox.report().level, Level::Minimal);
        let answer = run_in(&sandbox, invocation(&function("return 1 + 1"), Value::Null)).await;
        assert_eq!(answer.result.unwrap(), json!(2));
        sandbox.close().await;
    });
}

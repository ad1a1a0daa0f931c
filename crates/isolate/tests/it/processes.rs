//! Worker processes: what they are given, how they die, how many there are.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use breadcrumb::ErrorCode;
use sandbox::{ApiCall, BodyStream, FetchRequest, FetchResponse, Invocation, OpError, Sandbox, SandboxOptions, World};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fixture::{NoWorld, block_on, function, invocation, run_in, start, worker};

/// Processes of this test's worker program whose parent is this process.
fn workers() -> BTreeSet<u32> {
    let program = std::fs::canonicalize(worker().program).unwrap();
    let me = std::process::id();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(me))
        .filter(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn small(options: &mut SandboxOptions) {
    options.max_workers = 1;
    options.spares = 0;
}

/// Tells when the tool has come to its op, and answers it when told.
#[derive(Default)]
struct Gate {
    reached: Notify,
    open: Notify,
}

#[async_trait]
impl World for Gate {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("TypeError", "no network"))
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        self.reached.notify_one();
        self.open.notified().await;
        Ok(json!("open"))
    }
}

const WAITS: &str = "return await context.api.getBreadcrumb('x')";

async fn waiting(sandbox: &Sandbox, gate: &Arc<Gate>, call: Invocation) -> Result<Value, breadcrumb::ToolFailure> {
    sandbox.run(call, gate.clone(), CancellationToken::new()).await.result
}

#[test]
fn a_worker_killed_in_the_middle_ends_only_its_call() {
    let failure = killed_by(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(failure.code, ErrorCode::ExecutionFailed);
    assert!(failure.message.contains("died"), "{failure}");
}

#[test]
fn a_worker_that_somebody_killed_did_not_run_out_of_memory() {
    let failure = killed_by(nix::sys::signal::Signal::SIGKILL);
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, true));
    assert!(failure.message.contains("was killed"), "{failure}");
}

fn killed_by(signal: nix::sys::signal::Signal) -> breadcrumb::ToolFailure {
    block_on(async {
        let before = workers();
        let sandbox = start(small).await;
        let gate = Arc::new(Gate::default());
        let kill = async {
            gate.reached.notified().await;
            let mine: Vec<u32> = workers().difference(&before).copied().collect();
            for pid in mine {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal);
            }
        };
        let (result, ()) = tokio::join!(waiting(&sandbox, &gate, invocation(&function(WAITS), Value::Null)), kill);
        let failure = result.unwrap_err();
        let next = run_in(&sandbox, invocation(&function("return 'next'"), Value::Null)).await;
        assert_eq!(next.result.unwrap(), "next");
        sandbox.close().await;
        failure
    })
}

#[test]
fn a_worker_has_one_socket_no_environment_and_no_files() {
    block_on(async {
        let before = workers();
        // What somebody left open, not marked to be closed on exec.
        let _stray = nix::unistd::dup(std::fs::File::open("/etc/hostname").unwrap()).unwrap();
        let sandbox = start(small).await;
        let gate = Arc::new(Gate::default());
        let look = async {
            gate.reached.notified().await;
            let pid = *workers().difference(&before).next().unwrap();
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            assert!(environ.is_empty(), "{}", String::from_utf8_lossy(&environ));
            let mut sockets = 0;
            for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
                let link = std::fs::read_link(entry.unwrap().path()).unwrap();
                let link = link.to_string_lossy().into_owned();
                let is_own = link.starts_with("anon_inode:") || link == "/dev/null" || link.starts_with("pipe:");
                if link.starts_with("socket:") {
                    sockets += 1;
                } else {
                    assert!(is_own || link.ends_with("/statm"), "{link}");
                }
            }
            // The socket once for each of its two directions.
            assert_eq!(sockets, 2);
            assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
            gate.open.notify_one();
        };
        let (result, ()) = tokio::join!(waiting(&sandbox, &gate, invocation(&function(WAITS), Value::Null)), look);
        assert_eq!(result.unwrap(), "open");
        sandbox.close().await;
    });
}

#[test]
fn twenty_calls_side_by_side() {
    block_on(async {
        let sandbox = Arc::new(
            start(|options| {
                options.max_workers = 20;
                options.spares = 1;
            })
            .await,
        );
        let calls: Vec<_> = (0..20)
            .map(|n| {
                let sandbox = sandbox.clone();
                tokio::spawn(async move {
                    let mut call = invocation(
                        &function("await new Promise((r) => setTimeout(r, 20)); return input * 2"),
                        json!(n),
                    );
                    call.owner_id = Uuid::from_u128(n % 5);
                    run_in(&sandbox, call).await.result.unwrap()
                })
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), json!(n * 2));
        }
        sandbox.close().await;
    });
}

#[test]
fn calls_wait_in_line_and_a_waiting_one_can_be_cancelled() {
    block_on(async {
        let sandbox = start(small).await;
        let gate = Arc::new(Gate::default());
        let cancel = CancellationToken::new();
        let behind = async {
            gate.reached.notified().await;
            let waits = sandbox.run(invocation(&function("return 1"), Value::Null), Arc::new(NoWorld), cancel.clone());
            let outcome = tokio::join!(waits, async { cancel.cancel() }).0;
            assert_eq!(outcome.result.unwrap_err().code, ErrorCode::Cancelled);
            let waits = run_in(&sandbox, invocation(&function("return 'second'"), Value::Null));
            let second = tokio::join!(waits, async { gate.open.notify_one() }).0;
            assert_eq!(second.result.unwrap(), "second");
        };
        let (first, ()) = tokio::join!(waiting(&sandbox, &gate, invocation(&function(WAITS), Value::Null)), behind);
        assert_eq!(first.unwrap(), "open");
        sandbox.close().await;
    });
}

#[test]
fn a_dropped_call_takes_its_worker_with_it() {
    block_on(async {
        let sandbox = start(small).await;
        let gate = Arc::new(Gate::default());
        {
            let call = waiting(&sandbox, &gate, invocation(&function(WAITS), Value::Null));
            tokio::select! {
                _ = call => panic!("the gate is shut"),
                () = gate.reached.notified() => {}
            }
        }
        let next = run_in(&sandbox, invocation(&function("return 'next'"), Value::Null)).await;
        assert_eq!(next.result.unwrap(), "next");
        sandbox.close().await;
    });
}

#[test]
fn closing_ends_every_worker_and_refuses_new_calls() {
    block_on(async {
        let before = workers();
        let sandbox = start(|options| options.spares = 2).await;
        run_in(&sandbox, invocation(&function("return 1"), Value::Null)).await.result.unwrap();
        let during: Vec<u32> = workers().difference(&before).copied().collect();
        assert!(!during.is_empty());
        sandbox.close().await;
        let outcome = run_in(&sandbox, invocation(&function("return 1"), Value::Null)).await;
        assert!(outcome.result.unwrap_err().is_retryable);
    });
}

#[test]
fn idle_workers_are_ended_and_replaced_when_needed() {
    block_on(async {
        let sandbox = start(|options| {
            small(options);
            options.idle = Duration::from_millis(1);
        })
        .await;
        for n in 0..3 {
            let outcome = run_in(&sandbox, invocation(&function("return input"), json!(n))).await;
            assert_eq!(outcome.result.unwrap(), json!(n));
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        sandbox.close().await;
    });
}

#[test]
fn a_program_that_is_no_worker_is_told_at_the_start() {
    block_on(async {
        let mut command = worker();
        command.program = "/bin/true".into();
        let error = Sandbox::start(SandboxOptions::new(command)).await.err().expect("no worker");
        assert!(error.to_string().contains("ended before it was ready"), "{error}");
        let mut command = worker();
        command.program = "/no/such/program".into();
        let error = Sandbox::start(SandboxOptions::new(command)).await.err().expect("no program");
        assert!(error.to_string().contains("cannot be started"), "{error}");
    });
}

//! How worker processes start and end, and which calls share one.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Isolation, ToolFailure};
use rcrt_sandbox::{Invocation, Sandbox, SandboxOptions};
use serde_json::{Value, json};
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{HAS_ZYGOTE, Program, WAITS, inner, waiting};
use crate::fixture::{Gate, NoHostOps, PATIENCE, block_on, function, invocation, run_in, start, worker};

#[test]
fn a_worker_killed_during_a_call_fails_only_that_call() {
    let failure = killed_by(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(failure.code, ErrorCode::ExecutionFailed);
    assert!(failure.message.contains("died"), "{failure}");
}

#[test]
fn a_worker_killed_from_outside_is_a_retryable_failure() {
    let failure = killed_by(nix::sys::signal::Signal::SIGKILL);
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, true));
    assert!(failure.message.contains("was killed"), "{failure}");
}

fn killed_by(signal: nix::sys::signal::Signal) -> ToolFailure {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|_| {}).await;
        let gate = Arc::new(Gate::default());
        let kill = async {
            gate.reached.notified().await;
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(program.worker() as i32), signal).unwrap();
        };
        let (result, ()) = tokio::join!(waiting(&sandbox, &gate, invocation(&function(WAITS), Value::Null)), kill);
        let failure = result.unwrap_err();
        let next = run_in(&sandbox, invocation(&function("return 'next'"), Value::Null)).await;
        assert_eq!(next.result.unwrap(), "next");
        sandbox.close().await;
        failure
    })
}

/// The worker, and the process in which the call ran.
async fn ran_in(sandbox: &Sandbox, program: &Program, call: Invocation) -> (u32, u32) {
    let gate = Arc::new(Gate::default());
    let look = async {
        gate.reached.notified().await;
        let worker = program.worker();
        gate.open.notify_one();
        (worker, inner(worker))
    };
    let (result, processes) = tokio::join!(waiting(sandbox, &gate, call), look);
    assert_eq!(result.unwrap(), "open");
    processes
}

#[test]
fn a_process_runs_one_call_or_the_calls_of_one_kept_isolate() {
    // On this machine isolates do not have their own processes.
    if !Path::new("/proc/thread-self/children").exists() {
        return;
    }
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|_| {}).await;
        let mut once = invocation(&function(WAITS), Value::Null);
        once.isolation = Isolation::Process;
        let mut kept = once.clone();
        kept.isolation = Isolation::Tool;
        let mut other = invocation(&function(&format!("{WAITS}; /* another */")), Value::Null);
        other.isolation = Isolation::Tool;
        let mut found = Vec::new();
        for call in [&once, &once, &kept, &kept, &other, &once] {
            found.push(ran_in(&sandbox, &program, call.clone()).await);
        }
        let (workers, processes): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        assert!(workers.iter().all(|worker| *worker == workers[0]), "{workers:?}");
        assert_eq!(processes[2], processes[3], "the kept isolate is in the same process");
        let different: BTreeSet<_> = processes.iter().collect();
        assert_eq!(different.len(), 5, "{processes:?}");
        sandbox.close().await;
    });
}

/// Native code that has taken over the worker and does not read its socket.
const TAKEOVER: &str = env!("CARGO_BIN_EXE_takeover");
/// Set by the test below, which runs this program again as a runner that it can kill.
const PROGRAM: &str = "RUNNER_TO_BE_KILLED";

#[test]
#[ignore = "plays the runner of the test below"]
fn a_runner_that_is_killed() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    let program = std::mem::ManuallyDrop::new(Program(program.into()));
    block_on(async {
        let sandbox = program.start(|_| {}).await;
        let gate = Arc::new(Gate::default());
        let ready = async {
            gate.reached.notified().await;
            let worker = program.worker();
            std::fs::write(program.0.with_extension("pids"), format!("{worker} {}", inner(worker))).unwrap();
            let mut line = std::io::stdout().lock();
            line.write_all(b"\nready\n").unwrap();
            std::future::pending::<()>().await;
        };
        let _ = tokio::join!(waiting(&sandbox, &gate, invocation("", json!("an op, then no exit"))), ready);
    });
}

#[test]
fn no_worker_outlives_a_runner_that_is_killed() {
    let program = Program::of(Path::new(TAKEOVER));
    let mut runner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::lifecycle::a_runner_that_is_killed", "--ignored", "--nocapture"])
        .env(PROGRAM, &program.0)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(runner.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    let pids = std::fs::read_to_string(program.0.with_extension("pids")).unwrap();
    std::fs::remove_file(program.0.with_extension("pids")).unwrap();
    let held: Vec<_> = pids.split(' ').map(|pid| hold(pid.parse().unwrap())).collect();
    runner.kill().unwrap();
    runner.wait().unwrap();
    block_on(async {
        for process in held {
            // Readable when the process has exited.
            // SAFETY: the descriptor is moved into the result and stays open as long as it.
            #[allow(unsafe_code)]
            let process = unsafe { AsyncFd::register(process) }.unwrap();
            let ended = tokio::time::timeout(PATIENCE, process.readable()).await;
            assert!(ended.is_ok(), "{pids}");
        }
    });
}

fn hold(pid: i32) -> OwnedFd {
    rustix::process::pidfd_open(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::PidfdFlags::empty())
        .unwrap()
}

#[test]
fn twenty_calls_run_at_the_same_time() {
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
fn cancelling_a_call_while_its_isolate_is_created_keeps_the_worker() {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.grace = Duration::from_secs(30)).await;
        let worker = program.worker();
        // The isolate that is ready was created with another limit.
        let mut call = invocation(&function("for (;;);"), Value::Null);
        call.limits.memory_mb = 200;
        let cancel = CancellationToken::new();
        let run = sandbox.run(call, Arc::new(NoHostOps), cancel.clone());
        let outcome = tokio::join!(run, async { cancel.cancel() }).0;
        assert_eq!(outcome.result.unwrap_err().code, ErrorCode::Cancelled);
        assert_eq!(program.worker(), worker);
        sandbox.close().await;
    });
}

#[test]
fn calls_are_queued_and_a_queued_one_can_be_cancelled() {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|_| {}).await;
        let gate = Arc::new(Gate::default());
        let cancel = CancellationToken::new();
        let behind = async {
            gate.reached.notified().await;
            let waits =
                sandbox.run(invocation(&function("return 1"), Value::Null), Arc::new(NoHostOps), cancel.clone());
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
fn dropping_a_call_kills_its_worker() {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|_| {}).await;
        let gate = Arc::new(Gate::default());
        {
            let call = waiting(&sandbox, &gate, invocation(&function(WAITS), Value::Null));
            tokio::select! {
                _ = call => panic!("the gate is closed"),
                () = gate.reached.notified() => {}
            }
        }
        let next = run_in(&sandbox, invocation(&function("return 'next'"), Value::Null)).await;
        assert_eq!(next.result.unwrap(), "next");
        sandbox.close().await;
    });
}

#[test]
fn closing_stops_every_worker_and_refuses_new_calls() {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.spares = 2).await;
        run_in(&sandbox, invocation(&function("return 1"), Value::Null)).await.result.unwrap();
        assert!(!program.workers().is_empty());
        assert_eq!(program.zygote().is_some(), HAS_ZYGOTE);
        sandbox.close().await;
        assert_eq!((program.workers(), program.zygote()), (BTreeSet::new(), None));
        let outcome = run_in(&sandbox, invocation(&function("return 1"), Value::Null)).await;
        assert!(outcome.result.unwrap_err().is_retryable);
    });
}

#[test]
fn idle_workers_are_stopped_and_replaced_when_needed() {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.idle = Duration::from_millis(1)).await;
        for n in 0..3 {
            let outcome = run_in(&sandbox, invocation(&function("return input"), json!(n))).await;
            assert_eq!(outcome.result.unwrap(), json!(n));
            let ended = async {
                while !program.workers().is_empty() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(PATIENCE, ended).await.expect("the worker ends");
        }
        sandbox.close().await;
    });
}

#[test]
fn a_program_that_is_not_a_worker_fails_the_start() {
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

//! Worker processes: what they inherit, how they die, and how many there are.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Isolation};
use rcrt_sandbox::level::names;
use rcrt_sandbox::{Invocation, ProtectionState, Sandbox, SandboxOptions};
use serde_json::{Value, json};
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fixture::{Gate, NoHostOps, ZYGOTE, block_on, function, invocation, run_in, start, worker};

/// The worker program under a unique name, which distinguishes its processes from those of other
/// tests.
struct Program(PathBuf);

impl Program {
    fn new() -> Self {
        Self::of(&worker().program)
    }

    fn of(program: &Path) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).canonicalize().unwrap().join(Uuid::new_v4().to_string());
        std::fs::hard_link(program, &path).unwrap();
        Self(path)
    }

    /// A sandbox with one worker.
    async fn start(&self, change: impl FnOnce(&mut SandboxOptions)) -> Sandbox {
        start(|options| {
            options.worker.program.clone_from(&self.0);
            options.max_workers = 1;
            options.spares = 0;
            change(options);
        })
        .await
    }

    /// Its processes that are children of this process.
    fn workers(&self) -> BTreeSet<u32> {
        // The process name is all that its user sees of a process that is not dumpable.
        let own = &self.0.file_name().unwrap().to_str().unwrap()[..15];
        children(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == own))
    }

    /// The zygote of its workers, if there is one.
    fn zygote(&self) -> Option<u32> {
        let own = self.0.as_os_str().as_encoded_bytes();
        loop {
            let mut zygotes = children(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(own))
                    && std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == ZYGOTE)
            });
            // A new worker has this name too until it restores its own.
            if zygotes.len() <= 1 {
                return zygotes.pop_first();
            }
            std::thread::yield_now();
        }
    }

    fn worker(&self) -> u32 {
        let workers = self.workers();
        assert_eq!(workers.len(), 1);
        workers.into_iter().next().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The children of this process.
fn children(is_wanted: impl Fn(u32) -> bool) -> BTreeSet<u32> {
    let me = std::process::id();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(me) && is_wanted(*pid))
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

const WAITS: &str = "return await context.api.getBreadcrumb('x')";

async fn waiting(sandbox: &Sandbox, gate: &Arc<Gate>, call: Invocation) -> Result<Value, rcrt_breadcrumb::ToolFailure> {
    sandbox.run(call, gate.clone(), CancellationToken::new()).await.result
}

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

fn killed_by(signal: nix::sys::signal::Signal) -> rcrt_breadcrumb::ToolFailure {
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

/// The process that runs tool code: the last in a chain of only children.
fn inner(worker: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{worker}/task/{worker}/children")).unwrap();
    children.split_whitespace().next().map_or(worker, |pid| inner(pid.parse().unwrap()))
}

fn status(pid: u32) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    text.lines().filter_map(|line| line.split_once(":\t")).map(|(name, value)| (name.into(), value.into())).collect()
}

/// Whether details of the process are visible. For a process that is not dumpable only the
/// superuser sees them. `takeover` tests what native code sees from within.
fn is_transparent(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok()
}

/// Runs a call that waits, and inspects its worker from outside meanwhile.
fn while_it_waits(look: impl FnOnce(&Sandbox, u32)) {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|_| {}).await;
        let gate = Arc::new(Gate::default());
        let look = async {
            gate.reached.notified().await;
            look(&sandbox, program.worker());
            gate.open.notify_one();
        };
        let (result, ()) = tokio::join!(waiting(&sandbox, &gate, invocation(&function(WAITS), Value::Null)), look);
        assert_eq!(result.unwrap(), "open");
        sandbox.close().await;
    });
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
        let once = invocation(&function(WAITS), Value::Null);
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

#[test]
fn a_worker_has_one_socket_no_environment_and_no_files() {
    // A stray descriptor that is not closed on exec.
    let _stray = nix::unistd::dup(std::fs::File::open("/etc/hostname").unwrap()).unwrap();
    while_it_waits(|_, worker| {
        let pid = inner(worker);
        if !is_transparent(pid) {
            return;
        }
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(environ.is_empty(), "{}", String::from_utf8_lossy(&environ));
        assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
        assert_eq!(std::fs::read_dir(format!("/proc/{pid}/root")).unwrap().count(), 0);
        let mut sockets = 0;
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
            let link = std::fs::read_link(entry.unwrap().path()).unwrap();
            let link = link.to_string_lossy().into_owned();
            let is_own = link == "/dev/null" || link.starts_with("pipe:") || link.ends_with("/statm");
            if link.starts_with("socket:") {
                sockets += 1;
            } else {
                assert!(is_own, "{link}");
            }
        }
        // One socket descriptor for each direction.
        assert_eq!(sockets, 2);
    });
}

#[test]
fn the_keeper_has_no_descriptors_and_is_restricted_too() {
    while_it_waits(|_, worker| {
        if inner(worker) == worker {
            return;
        }
        if is_transparent(worker) {
            assert_eq!(std::fs::read_dir(format!("/proc/{worker}/fd")).unwrap().count(), 0);
        }
        let keeper = status(worker);
        assert_eq!((&*keeper["Seccomp"], &*keeper["NoNewPrivs"], &*keeper["CapEff"]), ("2", "1", "0000000000000000"));
        assert_eq!(keeper["Threads"], "1");
    });
}

#[test]
fn the_report_matches_the_state_in_the_kernel() {
    while_it_waits(|sandbox, worker| {
        let report = sandbox.report();
        let is_in_force = |name: &str| {
            report.protections.iter().any(|found| found.name == name && found.state == ProtectionState::Applied)
        };
        let inner = inner(worker);
        let found = status(inner);
        assert_eq!(found["Seccomp"], "2");
        assert_eq!(found["NoNewPrivs"], "1");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(found[set], "0000000000000000", "{set}");
        }
        let mine = |kind: &str| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let theirs = |kind: &str| std::fs::read_link(format!("/proc/{inner}/ns/{kind}")).unwrap();
        for (name, kind) in [
            (names::USER_NAMESPACE, "user"),
            (names::MOUNT_NAMESPACE, "mnt"),
            (names::PROCESS_NAMESPACE, "pid"),
            (names::IPC_NAMESPACE, "ipc"),
            (names::HOST_NAME_NAMESPACE, "uts"),
            (names::NETWORK_NAMESPACE, "net"),
            (names::CGROUP_NAMESPACE, "cgroup"),
        ] {
            if is_transparent(inner) {
                assert_eq!(mine(kind) != theirs(kind), is_in_force(name), "{name}");
            }
        }
        assert_eq!(inner != worker, is_in_force(names::PROCESS_NAMESPACE));
        if is_in_force(names::USER_NAMESPACE) {
            assert_eq!(found["CapBnd"], "0000000000000000");
        }
        if is_in_force(names::ORDINARY_USER) {
            assert!(!found["Uid"].split('\t').any(|id| id == "0"), "{}", found["Uid"]);
        }
        let limits = std::fs::read_to_string(format!("/proc/{inner}/limits")).unwrap();
        let limit = |name: &str| {
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
        };
        for name in ["Max core file size", "Max file size", "Max locked memory", "Max msgqueue size"] {
            assert_eq!(limit(name), ["0", "0"], "{name}");
        }
        assert_eq!(limit("Max open files"), ["32", "32"]);
        assert_eq!(limit("Max pending signals"), ["64", "64"]);
        let stack = limit("Max stack size");
        assert!(stack.iter().all(|bytes| bytes.parse::<u64>().is_ok_and(|bytes| bytes <= 8 << 20)), "{stack:?}");
        let goes_first = std::fs::read_to_string(format!("/proc/{inner}/oom_score_adj")).unwrap();
        assert_eq!(goes_first.trim(), "1000");
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
        .args(["--exact", "processes::a_runner_that_is_killed", "--ignored", "--nocapture"])
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
            let ended = tokio::time::timeout(Duration::from_secs(20), process.readable()).await;
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

/// Whether workers are forked from a zygote here.
const HAS_ZYGOTE: bool = cfg!(target_os = "linux");

fn of_tenant(number: u128, body: &str) -> Invocation {
    Invocation { owner_id: Uuid::from_u128(number), ..invocation(&function(body), Value::Null) }
}

#[test]
fn a_killed_zygote_is_replaced_and_its_workers_continue() {
    if !HAS_ZYGOTE {
        return;
    }
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.max_workers = 2).await;
        let first = program.zygote().unwrap();
        let once = of_tenant(1, "return 1");
        run_in(&sandbox, once.clone()).await.result.unwrap();
        let worker = program.worker();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(first as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
        assert_eq!(run_in(&sandbox, once).await.result.unwrap(), 1);
        assert_eq!(program.worker(), worker);
        assert_eq!(run_in(&sandbox, of_tenant(2, "return 2")).await.result.unwrap(), 2);
        assert!(program.workers().contains(&worker));
        let second = program.zygote().unwrap();
        assert_ne!(first, second);
        sandbox.close().await;
    });
}

#[test]
fn the_zygote_inherits_nothing_and_leads_its_own_session() {
    if !HAS_ZYGOTE {
        return;
    }
    while_it_waits(|_, worker| {
        let found = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            (name.trim() == ZYGOTE && parent_of(pid) == parent_of(worker)).then_some(pid)
        });
        let zygotes: Vec<_> = found.collect();
        assert!(!zygotes.is_empty());
        for zygote in zygotes {
            assert_eq!(status(zygote)["Threads"], "1");
            assert!(std::fs::read(format!("/proc/{zygote}/environ")).unwrap().is_empty());
            let session = nix::unistd::getsid(Some(nix::unistd::Pid::from_raw(zygote as i32))).unwrap();
            assert_eq!(session.as_raw() as u32, zygote);
            let open: BTreeSet<_> = std::fs::read_dir(format!("/proc/{zygote}/fd"))
                .unwrap()
                .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().to_str().unwrap().to_owned())
                .map(|link| link.split(':').next().unwrap().to_owned())
                .collect();
            assert_eq!(open, BTreeSet::from(["/dev/null", "pipe", "socket"].map(str::to_owned)));
        }
    });
}

/// The difference of two numbers modulo 1, as an integer in `[0, 1e9)`.
fn apart(one: &Value, other: &Value) -> i64 {
    let difference = one.as_f64().unwrap() - other.as_f64().unwrap();
    (difference.rem_euclid(1.0) * 1e9).round() as i64 % 1_000_000_000
}

#[test]
fn random_numbers_of_two_processes_are_unrelated() {
    const DRAWN: usize = 64;
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.max_workers = 3).await;
        let draw = format!("return Array.from({{ length: {DRAWN} }}, () => Math.random())");
        let mut drawn = Vec::new();
        for tenant in 1..=3 {
            for _ in 0..2 {
                let numbers = run_in(&sandbox, of_tenant(tenant, &draw)).await.result.unwrap();
                let numbers = numbers.as_array().unwrap().clone();
                assert!(numbers.iter().all(|number| (0.0..1.0).contains(&number.as_f64().unwrap())));
                drawn.push(numbers);
            }
        }
        // Not the same sequence with an offset, and not one that is shifted by a constant.
        for (at, one) in drawn.iter().enumerate() {
            for other in &drawn[at + 1..] {
                for lag in 0..DRAWN / 2 {
                    for (one, other) in [(one, other), (other, one)] {
                        let apart: BTreeSet<i64> =
                            one[lag..].iter().zip(other).map(|(one, other)| apart(one, other)).collect();
                        assert!(apart.len() > (DRAWN - lag) / 2, "{lag}: {apart:?}");
                    }
                }
            }
        }
        sandbox.close().await;
    });
}

/// The first numbers of each generator. A generator that was used before the fork would return the
/// same next numbers in all processes.
#[test]
fn forked_workers_draw_different_numbers() {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.max_workers = 3).await;
        let draw =
            "const bytes = crypto.getRandomValues(new Uint8Array(8)); const key = await crypto.subtle.generateKey(
            { name: 'AES-GCM', length: 128 }, true, ['encrypt']);
            const text = async (form, key) => new Uint8Array(await crypto.subtle.exportKey(form, key)).join();
            const hmac = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, true, ['sign']);
            const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
            const other = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify']);
            return [Math.random(), crypto.randomUUID(), bytes.join(), await text('raw', key), await text('raw', hmac),
              await text('pkcs8', pair.privateKey), await text('pkcs8', other.privateKey)]";
        let mut seen = BTreeSet::new();
        for tenant in 1..=3 {
            for _ in 0..2 {
                let drawn = run_in(&sandbox, of_tenant(tenant, draw)).await.result.unwrap();
                for one in drawn.as_array().unwrap() {
                    assert!(seen.insert(one.to_string()), "{one} twice");
                }
            }
        }
        sandbox.close().await;
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
            tokio::time::timeout(Duration::from_mins(1), ended).await.expect("the worker ends");
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

//! No process is left when a call ends: by itself, by timeout, by cancellation, or with the runner.

use std::process::Stdio;
use std::time::Duration;

use rcrt_breadcrumb::ErrorCode;
use rcrt_executors::Executor;
use rcrt_jail::command::{CommandLimits, CommandSpec, ExitReason, Helper, Jail, JailError};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fixture::{Cell, ROLE, Tools, failed, helper, needs_the_jail, part, processes_with, until};

/// A command line that no other process on this machine has.
fn sleeper() -> String {
    let id = Uuid::new_v4().as_u128() % 1_000_000_000_000;
    format!("sleep 9{id:012}")
}

/// Ways to leave a process behind. `SLEEP` is that process.
const DAEMONS: [&str; 8] = [
    "SLEEP &",
    "SLEEP >/dev/null 2>&1 </dev/null & disown",
    "nohup SLEEP >/dev/null 2>&1 &",
    "setsid SLEEP >/dev/null 2>&1 &",
    "(setsid bash -c 'setsid SLEEP >/dev/null 2>&1 & exit' &) ; sleep 0.2",
    "(trap '' TERM HUP INT QUIT USR1; SLEEP) &",
    "SLEEP & kill -STOP $!",
    "perl -e 'fork and exit; use POSIX; setsid; fork and exit; exec qw(SLEEP)' || (setsid SLEEP &)",
];

#[tokio::test]
async fn no_daemon_survives_a_call() {
    needs_the_jail!();
    let cell = Cell::open().await;
    for daemon in DAEMONS {
        let sleeper = sleeper();
        let finished = cell.run(&cell.shell(&format!("{}\necho left", daemon.replace("SLEEP", &sleeper)))).await;
        assert_eq!(finished.stdout.text(), "left\n", "{daemon} {}", finished.stderr.text());
        // Immediately: the result comes after the last process ended.
        assert_eq!(processes_with(&sleeper), Vec::<String>::new(), "{daemon}");
    }
}

#[tokio::test]
async fn daemon_runs_until_the_call_ends() {
    // This shows that the test above looks in the right place.
    needs_the_jail!();
    let cell = Cell::open().await;
    let sleeper = sleeper();
    let order =
        cell.shell(&format!("setsid {sleeper} >/dev/null 2>&1 & touch ready; until [ -e go ]; do sleep 0.02; done"));
    let seen = async {
        until("the daemon", || cell.work().join("ready").exists() && !processes_with(&sleeper).is_empty()).await;
        std::fs::write(cell.work().join("go"), "").unwrap();
    };
    let (finished, ()) = tokio::join!(cell.run(&order), seen);
    assert_eq!(finished.how, ExitReason::Exited(0));
    assert_eq!(processes_with(&sleeper), Vec::<String>::new());
}

#[tokio::test]
async fn program_that_ignores_signals_is_killed_at_the_timeout() {
    needs_the_jail!();
    let cell = Cell::open().await;
    for deaf in [
        "trap '' TERM HUP INT QUIT; SLEEP & while :; do wait; done",
        "SLEEP & kill -STOP $$",
        "exec SLEEP >/dev/null 2>&1",
    ] {
        let sleeper = sleeper();
        let mut order = cell.shell(&deaf.replace("SLEEP", &sleeper));
        order.bounds.time = Duration::from_secs(1);
        assert_eq!(cell.run(&order).await.how, ExitReason::OutOfTime, "{deaf}");
        assert_eq!(processes_with(&sleeper), Vec::<String>::new(), "{deaf}");
    }
}

#[tokio::test]
async fn cancelled_call_kills_all_its_processes() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let sleeper = sleeper();
    let command = format!("trap '' TERM; setsid {sleeper} & {sleeper} & touch ready; wait");
    let call = tools.call("bash", json!({"command": command, "timeout_seconds": 600}));
    let cancel = CancellationToken::new();
    let cancelling = async {
        until("the command", || tools.work().join("ready").exists() && processes_with(&sleeper).len() >= 2).await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(tools.executor.execute(call, cancel.clone()), cancelling);
    failed(output.result, ErrorCode::Cancelled);
    tools.jail.ended().await;
    assert_eq!(processes_with(&sleeper), Vec::<String>::new());
    assert_eq!(tools.bash("echo next").await, "next\n");
}

#[tokio::test]
#[ignore = "the part of a runner, for the test below"]
#[allow(clippy::print_stdout)]
async fn a_runner() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let cell = Cell::open().await;
    let sleeper = std::env::var("RCRT_TEST_SLEEPER").unwrap();
    let mut order = cell.shell(&format!("setsid {sleeper} & touch ready; {sleeper}"));
    order.bounds.time = Duration::from_mins(10);
    let ready = cell.work().join("ready");
    let announcement = async {
        until("the command", || ready.exists() && processes_with(&sleeper).len() >= 2).await;
        println!("\nready in {}", cell.folders.path().display());
        std::future::pending::<()>().await;
    };
    tokio::join!(cell.run(&order), announcement);
}

#[tokio::test]
async fn a_killed_runner_leaves_nothing_running() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    needs_the_jail!();
    let sleeper = sleeper();
    let mut runner = tokio::process::Command::from(part(&std::env::current_exe().unwrap(), "endings::a_runner"))
        .env("RCRT_TEST_SLEEPER", &sleeper)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(runner.stdout.take().unwrap()).lines();
    let folder = loop {
        let line = lines.next_line().await.unwrap().expect("the runner tells that it is ready");
        if let Some(folder) = line.strip_prefix("ready in ") {
            break folder.to_owned();
        }
    };
    assert!(processes_with(&sleeper).len() >= 2);
    runner.kill().await.unwrap();
    until("the end of what the runner ran", || processes_with(&sleeper).is_empty()).await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn killed_helper_kills_its_program() {
    needs_the_jail!();
    let cell = Cell::open().await;
    // Under a unique name, so that it can be found among others.
    let copy = cell.folders.path().join(format!("helper-{}", Uuid::new_v4()));
    std::fs::copy(helper().program, &copy).unwrap();
    let jail = Jail::open(Helper { program: copy.clone(), arguments: Vec::new() }).await;
    let sleeper = sleeper();
    let mut order = cell.shell(&format!("setsid {sleeper} & touch ready; {sleeper}"));
    order.bounds.time = Duration::from_mins(10);
    let name = copy.display().to_string();
    let killing = async {
        until("the command", || cell.work().join("ready").exists() && processes_with(&sleeper).len() >= 2).await;
        for id in std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).starts_with(&name) {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL);
            }
        }
    };
    let (ended, ()) = tokio::join!(jail.run(&order), killing);
    assert!(matches!(ended, Err(JailError::Broken(_))), "{ended:?}");
    until("the end of the command", || processes_with(&sleeper).is_empty()).await;
}

#[tokio::test]
async fn calls_dropped_at_any_time_leave_no_process() {
    needs_the_jail!();
    let cell = Cell::open().await;
    let sleeper = sleeper();
    for wait in (0..60).step_by(3) {
        let order = CommandSpec {
            bounds: CommandLimits { time: Duration::from_mins(10), ..CommandLimits::default() },
            ..cell.shell(&sleeper)
        };
        let dropped = tokio::time::timeout(Duration::from_millis(wait), cell.jail.run(&order)).await;
        assert!(dropped.is_err());
    }
    cell.jail.ended().await;
    assert_eq!(processes_with(&sleeper), Vec::<String>::new());
}

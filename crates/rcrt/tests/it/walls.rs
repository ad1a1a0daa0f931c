//! What an operator is told of the walls around tools, on this kernel and on one that refuses them.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt};

/// What a container or an old kernel may keep back.
const REFUSED: [i64; 5] = [
    libc::SYS_unshare,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// The command under a kernel that answers EPERM to these calls, as a container's filter would.
#[allow(unsafe_code)]
fn refused(mut command: Command) -> Command {
    let rules: BTreeMap<_, _> = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let eperm = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, eperm, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    // SAFETY: between fork and exec only two system calls are made, on memory that was filled before the fork.
    unsafe {
        command.pre_exec(move || seccompiler::apply_filter(&program).map_err(|_| std::io::Error::last_os_error()));
    }
    command
}

fn doctor(more: &[&str]) -> Command {
    let folder = TempDir::new().unwrap();
    let mut command = rcrt();
    command.args(["doctor", "--output", "json", "--data"]).arg(folder.path()).args(more);
    command
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

fn state<'r>(report: &'r Value, name: &str) -> &'r Value {
    let walls = report["sandbox"]["protections"].as_array().unwrap();
    &walls.iter().find(|wall| wall["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"))["state"]
}

#[test]
fn doctor_says_what_stands_and_what_of_it_is_required() {
    let report = Ran::of(doctor(&[]).output().unwrap()).ends_with(0).json();
    let sandbox = &report["sandbox"];
    assert_eq!((&sandbox["level"], &sandbox["is_enough"]), (&"strict".into(), &true.into()), "{report}");
    assert_eq!(names(&sandbox["missing"]), Vec::<&str>::new());
    for name in ["no inherited descriptors", "no new privileges", "seccomp", "resource limits", "parent death signal"] {
        assert_eq!(state(&report, name), "applied");
    }
    let seccomp = sandbox["protections"].as_array().unwrap().iter().find(|wall| wall["name"] == "seccomp").unwrap();
    assert!(seccomp["required_for"].as_array().unwrap().contains(&"seccomp".into()), "{seccomp}");
    for (name, controller) in [("memory cgroup", "memory"), ("cpu cgroup", "cpu"), ("processes cgroup", "pids")] {
        let places = sandbox["cgroups"].as_array().unwrap();
        let place = places.iter().find(|place| place["controllers"].as_array().unwrap().contains(&controller.into()));
        assert_eq!(place.is_some(), *state(&report, name) == "applied", "{name}: {report}");
        assert!(place.is_none_or(|place| std::path::Path::new(place["folder"].as_str().unwrap()).is_dir()), "{report}");
    }
    // The engine cannot be stopped everywhere.
    let left = report["engine"]["left_to_process"].to_string();
    assert!(left.contains("timeout_ms") && !left.contains("memory"), "{report}");
}

#[test]
fn doctor_under_a_kernel_that_refuses_ends_with_1_and_says_what_is_missing() {
    let report = Ran::of(refused(doctor(&[])).output().unwrap()).ends_with(1).json();
    let sandbox = &report["sandbox"];
    assert_eq!(sandbox["is_enough"], false, "{report}");
    let missing = names(&sandbox["missing"]);
    for name in ["seccomp", "no files", "no network"] {
        assert!(missing.contains(&name), "{name} is not among {missing:?}");
    }
    assert!(!missing.contains(&"no inherited descriptors"), "{missing:?}");
    assert!(state(&report, "seccomp")["unavailable"].is_string(), "{report}");
    assert!(state(&report, "landlock")["unavailable"].is_string(), "{report}");
    assert_eq!(state(&report, "no inherited descriptors"), "applied");

    // The operator may say that this is enough, and is told what is missing all the same.
    let mut minimal = doctor(&[]);
    minimal.env("RCRT_SANDBOX", "minimal");
    let lowered = Ran::of(refused(minimal).output().unwrap()).ends_with(0).json();
    assert_eq!(lowered["sandbox"]["level"], "minimal");
    assert_eq!(names(&lowered["sandbox"]["missing"]), missing);

    let mut text = rcrt();
    text.args(["doctor", "--data", "/nowhere"]);
    let text = Ran::of(refused(text).output().unwrap()).ends_with(1).stdout;
    assert!(text.contains("NOT in force") && text.contains("Required, but not available on this machine"), "{text}");
    assert!(text.contains("--sandbox minimal"), "{text}");
}

#[test]
fn a_runner_refuses_to_run_tools_without_what_is_required_unless_told_by_name() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    server.run(&["bootstrap"]).ends_with(0);

    let ran = Ran::of(refused(server.command(&["runner"])).output().unwrap()).ends_with(1);
    for part in ["tools are not run here", "seccomp", "no files", "`--sandbox minimal`", "rcrt doctor"] {
        assert!(ran.stderr.contains(part), "{part} is not in {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("the runner is ready"), "{}", ran.stderr);

    let said = at_work(&server, refused(server.command(&["runner", "--sandbox", "minimal"])));
    assert!(said.contains("SANDBOX LOWERED") && said.contains("seccomp"), "{said}");
    assert!(said.contains("tools run in a sandbox") && said.contains("no inherited descriptors"), "{said}");

    // Where nothing is missing nothing is lowered, and the start-up log says what stands.
    let said = at_work(&server, server.command(&["runner"]));
    assert!(said.contains("level=strict") && said.contains("seccomp") && !said.contains("LOWERED"), "{said}");
    let said = at_work(&server, server.command(&["runner", "--sandbox", "minimal"]));
    assert!(said.contains("strict would start too") && !said.contains("LOWERED"), "{said}");
    server.stop();
}

/// Starts a runner, has it answer a call, stops it. Gives all that it said.
fn at_work(server: &Running, mut command: Command) -> String {
    let mut runner: Child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(runner.stderr.take().unwrap());
    let said = std::thread::spawn(move || stderr.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n"));
    let response = server.json(&["call", "calculator", r#"{"expression": "6 * 7"}"#]);
    assert_eq!(response["output"]["result"], 42, "{response}");
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    let status = runner.wait().unwrap();
    let said = said.join().unwrap();
    assert_eq!(status.code(), Some(0), "{said}");
    said
}

//! How an operator sees the protections around tools, on this kernel and on one that refuses them.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt};

/// System calls that a container or an old kernel can refuse.
const REFUSED: [i64; 5] = [
    libc::SYS_unshare,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// Runs the command with these system calls failing with EPERM, as with a container's filter.
#[allow(unsafe_code)]
pub fn refused(mut command: Command) -> Command {
    let rules: BTreeMap<_, _> = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let eperm = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, eperm, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    // SAFETY: between fork and exec only two system calls are made, on memory that was filled
    // before the fork.
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
    let protections = report["sandbox"]["protections"].as_array().unwrap();
    let found = protections.iter().find(|protection| protection["name"] == name);
    &found.unwrap_or_else(|| panic!("no {name}: {report}"))["state"]
}

#[test]
fn doctor_shows_which_protections_are_in_force_and_required() {
    let report = Ran::of(doctor(&[]).output().unwrap()).ends_with(0).json();
    let sandbox = &report["sandbox"];
    assert_eq!((&sandbox["level"], &sandbox["is_enough"]), (&"strict".into(), &true.into()), "{report}");
    assert_eq!(names(&sandbox["missing"]), Vec::<&str>::new());
    for name in ["no inherited descriptors", "no new privileges", "seccomp", "resource limits", "parent death signal"] {
        assert_eq!(state(&report, name), "applied");
    }
    let seccomp =
        sandbox["protections"].as_array().unwrap().iter().find(|protection| protection["name"] == "seccomp").unwrap();
    assert!(seccomp["required_for"].as_array().unwrap().contains(&"seccomp".into()), "{seccomp}");
    for (name, controller) in [("memory cgroup", "memory"), ("cpu cgroup", "cpu"), ("processes cgroup", "pids")] {
        let groups = sandbox["cgroups"].as_array().unwrap();
        let group = groups.iter().find(|group| group["controllers"].as_array().unwrap().contains(&controller.into()));
        assert_eq!(group.is_some(), *state(&report, name) == "applied", "{name}: {report}");
        assert!(group.is_none_or(|group| std::path::Path::new(group["folder"].as_str().unwrap()).is_dir()), "{report}");
    }
    // The engine cannot be interrupted at every point.
    let left = report["engine"]["left_to_process"].to_string();
    assert!(left.contains("timeout_ms") && !left.contains("memory"), "{report}");
}

#[test]
fn doctor_fails_and_names_the_missing_protections_on_such_a_kernel() {
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

    // The operator can accept this with `--sandbox minimal`, and still sees what is missing.
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
fn a_runner_needs_the_required_protections_unless_minimal_is_set() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    server.run(&["bootstrap"]).ends_with(0);

    let ran = Ran::of(refused(server.command(&["runner"])).output().unwrap()).ends_with(1);
    for part in ["tools cannot run on this machine", "seccomp", "no files", "`--sandbox minimal`", "rcrt doctor"] {
        assert!(ran.stderr.contains(part), "{part} is not in {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("the runner is ready"), "{}", ran.stderr);

    let log = log_of_runner(&server, refused(server.command(&["runner", "--sandbox", "minimal"])));
    assert!(log.contains("SANDBOX LOWERED") && log.contains("seccomp"), "{log}");
    assert!(log.contains("tools run in a sandbox") && log.contains("no inherited descriptors"), "{log}");

    // If nothing is missing, nothing is lowered, and the log of the start lists the protections.
    let log = log_of_runner(&server, server.command(&["runner"]));
    assert!(log.contains("level=strict") && log.contains("seccomp") && !log.contains("LOWERED"), "{log}");
    let log = log_of_runner(&server, server.command(&["runner", "--sandbox", "minimal"]));
    assert!(log.contains("strict would start too") && !log.contains("LOWERED"), "{log}");
    server.stop();
}

#[test]
fn every_call_has_a_process_if_the_operator_says_so() {
    let source =
        "globalThis.calls ??= 0;\nexport async function execute() {\n  return { calls: globalThis.calls += 1 };\n}\n";
    let counts = |server: &Running, name: &str| -> Vec<u64> {
        let call = || server.json(&["call", name, "{}"])["output"]["calls"].as_u64().unwrap();
        (0..3).map(|_| call()).collect()
    };
    for (arguments, of_tool) in [(&["--isolation", "process"][..], [1, 1, 1]), (&[], [1, 2, 3])] {
        let folder = TempDir::new().unwrap();
        let up = ["up", "--listen", "127.0.0.1:0", "--max-calls", "1"];
        let up = Running::start(&folder.path().join("data"), &[&up[..], arguments].concat());
        for isolation in ["call", "tool"] {
            let tool = json!({"title": isolation, "schema_name": "tool.code.v1", "tags": ["tool"], "context": {
                "name": format!("per_{isolation}"), "description": "Counts its calls", "isolation": isolation,
                "code": {"language": "javascript", "source": source},
                "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
                "examples": [{"description": "Nothing in", "input": {}, "explanation": "It needs no input"}]}});
            up.post("/breadcrumbs", &tool);
        }
        assert_eq!(counts(&up, "per_call"), [1, 1, 1], "{arguments:?}");
        assert_eq!(counts(&up, "per_tool"), of_tool, "{arguments:?}");
        assert_eq!(up.stop().0.code(), Some(0));
    }
}

/// Starts a runner, makes a call, and stops the runner. Returns its log.
fn log_of_runner(server: &Running, mut command: Command) -> String {
    let mut runner: Child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(runner.stderr.take().unwrap());
    let log = std::thread::spawn(move || stderr.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n"));
    let response = server.json(&["call", "calculator", r#"{"expression": "6 * 7"}"#]);
    assert_eq!(response["output"]["result"], 42, "{response}");
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    let status = runner.wait().unwrap();
    let log = log.join().unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    log
}

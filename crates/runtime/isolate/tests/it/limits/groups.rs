//! Control groups of real workers: their limits, kills by the kernel, and their removal. The tests
//! do nothing on a machine on which groups cannot be created.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcrt_breadcrumb::ErrorCode;
use rcrt_sandbox::{CgroupUse, ProtectionState, level::names};
use serde_json::{Value, json};

use super::watched::{PASSES_THE_GATE, Watched};
use crate::fixture::{COPIED_WORKER, block_on, function, invocation, run_in, worker};

/// The folders of a process's groups that were created by a sandbox.
fn folders(process: u32) -> Vec<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let names: Vec<&str> = groups.lines().filter_map(|line| line.rsplit_once("/rcrt-").map(|(_, name)| name)).collect();
    let mut found = Vec::new();
    for name in names {
        let mut queue = vec![PathBuf::from("/sys/fs/cgroup")];
        while let Some(folder) = queue.pop() {
            let wanted = folder.join(format!("rcrt-{name}"));
            if wanted.is_dir() {
                found.push(wanted);
            }
            let below = fs::read_dir(&folder).into_iter().flatten().flatten();
            queue.extend(below.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn first(folders: &[PathBuf], names: &[&str]) -> Option<PathBuf> {
    folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).find(|path| path.exists())
}

#[test]
fn a_workers_groups_have_its_calls_limits_and_are_removed_with_it() {
    block_on(async {
        let watched = Watched::start(CgroupUse::WhereTheyAre, |_| {}).await;
        if !watched.has_groups() {
            return;
        }
        let mut call = invocation(&function(&format!("{PASSES_THE_GATE} return 1")), Value::Null);
        call.limits.cpu_percent = 20;
        call.limits.memory_mb = 64;
        let look = async || {
            let processes = watched.processes();
            let all: Vec<Vec<PathBuf>> = processes.iter().map(|process| folders(*process)).collect();
            assert!(!all.is_empty() && !all[0].is_empty() && all.iter().all(|one| *one == all[0]), "{all:?}");
            let read = |names: &[&str]| fs::read_to_string(first(&all[0], names).unwrap()).unwrap().trim().to_owned();
            assert!(["20000", "20000 100000"].contains(&read(&["cpu.cfs_quota_us", "cpu.max"]).as_str()));
            assert_eq!(read(&["pids.max"]), "64");
            let memory: u64 = read(&["memory.limit_in_bytes", "memory.max"]).parse().unwrap();
            assert!((192 << 20..512 << 20).contains(&memory), "{memory}");
            all[0].clone()
        };
        let (result, made) = watched.at_the_gate(call, look).await;
        assert_eq!(result.unwrap(), 1);
        // The next call in the same process has other limits.
        let mut call = invocation(&function(&format!("{PASSES_THE_GATE} return 2")), Value::Null);
        call.limits.memory_mb = 256;
        let look = async || {
            let read = |names: &[&str]| fs::read_to_string(first(&made, names).unwrap()).unwrap().trim().to_owned();
            assert!(["100000", "100000 100000"].contains(&read(&["cpu.cfs_quota_us", "cpu.max"]).as_str()));
            let memory: u64 = read(&["memory.limit_in_bytes", "memory.max"]).parse().unwrap();
            assert!((384 << 20..768 << 20).contains(&memory), "{memory}");
        };
        let (result, ()) = watched.at_the_gate(call, look).await;
        assert_eq!(result.unwrap(), 2);
        watched.sandbox.close().await;
        for folder in made {
            assert!(!folder.exists() && !folder.parent().unwrap().exists(), "{}", folder.display());
        }
    });
}

#[test]
fn a_kill_by_the_memory_group_is_resource_exhausted() {
    block_on(async {
        let watched = Watched::start(CgroupUse::WhereTheyAre, |_| {}).await;
        if !watched.is_in_force(names::MEMORY_CGROUP) {
            return;
        }
        let body = format!(
            "{PASSES_THE_GATE} const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1)); return all.length"
        );
        let mut call = invocation(&function(&body), Value::Null);
        call.limits.memory_mb = 512;
        let squeeze = async || {
            // The engine would enforce the limit itself, so the group's limit is set close to the
            // current use.
            let made = folders(*watched.processes().last().unwrap());
            let [used, limit] = [["memory.usage_in_bytes", "memory.current"], ["memory.limit_in_bytes", "memory.max"]]
                .map(|names| first(&made, &names).unwrap());
            let used: u64 = fs::read_to_string(used).unwrap().trim().parse().unwrap();
            fs::write(limit, (used + (16 << 20)).to_string()).unwrap();
        };
        let (result, ()) = watched.at_the_gate(call, squeeze).await;
        let failure = result.unwrap_err();
        assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{failure}");
        assert_eq!(failure.details.unwrap(), json!({ "limit": "memory_mb", "allowed": 512 }));
        let next = run_in(&watched.sandbox, invocation(&function("return 'next'"), Value::Null)).await;
        assert_eq!(next.result.unwrap(), "next");
        watched.sandbox.close().await;
    });
}

#[test]
fn without_groups_the_memory_ceiling_is_in_force_and_reported() {
    block_on(async {
        let watched = Watched::start(CgroupUse::None, |_| {}).await;
        for name in [names::MEMORY_CGROUP, names::CPU_CGROUP, names::PROCESSES_CGROUP] {
            let found = watched.sandbox.report().protections.iter().find(|protection| protection.name == name).unwrap();
            let ProtectionState::Unavailable(reason) = &found.state else { panic!("{name} is in force") };
            assert!(reason.contains("disabled"), "{reason}");
        }
        assert!(watched.is_in_force(names::MEMORY_CEILING) && watched.is_in_force(names::PROCESSOR_CLOCK));
        let process = *watched.processes().last().unwrap();
        assert_eq!(folders(process), Vec::<PathBuf>::new());
        let data = |process: u32| {
            let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
            let line = limits.lines().find(|line| line.starts_with("Max data size")).unwrap().to_owned();
            line.split_ascii_whitespace().nth(3).unwrap().parse::<u64>().ok()
        };
        let mut call = invocation(&function(&format!("{PASSES_THE_GATE} return 1")), Value::Null);
        call.limits.memory_mb = 64;
        let look = async || {
            let limit = watched.processes().into_iter().filter_map(data).min().expect("a process with a ceiling");
            assert!((64 << 20..512 << 20).contains(&limit), "{limit}");
        };
        let (result, ()) = watched.at_the_gate(call, look).await;
        assert_eq!(result.unwrap(), 1);
        watched.sandbox.close().await;
    });
}

/// Runs this test program (or its copy) again with one of the ignored tests below.
fn another(program: &Path, test: &str, change: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new(program);
    command.args(["--exact", "--ignored", "--nocapture", &format!("limits::groups::{test}")]);
    command.env(ROLE, "1").stdout(Stdio::piped()).stderr(Stdio::null());
    change(&mut command);
    command.spawn().unwrap()
}

const ROLE: &str = "RCRT_TEST_ROLE";

#[test]
#[ignore = "plays a runner that is killed, for the test below"]
#[allow(clippy::print_stdout)]
fn a_runner_that_is_killed() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    block_on(async {
        let watched = Watched::start(CgroupUse::WhereTheyAre, |_| {}).await;
        let folders = folders(*watched.processes().last().unwrap());
        println!("\nfolders {}", json!(folders));
        std::future::pending::<()>().await;
    });
}

#[test]
fn groups_of_a_killed_runner_are_removed_and_those_of_a_live_one_are_not() {
    use std::io::{BufRead, BufReader};
    block_on(async {
        let live = Watched::start(CgroupUse::WhereTheyAre, |_| {}).await;
        if !live.has_groups() {
            return;
        }
        let mut killed = another(&std::env::current_exe().unwrap(), "a_runner_that_is_killed", |_| {});
        let lines = BufReader::new(killed.stdout.take().unwrap()).lines();
        let found = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("folders ").map(str::to_owned));
        let left: Vec<PathBuf> = serde_json::from_str(&found.expect("it starts")).unwrap();
        assert!(!left.is_empty() && left.iter().all(|folder| folder.is_dir()));
        killed.kill().unwrap();
        killed.wait().unwrap();
        // Its workers die soon after it; their groups remain.
        let has_processes =
            |folder: &Path| fs::read_to_string(folder.join("cgroup.procs")).is_ok_and(|all| !all.is_empty());
        while left.iter().any(|folder| has_processes(folder)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let own = folders(*live.processes().last().unwrap());
        let next = Watched::start(CgroupUse::WhereTheyAre, |_| {}).await;
        for folder in &left {
            assert!(!folder.exists() && !folder.parent().unwrap().exists(), "{}", folder.display());
        }
        assert!(!own.is_empty() && own.iter().all(|folder| folder.is_dir()));
        next.sandbox.close().await;
        let outcome = run_in(&live.sandbox, invocation(&function("return 1"), Value::Null)).await;
        assert_eq!(outcome.result.unwrap(), 1);
        live.sandbox.close().await;
    });
}

#[test]
#[ignore = "plays an ordinary user, for the test below"]
#[allow(clippy::print_stdout)]
fn an_ordinary_user() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    block_on(async {
        let watched = Watched::start(CgroupUse::WhereTheyAre, |_| {}).await;
        let mut call = invocation(&function("for (;;);"), Value::Null);
        call.limits.cpu_percent = 50;
        call.limits.cpu_ms = Some(200);
        let exhausted = run_in(&watched.sandbox, call).await.result.unwrap_err();
        let mut call =
            invocation(&function("const all = []; for (;;) all.push(new Uint8Array(8 << 20).fill(1))"), Value::Null);
        call.limits.memory_mb = 64;
        let full = run_in(&watched.sandbox, call).await.result.unwrap_err();
        println!("\nreport {}", json!([watched.sandbox.report().protections, exhausted.details, full.code]));
        watched.sandbox.close().await;
    });
}

#[test]
fn limits_are_enforced_for_a_user_without_access_to_groups() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    // The build's folder may be accessible only to its owner.
    let folder = std::env::temp_dir().join(format!("rcrt-ordinary-user-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let copies = [std::env::current_exe().unwrap(), worker().program].map(|program| {
        let copy = folder.join(program.file_name().unwrap());
        fs::copy(&program, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        copy
    });
    let output = another(&copies[0], "an_ordinary_user", |command| {
        command.uid(65534).gid(65534).current_dir("/").env(COPIED_WORKER, &copies[1]);
    })
    .wait_with_output()
    .unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = text.lines().find_map(|line| line.strip_prefix("report ")).unwrap_or_else(|| panic!("{text}"));
    let report: Value = serde_json::from_str(report).unwrap();
    let state = |name: &str| {
        let all = report[0].as_array().unwrap();
        all.iter().find(|protection| protection["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!((state(names::MEMORY_CEILING), state(names::PROCESSOR_CLOCK)), (json!("applied"), json!("applied")));
    for name in [names::MEMORY_CGROUP, names::CPU_CGROUP, names::PROCESSES_CGROUP] {
        let reason = state(name)["unavailable"].as_str().expect(name).to_owned();
        assert!(reason.contains("cannot create control groups"), "{reason}");
    }
    assert_eq!(report[1], json!({ "limit": "cpu_ms", "allowed": 200 }));
    assert_eq!(report[2], json!("ResourceExhausted"));
}

#[test]
#[ignore = "prints timings; run it by hand with --nocapture"]
#[allow(clippy::print_stderr)]
fn groups_cost() {
    use std::time::Instant;
    for cgroups in [CgroupUse::WhereTheyAre, CgroupUse::None, CgroupUse::WhereTheyAre, CgroupUse::None] {
        block_on(async {
            let begun = Instant::now();
            let watched = Watched::start(cgroups, |_| {}).await;
            let start = begun.elapsed();
            let mut timed: Vec<(&str, Vec<Duration>)> =
                vec![("kept", vec![]), ("other memory", vec![]), ("new", vec![])];
            for n in 0..60u128 {
                for (what, times) in &mut timed {
                    let mut call = invocation(&function("return 1"), Value::Null);
                    match *what {
                        "other memory" => call.limits.memory_mb = 128 + (n % 2) as u64,
                        "new" => call.owner_id = uuid::Uuid::from_u128(n + 2),
                        _ => {}
                    }
                    if *what == "new" && n % 6 > 0 {
                        continue;
                    }
                    let begun = Instant::now();
                    run_in(&watched.sandbox, call).await.result.unwrap();
                    times.push(begun.elapsed());
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            eprint!("{cgroups:?}: start {start:?}");
            for (what, mut times) in timed {
                times.sort();
                eprint!("; {what}: median {:?}, least {:?}", times[times.len() / 2], times[0]);
            }
            eprintln!();
            watched.sandbox.close().await;
        });
    }
}

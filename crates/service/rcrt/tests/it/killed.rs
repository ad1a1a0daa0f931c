//! A restart after all processes were killed at the same moment.
#![cfg(target_os = "linux")]

use std::collections::HashMap;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::program::Running;

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

/// The killed processes are zombies until their new parent reaps them, or forever if it does not.
#[test]
fn up_starts_after_all_its_processes_were_killed() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let killed = Running::start(&data, &UP);
    let kept = killed.json(&["crumb", "create", r#"{"title": "kept"}"#])["id"].as_str().unwrap().to_owned();
    let processes = tree(killed.pid());
    assert!(processes.len() > 2, "the program, Postgres and its processes: {processes:?}");
    // Stop all of them first, so that none reacts to the death of another.
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for pid in &processes {
            let _ = kill(*pid, signal);
        }
    }
    // At once: some of them are still exiting, and hold their locks.
    let again = Running::start(&data, &UP);
    assert_eq!(again.json(&["crumb", "get", &kept])["title"], "kept");
    assert_eq!(again.stop().0.code(), Some(0));
    killed.end_by(Signal::SIGKILL);
}

/// A process and all its descendants.
pub fn tree(root: u32) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
        children.entry(parent).or_default().push(pid);
    }
    let mut found = vec![root as i32];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found.into_iter().map(Pid::from_raw).collect()
}

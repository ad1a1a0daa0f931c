//! The memory of processes. Shared pages are counted in proportion (PSS), so that the sum over
//! processes is the memory that they use together.

use std::collections::HashMap;
use std::fs;

use anyhow::{Context, bail};

/// A process and all its descendants.
pub fn tree(root: u32) -> anyhow::Result<Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").context("no /proc; memory is only measured on Linux")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It can have exited already.
        let Ok((_, stat)) = stat(id) else { continue };
        if let Some(parent) = stat.split(' ').nth(1).and_then(|parent| parent.parse().ok()) {
            children.entry(parent).or_default().push(id);
        }
    }
    let (mut found, mut next) = (Vec::new(), vec![root]);
    while let Some(id) = next.pop() {
        found.push(id);
        next.extend(children.remove(&id).unwrap_or_default());
    }
    Ok(found)
}

/// `/proc/<id>/stat` (proc_pid_stat(5)): the program's name, which can contain any character, and
/// the fields from the third on.
pub(super) fn stat(id: u32) -> std::io::Result<(String, String)> {
    Ok(split(&fs::read_to_string(format!("/proc/{id}/stat"))?))
}

fn split(stat: &str) -> (String, String) {
    let (before, rest) = stat.rsplit_once(") ").unwrap_or_default();
    let name = before.split_once(" (").map_or("", |(_, name)| name);
    (name.to_owned(), rest.to_owned())
}

/// A line such as `Pss:  12 kB`, in bytes.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// Proportional memory of these processes in bytes. Processes that have exited count as 0.
pub fn proportional_bytes(processes: &[u32]) -> anyhow::Result<u64> {
    let mut sum = 0;
    for id in processes {
        let path = format!("/proc/{id}/smaps_rollup");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                bail!("{path}: {error}; only root can measure processes that have changed their user")
            }
            Err(_) => continue,
        };
        sum += bytes_of(&text, "Pss:").unwrap_or_default();
    }
    Ok(sum)
}

/// The size of the page tables of these processes in bytes. `proportional_bytes` does not include
/// it.
pub fn page_table_bytes(processes: &[u32]) -> u64 {
    let status = |id: &u32| fs::read_to_string(format!("/proc/{id}/status")).ok();
    processes.iter().filter_map(|id| bytes_of(&status(id)?, "VmPTE:")).sum()
}

/// How often threads of these processes have waited and were woken. Processes that have exited
/// count as 0.
pub fn wake_ups(processes: &[u32]) -> u64 {
    let tasks = processes.iter().filter_map(|id| fs::read_dir(format!("/proc/{id}/task")).ok()).flatten();
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    let waits = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok())
    };
    statuses.filter_map(waits).sum()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_program_name_can_contain_parentheses() {
        let (name, fields) = split("77 (a (b) c) S 1 77 77");
        assert_eq!((&*name, &*fields), ("a (b) c", "S 1 77 77"));
    }

    #[test]
    fn a_tree_has_the_children_and_their_memory_is_counted() {
        let own = std::process::id();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let found = tree(own).unwrap();
        assert!(found.contains(&own) && found.contains(&child.id()), "{found:?}");
        assert!(proportional_bytes(&[own]).unwrap() > 0 && page_table_bytes(&[own]) > 0 && wake_ups(&[own]) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(proportional_bytes(&[child.id()]).unwrap(), 0, "a process that has exited counts as 0");
    }
}

//! Who listens on a port of this machine, as far as the system tells (Linux, and our own processes or root).

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;

/// `process 123 (rcrt up)`, or `None` when it cannot be told.
pub fn holder(address: SocketAddr) -> Option<String> {
    let inodes = listening_inodes(address.port());
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(open) = fs::read_dir(entry.path().join("fd")) else { continue };
        let holds = open.flatten().any(|fd| {
            fs::read_link(fd.path()).is_ok_and(|target| {
                let target = target.to_string_lossy();
                let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
                inode.is_some_and(|inode| inodes.contains(inode))
            })
        });
        if holds {
            return Some(format!("process {pid} ({})", command(pid)));
        }
    }
    None
}

/// The inodes of the sockets that listen on this port, whatever their address.
fn listening_inodes(port: u16) -> HashSet<String> {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| {
            let inodes: Vec<String> = table
                .lines()
                .skip(1)
                .filter_map(|line| {
                    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
                    let is_it = columns.get(1)?.ends_with(&wanted) && *columns.get(3)? == LISTEN;
                    is_it.then(|| columns.get(9).map(|&inode| inode.to_owned())).flatten()
                })
                .collect();
            inodes
        })
        .collect()
}

fn command(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let line: String = line.trim().chars().filter(|c| !c.is_control()).take(200).collect();
    if line.is_empty() { "its command is not told".into() } else { line }
}

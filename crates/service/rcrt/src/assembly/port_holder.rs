//! Finds the process that listens on a port of this machine. Works on Linux, for processes of the
//! same user or as root.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;

/// Returns `process 123 (rcrt up)`, or `None` if the process cannot be determined.
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

/// Returns the inodes of the sockets that listen on this port, at any address.
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
                    let is_match = columns.get(1)?.ends_with(&wanted) && *columns.get(3)? == LISTEN;
                    is_match.then(|| columns.get(9).map(|&inode| inode.to_owned())).flatten()
                })
                .collect();
            inodes
        })
        .collect()
}

/// The program's name, with its subcommand if it is this program. Other arguments can contain
/// passwords and tokens.
fn command(pid: u32) -> String {
    let Some(name) = program(&format!("/proc/{pid}/exe")) else { return "name unknown".into() };
    if program("/proc/self/exe").as_ref() != Some(&name) {
        return name;
    }
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    with_subcommand(name, &String::from_utf8_lossy(&line))
}

fn program(link: &str) -> Option<String> {
    let path = fs::read_link(link).ok()?;
    let name: String = path.file_name()?.to_string_lossy().chars().filter(|c| !c.is_control()).collect();
    // The kernel adds this if the program's file was replaced.
    Some(name.trim_end_matches(" (deleted)").to_owned())
}

/// A subcommand is the first argument and a plain word. After an option, words may be its value.
fn with_subcommand(program: String, line: &str) -> String {
    let is_word = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    match line.split('\0').nth(1).filter(is_word) {
        Some(word) => format!("{program} {word}"),
        None => program,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_holder_is_named_without_its_arguments() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let program = std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let named = holder(listener.local_addr().unwrap()).unwrap();
        let start = format!("process {} ({program}", std::process::id());
        assert!(named.starts_with(&start), "{named}");
    }

    #[test]
    fn only_the_subcommand_of_a_command_line_is_shown() {
        for (line, expected) in [
            ("rcrt\0up\0--database-url\0postgres://user:PASSWORD@host/db\0", "rcrt up"),
            ("rcrt\0--token\0secret\0up\0", "rcrt"),
            ("rcrt\0--agent-key=secret\0server\0", "rcrt"),
            ("rcrt\0", "rcrt"),
            ("", "rcrt"),
        ] {
            assert_eq!(with_subcommand("rcrt".into(), line), expected, "{line:?}");
        }
    }
}

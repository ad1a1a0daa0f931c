//! Removes what a killed run left of its server: the processes and lock files, before another
//! server starts on the cluster.
//!
//! Postgres checks its lock files itself, but treats a zombie (a process that exited and was not
//! waited for) as a live process. In a container whose first process does not reap, it would refuse
//! to start forever.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::pid_file::PidFile;
use crate::{PostgresError, ProgressFn, at, socket};

const FAST: Duration = Duration::from_secs(30);
const AT_ONCE: Duration = Duration::from_secs(5);

/// Stops every process that still works in `cluster`, then removes the lock files. The caller holds
/// the data folder's lock, so no other process uses them.
pub(crate) async fn stop(cluster: &Path, socket_dir: &Path, progress: ProgressFn<'_>) -> Result<(), PostgresError> {
    if let Some(PidFile { pid, .. }) = PidFile::read(cluster)
        && is_alive(pid)
        && serves(pid, cluster)
    {
        progress("Stopping the Postgres of an earlier run");
        end(&[pid], &[(Signal::SIGINT, FAST), (Signal::SIGQUIT, AT_ONCE)]).await?;
    }
    if !Path::new("/proc/self/stat").exists() {
        // Without /proc, processes cannot be listed. Postgres checks its lock files itself then.
        return Ok(());
    }
    // The children of a killed postmaster exit by themselves, but not always soon.
    let orphans = processes_of(cluster);
    if !orphans.is_empty() {
        progress("Waiting for processes of a killed Postgres to stop");
        end(&orphans, &[(Signal::SIGQUIT, AT_ONCE), (Signal::SIGKILL, AT_ONCE)]).await?;
    }
    for path in [cluster.join("postmaster.pid"), socket_dir.join(socket::LOCK)] {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(at("remove", &path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Sends the signals in turn until none of the processes is alive.
async fn end(pids: &[i32], signals: &[(Signal, Duration)]) -> Result<(), PostgresError> {
    for (signal, patience) in signals {
        for pid in pids {
            match kill(Pid::from_raw(*pid), *signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(_) => return Err(PostgresError::LeftoverStays { pid: *pid }),
            }
        }
        let begun = Instant::now();
        while begun.elapsed() < *patience {
            if !pids.iter().any(|pid| is_alive(*pid)) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let stays = pids.iter().copied().find(|pid| is_alive(*pid));
    stays.map_or(Ok(()), |pid| Err(PostgresError::LeftoverStays { pid }))
}

/// Returns whether the process runs. A zombie does not.
fn is_alive(pid: i32) -> bool {
    if matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH)) {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])),
        Err(_) => !Path::new("/proc/self/stat").exists(),
    }
}

/// The live processes of a Postgres in `cluster`.
fn processes_of(cluster: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| serves(*pid, cluster) && is_alive(*pid)).collect()
}

/// Returns whether the process is a Postgres of `cluster`, which is the working folder of all its
/// processes. Without `/proc`, trusts the pid file.
fn serves(pid: i32, cluster: &Path) -> bool {
    if !Path::new("/proc/self/cwd").exists() {
        return true;
    }
    let same_folder = std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder| folder == cluster);
    let postgres = std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "postgres");
    same_folder && postgres
}

//! A server whose owner was killed: it must be gone before another one serves its cluster.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::pid_file::PidFile;
use crate::{PostgresError, Progress, at};

const FAST: Duration = Duration::from_secs(30);
const AT_ONCE: Duration = Duration::from_secs(5);

/// Stops the Postgres that still serves `cluster`, if one does. The caller holds the folder's lock, so it belongs to nobody.
pub(crate) async fn stop(cluster: &Path, progress: Progress<'_>) -> Result<(), PostgresError> {
    let Some(PidFile { pid, .. }) = PidFile::read(cluster) else { return Ok(()) };
    if !alive(pid) {
        // Postgres looks at the file itself, and finds backends that outlived their postmaster by it.
        return Ok(());
    }
    if !serves(pid, cluster) {
        // The number went to another process since; Postgres would take that one for a server and refuse.
        let path = cluster.join("postmaster.pid");
        return std::fs::remove_file(&path).map_err(at("remove", &path));
    }
    progress("Stopping the Postgres that an earlier run left behind");
    for (signal, patience) in [(Signal::SIGINT, FAST), (Signal::SIGQUIT, AT_ONCE)] {
        match kill(Pid::from_raw(pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(_) => break,
        }
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if !alive(pid) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    Err(PostgresError::LeftoverStays { pid })
}

/// Whether the process runs; one that has ended but was not yet waited for does not.
fn alive(pid: i32) -> bool {
    if matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH)) {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])),
        Err(_) => !Path::new("/proc/self/stat").exists(),
    }
}

/// Whether the process is a Postgres that works in `cluster`; it makes its cluster its working folder. Where there is no `/proc` to
/// look at, the file is believed.
fn serves(pid: i32, cluster: &Path) -> bool {
    if !Path::new("/proc/self/cwd").exists() {
        return true;
    }
    let same_folder = std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder| folder == cluster);
    let postgres = std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "postgres");
    same_folder && postgres
}

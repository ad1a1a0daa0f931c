use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Reads until this process is gone, for whatever reason. Then stops the server and removes its
/// folder. A zombie process has no command line, so it does not count as a server.
const WATCHER: &str = r#"
cat >/dev/null
pid=$(head -n 1 "$1/postgres/postmaster.pid" 2>/dev/null)
serves() { [ -n "$pid" ] && grep -qsF "$1/postgres" "/proc/$pid/cmdline"; }
tries=0
while serves "$1" && [ $tries -lt 200 ]; do
    kill -QUIT "$pid" 2>/dev/null
    sleep 0.02
    tries=$((tries + 1))
done
rm -rf "$1"
"#;

/// A static is never dropped, and a killed process cannot clean up, so a separate process does it.
pub(crate) fn when_this_process_ends(folder: &Path) {
    let folder = folder.canonicalize().expect("the temporary folder");
    let watcher = Command::new("sh")
        .args(["-c", WATCHER, "sh"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C must stop the tests, but not this process, which cleans up after them.
        .process_group(0)
        .spawn()
        .expect("sh, to clean up after the tests");
    // This process's end of the pipe stays open as long as the process exists.
    std::mem::forget(watcher);
}

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Reads until this process is gone, however it went; then stops the server and removes its folder. A process that has ended but was
/// not waited for has no command line any more.
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

/// A static is never dropped, and a killed process cleans up nothing: somebody outside has to.
pub(crate) fn when_this_process_ends(folder: &Path) {
    let folder = folder.canonicalize().expect("the temporary folder");
    let watcher = Command::new("sh")
        .args(["-c", WATCHER, "sh"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends the tests, not the one who tidies up after them.
        .process_group(0)
        .spawn()
        .expect("sh, to tidy up after the tests");
    // Our end of the pipe is open for as long as this process lives.
    std::mem::forget(watcher);
}

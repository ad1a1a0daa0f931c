//! Downloads and unpacks wheels with pip and Python.

use std::path::{Path, PathBuf};
use std::process::Output;

use tokio::process::Command;

use crate::Wheel;

/// The commands to try for pip. The first one that downloads the wheel is used.
const PIP_COMMANDS: [&[&str]; 4] = [&["python3", "-m", "pip"], &["pip3"], &["pip"], &["python", "-m", "pip"]];

/// Returns the downloaded file. The error is a message for the user.
pub(crate) async fn download(wheel: &Wheel, into: &Path) -> Result<PathBuf, String> {
    let package = format!("{}=={}", wheel.package, wheel.version);
    let mut reasons = Vec::new();
    for pip in PIP_COMMANDS {
        let mut command = Command::new(pip[0]);
        command.args(&pip[1..]);
        command.args(["download", "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "2"]);
        command.args(["--no-deps", "--only-binary", ":all:", "--dest"]).arg(into).arg(&package);
        match command.kill_on_drop(true).output().await {
            // A missing program is not worth reporting: another command may exist.
            Err(_) => {}
            Ok(output) if output.status.success() => {
                let wheel = std::fs::read_dir(into).ok().and_then(|mut files| files.next()?.ok());
                return wheel.map(|file| file.path()).ok_or_else(|| "pip downloaded no file".to_owned());
            }
            Ok(output) => reasons.push(format!("{}: {}", pip.join(" "), last_line(&output))),
        }
    }
    Err(if reasons.is_empty() { "pip was not found; install python3-pip".to_owned() } else { reasons.join("; ") })
}

/// Unpacks the file into the new folder `tree`.
pub(crate) async fn unpack(file: &Path, tree: &Path) -> Result<(), String> {
    let mut reason = "python3 was not found".to_owned();
    for python in ["python3", "python"] {
        let unpacked =
            Command::new(python).args(["-m", "zipfile", "-e"]).args([file, tree]).kill_on_drop(true).output().await;
        match unpacked {
            Err(_) => {}
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => reason = last_line(&output),
        }
    }
    Err(format!("cannot unpack the wheel: {reason}"))
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it failed").to_owned()
}

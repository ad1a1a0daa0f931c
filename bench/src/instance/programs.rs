//! Where the programs of this build are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

/// A program of this workspace, from the same build as this one.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("this program's own path is not known")?;
    // Test programs are one folder deeper.
    let folders = own.ancestors().skip(1).take(2);
    for folder in folders {
        let path = folder.join(name);
        if path.is_file() {
            return Ok(path);
        }
    }
    bail!("{name} is not built; `make bench` builds all that it needs (cargo build --bins)")
}

/// What is measured: the program's version, and the commit if this is a checkout. `-dirty` means
/// that files differ from the commit.
pub fn versions() -> BTreeMap<String, String> {
    let said = |command: &mut Command| -> Option<String> {
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version = program("rcrt").ok().and_then(|program| said(Command::new(program).arg("--version")));
    let version = version.as_deref().map(|text| text.strip_prefix("rcrt ").unwrap_or(text).to_owned());
    let commit =
        said(Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(env!("CARGO_MANIFEST_DIR")));
    let named = [("rcrt", version), ("commit", commit)];
    named.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version?))).collect()
}

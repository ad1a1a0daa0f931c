//! The peers' npm packages at the versions of `bench/peers/package-lock.json`, installed once into
//! RCRT's cache.

use std::env::consts::{ARCH, OS};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::process::Command;

/// Files that are written beside the packages, so that Node finds the packages from there.
const FILES: [(&str, &str); 9] = [
    ("package.json", include_str!("../../peers/package.json")),
    ("package-lock.json", include_str!("../../peers/package-lock.json")),
    ("answers.js", include_str!("../../peers/answers.js")),
    ("deno.js", include_str!("../../peers/deno.js")),
    ("graphile-worker.js", include_str!("../../peers/graphile-worker.js")),
    ("pg-boss.js", include_str!("../../peers/pg-boss.js")),
    ("restate.js", include_str!("../../peers/restate.js")),
    ("workerd.js", include_str!("../../peers/workerd.js")),
    ("workerd.capnp", include_str!("../../peers/workerd.capnp")),
];

/// Written last: the lock file of a complete installation.
const INSTALLED: &str = "installed.json";

/// The oldest Node that the queues support.
const OLDEST_NODE: u32 = 22;

/// An installation of all packages.
pub struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// Finds the packages, or installs them (0.7 GB on the disk). One process at a time.
    pub async fn install() -> anyhow::Result<Self> {
        let folder = rcrt_postgres::default_cache_dir().join("peers");
        rcrt_postgres::make_private(&folder).map_err(anyhow::Error::msg)?;
        let lock = std::fs::File::create(folder.join("lock"))?;
        // Held until the file is dropped. Another bench can install for minutes.
        let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await??;
        for (name, text) in FILES {
            std::fs::write(folder.join(name), text)?;
        }
        let wanted = lock_text();
        if std::fs::read_to_string(folder.join(INSTALLED)).ok().as_deref() != Some(wanted) {
            run_npm(&folder).await?;
            std::fs::write(folder.join(INSTALLED), wanted)?;
        }
        drop(lock);
        Ok(Self { folder })
    }

    /// A file that is written beside the packages.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The version of an installed package.
    pub fn version(&self, package: &str) -> anyhow::Result<String> {
        let path = self.folder.join("node_modules").join(package).join("package.json");
        let text = std::fs::read_to_string(&path).with_context(|| format!("{package} is not installed"))?;
        let described: Value = serde_json::from_str(&text)?;
        Ok(described["version"].as_str().unwrap_or("unknown").to_owned())
    }

    /// A program from a package for this kind of machine.
    pub fn program(&self, package: &str, path: &str) -> anyhow::Result<PathBuf> {
        let program = self.folder.join("node_modules").join(package).join(path);
        if !program.is_file() {
            bail!("bench/peers has no package {package} for {OS} on {ARCH}");
        }
        Ok(program)
    }

    /// The packaged Node, so that all machines measure the same, else the machine's own.
    pub async fn node(&self) -> anyhow::Result<PathBuf> {
        if let Ok(program) = self.program(&format!("node-{OS}-{}", npm_arch()), "bin/node") {
            return Ok(program);
        }
        let output = Command::new("node").arg("--version").output().await.context("Node cannot be started")?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_none_or(|major| major < OLDEST_NODE) {
            bail!("it needs Node {OLDEST_NODE} or later, and this machine has {version}");
        }
        Ok("node".into())
    }
}

/// The name of this processor in npm's packages.
pub fn npm_arch() -> &'static str {
    match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The name of this system in npm's packages.
pub fn npm_os() -> &'static str {
    if OS == "macos" { "darwin" } else { OS }
}

fn lock_text() -> &'static str {
    FILES.iter().find(|(name, _)| *name == "package-lock.json").map_or("", |(_, text)| *text)
}

/// Installs exactly what the lock file lists, checked by its hashes. No package runs its own
/// scripts: the programs are in separate packages, and the scripts do nothing else that the bench
/// needs.
async fn run_npm(folder: &Path) -> anyhow::Result<()> {
    let output = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("npm cannot be started")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let said: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
        bail!("npm could not install the packages: {}", said.join(" | "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> Value {
        let text = FILES.iter().find(|(file, _)| *file == name).unwrap().1;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn packages_have_exact_versions_as_in_the_lock_file() {
        let (wanted, locked) = (parsed("package.json"), parsed("package-lock.json"));
        for kind in ["dependencies", "optionalDependencies"] {
            for (name, version) in wanted[kind].as_object().unwrap() {
                let version = version.as_str().unwrap();
                assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{name} {version}");
                assert_eq!(locked["packages"][format!("node_modules/{name}")]["version"], version, "{name}");
            }
        }
    }

    #[test]
    fn the_lock_file_names_no_server_and_has_a_hash_for_each_package() {
        let locked = parsed("package-lock.json");
        for (path, package) in locked["packages"].as_object().unwrap() {
            assert!(package.get("resolved").is_none(), "{path}");
            assert!(path.is_empty() || package["integrity"].is_string(), "{path}");
        }
    }
}

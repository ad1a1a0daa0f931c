//! Finds an installed Postgres with pgvector on this machine.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::install::Installed;

/// The oldest supported version.
const OLDEST: u32 = 15;

/// Returns the newest suitable server, or the reason why there is none.
pub(crate) async fn find(major: Option<u32>) -> Result<Installed, String> {
    let mut found: Vec<Installed> = Vec::new();
    let mut without_pgvector = Vec::new();
    for bin in folders().await {
        let Some(installed) = Installed::in_folder(&bin).await else { continue };
        if installed.major < OLDEST || major.is_some_and(|major| major != installed.major) {
            continue;
        }
        if has_pgvector(&installed).await {
            found.push(installed);
        } else {
            without_pgvector.push(installed.bin.display().to_string());
        }
    }
    found.into_iter().max_by_key(|installed| installed.major).ok_or_else(|| {
        let wanted = major.map_or_else(|| format!("{OLDEST} or later"), |major| major.to_string());
        if without_pgvector.is_empty() {
            format!("no Postgres {wanted}")
        } else {
            format!("Postgres without pgvector in {}", without_pgvector.join(", "))
        }
    })
}

/// The folders where packages install the server's programs, usually outside of the PATH.
async fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output().await {
        folders.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    let roots = [
        ("/usr/lib/postgresql", "bin"),
        ("/usr/libexec", "bin"),
        ("/usr/local", "bin"),
        ("/opt/homebrew/opt", "bin"),
        ("/usr/local/opt", "bin"),
        ("/usr", "bin"),
    ];
    for (root, bin) in roots {
        let Ok(entries) = std::fs::read_dir(root) else { continue };
        let mut named: Vec<_> = entries.flatten().map(|entry| entry.path().join(bin)).collect();
        named.sort();
        folders.extend(named.into_iter().rev().filter(|folder| folder.join("postgres").is_file()));
    }
    folders.dedup();
    folders
}

async fn has_pgvector(installed: &Installed) -> bool {
    let mut shares = vec![PathBuf::from(format!("/usr/share/postgresql/{}", installed.major))];
    if let Ok(output) = Command::new(installed.bin.join("pg_config")).arg("--sharedir").output().await {
        shares.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    shares.iter().any(|share| Path::new(share).join("extension/vector.control").is_file())
}

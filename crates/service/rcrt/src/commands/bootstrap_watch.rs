//! `rcrt bootstrap --watch`: applies the folder again whenever one of its files changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;

use super::bootstrap_report::BootstrapReport;
use crate::output::Output;
use crate::tool_file;

/// How often the files are checked. Polling also works on network drives and in containers, where
/// notifications of the kernel get lost.
const INTERVAL: Duration = Duration::from_millis(300);

/// The size and the modification time of each file of the set.
type Snapshot = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Applies the folder now and after each change, until the process is stopped. An error is
/// reported once, and the folder is applied again until that succeeds.
#[allow(clippy::print_stderr)]
pub async fn run<F>(folder: &Path, output: Output, apply: impl Fn() -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<BootstrapReport>>,
{
    let mut applied: Option<Snapshot> = None;
    let mut last_error = None;
    let mut is_first = true;
    loop {
        // Taken before the files are read, so that a change during the bootstrap is seen.
        let ended = match snapshot(folder.to_owned()).await {
            Ok(now) if applied.as_ref() == Some(&now) => Ok(None),
            Ok(now) => apply().await.map(|report| Some((now, report))),
            Err(error) => Err(error),
        };
        match ended {
            Ok(None) => {}
            Ok(Some((now, report))) => {
                if is_first {
                    output.note(&format!("watching {}; Ctrl-C stops", folder.display()));
                }
                if is_first || last_error.is_some() || report.has_changes() {
                    report.print_changes(output)?;
                }
                (applied, last_error, is_first) = (Some(now), None, false);
            }
            Err(error) => {
                let text = format!("{error:#}");
                if last_error.as_ref() != Some(&text) {
                    eprintln!("rcrt: {text}; --watch tries again");
                }
                last_error = Some(text);
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn snapshot(folder: PathBuf) -> anyhow::Result<Snapshot> {
    tokio::task::spawn_blocking(move || {
        let mut files = Snapshot::new();
        collect(&folder, &mut files)?;
        Ok(files)
    })
    .await
    .context("reading the folder failed")?
}

fn collect(folder: &Path, files: &mut Snapshot) -> anyhow::Result<()> {
    let unreadable = || format!("the folder {} cannot be read", folder.display());
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if name.starts_with('.') {
            continue;
        }
        // A file that was removed since the folder was read shows in the next snapshot.
        let Ok(found) = path.metadata() else { continue };
        if found.is_dir() {
            collect(&path, files)?;
        } else if tool_file::is_read(&name) {
            files.insert(path, (found.len(), found.modified().ok()));
        }
    }
    Ok(())
}

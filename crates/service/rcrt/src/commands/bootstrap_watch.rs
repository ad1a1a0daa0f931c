//! `rcrt bootstrap --watch`: applies the folder again whenever one of its files changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;

use super::bootstrap_report::BootstrapReport;
use crate::output::Output;
use crate::seed::SeedSet;
use crate::tool_file;

/// How often the files are checked. Polling also works on network drives and in containers, where
/// notifications of the kernel get lost.
const INTERVAL: Duration = Duration::from_millis(300);

/// The size and the modification time of each file of the set.
type Snapshot = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Which state of the files was applied.
#[derive(Default)]
struct Applied {
    snapshot: Option<Snapshot>,
    /// The state at the last poll.
    last: Option<Snapshot>,
}

impl Applied {
    /// Whether this state is to be applied: it is new, and the same as at the last poll. An editor
    /// that saves by renaming removes the file for a moment, and --prune would delete its record.
    fn is_due(&mut self, now: &Snapshot) -> bool {
        let is_stable = self.last.as_ref() == Some(now);
        if !is_stable {
            self.last = Some(now.clone());
        }
        is_stable && self.snapshot.as_ref() != Some(now)
    }
}

/// Applies the folder now and after each change, until the process is stopped. An error is
/// reported once, and the folder is applied again until that succeeds.
#[allow(clippy::print_stderr)]
pub async fn run<R, A>(
    folder: &Path,
    output: Output,
    read: impl Fn() -> R,
    apply: impl Fn(SeedSet) -> A,
) -> anyhow::Result<()>
where
    R: Future<Output = anyhow::Result<SeedSet>>,
    A: Future<Output = anyhow::Result<BootstrapReport>>,
{
    let mut applied = Applied::default();
    let mut last_error = None;
    let mut is_first = true;
    loop {
        let ended = async {
            let now = snapshot(folder.to_owned()).await?;
            if !applied.is_due(&now) {
                return Ok(None);
            }
            let set = read().await?;
            // The files changed while they were read.
            if snapshot(folder.to_owned()).await? != now {
                return Ok(None);
            }
            anyhow::Ok(Some((now, apply(set).await?)))
        };
        match ended.await {
            Ok(None) => {}
            Ok(Some((now, report))) => {
                if is_first {
                    output.note(&format!("watching {}; Ctrl-C stops", folder.display()));
                }
                if is_first || last_error.is_some() || report.has_changes() {
                    report.print_changes(output)?;
                }
                (applied.snapshot, last_error, is_first) = (Some(now), None, false);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Snapshot {
        names.iter().map(|name| (PathBuf::from(name), (1, None))).collect()
    }

    #[test]
    fn a_state_is_applied_once_and_only_if_it_lasts() {
        let mut applied = Applied::default();
        let (both, one) = (files(&["a.json", "b.json"]), files(&["a.json"]));
        assert!(!applied.is_due(&both));
        assert!(applied.is_due(&both));
        applied.snapshot = Some(both.clone());
        assert!(!applied.is_due(&both));
        // A file that is replaced by renaming another is absent at one poll.
        assert!(!applied.is_due(&one));
        assert!(!applied.is_due(&both) && !applied.is_due(&both));
        assert!(!applied.is_due(&one) && applied.is_due(&one));
    }
}

//! `rcrt bootstrap --watch`: applies the folder again whenever one of its files changes.

use std::path::Path;

use super::bootstrap_report::BootstrapReport;
use crate::file_watch::FileWatch;
use crate::output::Output;
use crate::seed::SeedSet;

/// Applies the folder now and after each change, until the process is stopped. An error is
/// reported once, and the folder is applied again until that succeeds.
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
    let mut watch = FileWatch::new(vec![folder.to_owned()]);
    let mut last_error = None;
    let mut is_first = true;
    loop {
        let ended = async {
            let (now, _) = watch.changed().await?;
            let set = read().await?;
            // The files changed while they were read.
            if !watch.is_current(&now).await? {
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
                watch.handled(now);
                (last_error, is_first) = (None, false);
            }
            Err(error) => {
                let text = format!("{error:#}");
                if last_error.as_ref() != Some(&text) {
                    eprintln!("rcrt: {text}; --watch tries again");
                }
                last_error = Some(text);
            }
        }
    }
}

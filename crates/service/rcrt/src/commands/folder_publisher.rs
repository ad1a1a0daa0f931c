//! Publishes tested tools of a folder, as `rcrt bootstrap` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use rcrt_client::Client;
use rcrt_egress::PrivateHost;
use serde::Serialize;

use super::bootstrap;
use super::runner_verdict::Verdict;
use crate::output::Output;
use crate::seed::{self, SeedOutcome, SeedResult, SeedSet};

/// The longest wait for a runner to load a version.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Publisher {
    pub client: Client,
    pub folder: PathBuf,
    pub source: Option<String>,
    pub adopt: bool,
    pub overwrite: bool,
    /// Write drafts, which only their author can call.
    pub as_draft: bool,
    pub allowed: Vec<PrivateHost>,
    pub output: Output,
}

/// What became of one tool.
#[derive(Debug, Serialize)]
pub struct Publication {
    /// Whether the record is as the file says, and no runner refuses it.
    pub is_in_effect: bool,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

impl Publisher {
    /// Reads the folder; the set has only these of its JSON files.
    pub async fn read(&self, paths: &[&Path]) -> anyhow::Result<SeedSet> {
        let (folder, source, allowed) = (self.folder.clone(), self.source.clone(), self.allowed.clone());
        let read = move || bootstrap::read(Some(folder), source.as_deref(), &allowed);
        let mut set = tokio::task::spawn_blocking(read).await.context("reading the files failed")??;
        set.seeds.retain(|seed| paths.contains(&self.folder.join(&seed.path).as_path()));
        set.refused.clear();
        set.warnings.clear();
        Ok(set)
    }

    /// Writes the set, waits for the runners, and returns the result for each file.
    pub async fn publish(&self, set: &SeedSet) -> anyhow::Result<BTreeMap<PathBuf, Publication>> {
        let Self { adopt, overwrite, as_draft, .. } = *self;
        let options = seed::Options { adopt, overwrite, as_draft, ..seed::Options::default() };
        // Only tools without a failed example come here.
        let report = bootstrap::write(&self.client, set, options, None, PATIENCE).await?;
        for warning in &report.warnings {
            self.output.note(&format!("warning: {warning}"));
        }
        let of = |row: &SeedResult| (self.folder.join(&row.path), publication(row, report.verdicts.of(&row.path)));
        Ok(report.rows.iter().map(of).collect())
    }
}

fn publication(row: &SeedResult, verdict: Option<&Verdict>) -> Publication {
    let version = row.version.map(|version| format!("version {version}")).unwrap_or_default();
    let (is_in_effect, text) = match verdict {
        _ if !row.what.is_in_effect() => (false, format!("not published: {}", row.findings.join("; "))),
        Some(Verdict::Refused { problem }) => (false, format!("the runner refuses {version}: {problem}")),
        Some(Verdict::Unknown) => (false, format!("{version} is written, but the runner has not reported on it")),
        Some(Verdict::Replaced) => (true, format!("{version} is written, and another record has its name")),
        Some(Verdict::Draft) if row.what == SeedOutcome::Unchanged => (true, format!("draft {version} is unchanged")),
        Some(Verdict::Draft) => (true, format!("draft {version}")),
        Some(Verdict::Waiting) => (true, format!("published {version}, which waits for a secret or a setting")),
        None => (true, format!("{version} is written; no runner is connected")),
        Some(Verdict::Offered) if row.what == SeedOutcome::Unchanged => (true, format!("{version} is unchanged")),
        Some(Verdict::Offered) => (true, format!("published {version}")),
    };
    Publication { is_in_effect, text, version: row.version }
}

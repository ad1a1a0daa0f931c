//! What `rcrt doctor` says about the content of the database.

use chrono::{DateTime, Utc};
use rcrt_store::{Retention, StoredSize};
use serde::Serialize;
use tokio::time::timeout;
use url::Url;

use super::doctor::{ANSWER_TIME, running_cluster};
use crate::assembly::{self, RetentionOptions};
use crate::config::Config;
use crate::output::{Output, Style};

/// What the database keeps, for how long, and how much of it there is.
#[derive(Serialize)]
pub(super) struct Stored {
    /// `None` if the database does not respond in time, or no server has used it.
    retention: Option<RecordedRetention>,
    /// `None` if the database does not respond in time.
    sizes: Option<Vec<StoredKind>>,
}

/// The options of the server that deleted last.
#[derive(Serialize)]
struct RecordedRetention {
    #[serde(flatten)]
    options: RetentionOptions,
    recorded_at: DateTime<Utc>,
}

#[derive(Serialize)]
struct StoredKind {
    kind: String,
    entries: i64,
    bytes: i64,
    /// `disk`, with indexes, or `contexts`.
    bytes_of: &'static str,
}

impl Stored {
    pub(super) async fn read(config: &Config) -> Self {
        let Some(url) = database_url(config) else { return Self { retention: None, sizes: None } };
        let (retention, sizes) = tokio::join!(
            timeout(ANSWER_TIME, rcrt_store::recorded_retention(&url)),
            timeout(ANSWER_TIME, rcrt_store::stored_sizes(&url)),
        );
        let recorded = |(retention, recorded_at): (Retention, DateTime<Utc>)| RecordedRetention {
            options: retention.into(),
            recorded_at,
        };
        let kind = |StoredSize { kind, entries, bytes, is_on_disk }| {
            let bytes_of = if is_on_disk { "disk" } else { "contexts" };
            StoredKind { kind, entries, bytes, bytes_of }
        };
        let sizes = sizes.ok().and_then(Result::ok).map(|sizes| sizes.into_iter().map(kind).collect());
        Self { retention: retention.ok().and_then(Result::ok).flatten().map(recorded), sizes }
    }

    pub(super) fn print(&self, output: Output) -> anyhow::Result<()> {
        output.line(&format!("\n{}", output.paint(Style::Bold, "Stored:")))?;
        let why = "not known: this needs a running Postgres, and DATABASE_URL for an external one";
        match &self.retention {
            None => output.line(&format!("  the server's retention options are {why}"))?,
            Some(RecordedRetention { options, recorded_at }) => {
                let at = recorded_at.format("%Y-%m-%d %H:%M");
                output.line(&format!("  with the options of the server that deleted last ({at} UTC):"))?;
                for (what, keep, option) in [
                    ("requests, responses", options.keep_calls, "--keep-calls"),
                    ("old versions", options.keep_versions, "--keep-versions"),
                    ("events", options.keep_events, "--keep-events"),
                    ("egress log", options.keep_egress_audit, "--keep-egress-audit"),
                ] {
                    output.line(&format!("  {what:<21}kept {keep} ({option})"))?;
                }
                output.line("  audit log            kept forever")?;
            }
        }
        let Some(sizes) = &self.sizes else { return output.line(&format!("  the sizes are {why}")) };
        for StoredKind { kind, entries, bytes, bytes_of } in sizes {
            let of = if *bytes_of == "disk" { "on disk" } else { "of contexts" };
            output.line(&format!("  {kind:<21}{entries} entries, {:.1} MB {of}", *bytes as f64 / 1e6))?;
        }
        Ok(())
    }
}

/// The URL of the database, for the store's role if it is the embedded one.
fn database_url(config: &Config) -> Option<String> {
    if let Some(url) = std::env::var("DATABASE_URL").ok().filter(|url| !url.is_empty()) {
        return Some(url);
    }
    let mut url = Url::parse(&running_cluster(&config.data)?).ok()?;
    url.set_username(assembly::APP_ROLE).ok()?;
    url.set_path(rcrt_postgres::DATABASE);
    Some(url.into())
}

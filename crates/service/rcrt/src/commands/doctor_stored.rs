//! What `rcrt doctor` says about the content of the database.

use chrono::{DateTime, Utc};
use rcrt_store::StoredSize;
use serde::Serialize;
use tokio::time::timeout;
use url::Url;

use super::doctor::{ANSWER_TIME, running_cluster};
use crate::assembly::{self, DatabaseInfo, RetentionOptions};
use crate::config::Config;
use crate::keys::{KeyKind, Keys};
use crate::output::{Output, Style};

/// What the database keeps, for how long, and how much of it there is.
#[derive(Serialize)]
pub(super) struct Stored {
    /// `None` if the database does not respond in time, or no server has used it.
    retention: Option<RecordedRetention>,
    /// `None` if the database does not respond in time.
    sizes: Option<Vec<StoredKind>>,
    /// The keys that secrets need and the data folder lacks. `None` if the database does not
    /// respond in time.
    missing_keys: Option<Vec<String>>,
    /// A database is set up, and the file of its current key of secrets does not exist.
    is_key_file_missing: bool,
}

/// The options of the server that deleted last.
#[derive(Serialize)]
struct RecordedRetention {
    #[serde(flatten)]
    options: RetentionOptions,
    /// Whether calls and events are archived before they are deleted.
    archive: bool,
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
        let ring = Keys::of(&config.data).ring(KeyKind::Secrets);
        let is_set_up = config.data.join("postgres").is_dir() || DatabaseInfo::read(&config.data).is_some();
        let is_key_file_missing = is_set_up && !ring.present().exists();
        let Some(url) = database_url(config) else {
            return Self { retention: None, sizes: None, missing_keys: None, is_key_file_missing };
        };
        let (retention, sizes, used_keys) = tokio::join!(
            timeout(ANSWER_TIME, rcrt_store::recorded_retention(&url)),
            timeout(ANSWER_TIME, rcrt_store::stored_sizes(&url)),
            timeout(ANSWER_TIME, rcrt_store::used_secrets_keys(&url)),
        );
        let missing_keys = used_keys.ok().and_then(Result::ok).and_then(|used| {
            let known = ring.ids().ok()?;
            Some(used.into_iter().filter(|id| !known.contains(id)).collect())
        });
        let recorded = |recorded: rcrt_store::RecordedRetention| RecordedRetention {
            options: recorded.retention.into(),
            archive: recorded.archives,
            recorded_at: recorded.recorded_at,
        };
        let kind = |StoredSize { kind, entries, bytes, is_on_disk }| {
            let bytes_of = if is_on_disk { "disk" } else { "contexts" };
            StoredKind { kind, entries, bytes, bytes_of }
        };
        let sizes = sizes.ok().and_then(Result::ok).map(|sizes| sizes.into_iter().map(kind).collect());
        let retention = retention.ok().and_then(Result::ok).flatten().map(recorded);
        Self { retention, sizes, missing_keys, is_key_file_missing }
    }

    /// Whether a server would not start, because it cannot decrypt every secret.
    pub(super) fn lacks_keys(&self) -> bool {
        self.missing_keys.as_ref().is_some_and(|missing| !missing.is_empty())
    }

    fn print_missing_keys(&self, output: Output) -> anyhow::Result<()> {
        if self.is_key_file_missing {
            let text = "the file keys/secrets.key of the data folder does not exist";
            output.line(&format!("  {}", output.paint(Style::Bad, text)))?;
        }
        for id in self.missing_keys.iter().flatten() {
            let text = format!("secrets are encrypted under the key {id}, which is not in the folder keys");
            output.line(&format!("  {} (`rcrt keys rewrap` names them)", output.paint(Style::Bad, &text)))?;
        }
        Ok(())
    }

    pub(super) fn print(&self, output: Output) -> anyhow::Result<()> {
        output.line(&format!("\n{}", output.paint(Style::Bold, "Stored:")))?;
        self.print_missing_keys(output)?;
        let why = "not known: this needs a running Postgres, and DATABASE_URL for an external one";
        match &self.retention {
            None => output.line(&format!("  the server's retention options are {why}"))?,
            Some(RecordedRetention { options, archive, recorded_at }) => {
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
                let archived = if *archive { "archived before they are deleted" } else { "not archived" };
                output.line(&format!("  calls, events        {archived} (--archive)"))?;
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
pub(super) fn database_url(config: &Config) -> Option<String> {
    if let Some(url) = std::env::var("DATABASE_URL").ok().filter(|url| !url.is_empty()) {
        return Some(url);
    }
    let mut url = Url::parse(&running_cluster(&config.data)?).ok()?;
    url.set_username(assembly::APP_ROLE).ok()?;
    url.set_path(rcrt_postgres::DATABASE);
    Some(url.into())
}

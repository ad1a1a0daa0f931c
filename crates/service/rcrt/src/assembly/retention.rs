//! How long calls, old versions, events and the egress log are kept.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use rcrt_breadcrumb::ttl_seconds;
use rcrt_store::Retention;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::exit::Failure;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Args, Serialize)]
pub struct RetentionOptions {
    /// How long requests and responses are kept after the end of their call, such as 12h, 30d, 4w
    /// or forever
    #[arg(long, env = "RCRT_KEEP_CALLS", default_value = "30d", value_name = "TIME", value_parser = at_least_an_hour)]
    pub keep_calls: Keep,

    /// How long old versions of records are kept after they were replaced, such as 90d or forever;
    /// at least as long as events
    #[arg(long, env = "RCRT_KEEP_VERSIONS", default_value = "90d", value_name = "TIME", value_parser = at_least_an_hour)]
    pub keep_versions: Keep,

    /// How long events are kept, at least 1d: a subscriber that is away for longer misses events
    #[arg(long, env = "RCRT_KEEP_EVENTS", default_value = "7d", value_name = "TIME", value_parser = at_least_a_day)]
    pub keep_events: Keep,

    /// How long entries of the egress log are kept, such as 12h, 30d or 4w
    #[arg(long, env = "RCRT_KEEP_EGRESS_AUDIT", default_value = "30d", value_name = "TIME", value_parser = limited)]
    pub keep_egress_audit: Keep,
}

/// What a server deletes, and the folder to which it writes calls and events before.
#[derive(Debug, Clone)]
pub struct Pruning {
    pub retention: Retention,
    pub archive: Option<PathBuf>,
}

/// `None`: forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep(Option<Duration>);

impl RetentionOptions {
    /// Refuses old versions that are deleted before the events that show them.
    pub fn check(self) -> Result<(), Failure> {
        match (self.keep_versions.0, self.keep_events.0) {
            (Some(versions), Some(events)) if versions < events => Err(Failure::Usage(format!(
                "--keep-versions {} is less than --keep-events {}; an event shows the version that it reports, so keep \
                 versions at least as long",
                self.keep_versions, self.keep_events
            ))),
            _ => Ok(()),
        }
    }

    pub fn in_store(self) -> Retention {
        let limited = |keep: Keep, default| keep.0.unwrap_or(default);
        let default = Retention::default();
        Retention {
            calls: self.keep_calls.0,
            versions: self.keep_versions.0,
            events: limited(self.keep_events, default.events),
            egress: limited(self.keep_egress_audit, default.egress),
        }
    }
}

impl From<Retention> for RetentionOptions {
    fn from(retention: Retention) -> Self {
        let Retention { calls, versions, events, egress } = retention;
        Self {
            keep_calls: Keep(calls),
            keep_versions: Keep(versions),
            keep_events: Keep(Some(events)),
            keep_egress_audit: Keep(Some(egress)),
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "forever" {
            return Ok(Self(None));
        }
        let seconds = ttl_seconds(&Value::from(text)).ok_or("must be a number and a unit: 12h, 30d, 4w")?;
        Ok(Self(Some(Duration::from_secs(seconds))))
    }
}

impl Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(time) = self.0 else { return f.write_str("forever") };
        let seconds = time.as_secs();
        match (seconds.is_multiple_of(86_400), seconds.is_multiple_of(3600)) {
            (true, _) => write!(f, "{}d", seconds / 86_400),
            (_, true) => write!(f, "{}h", seconds / 3600),
            _ => write!(f, "{seconds}s"),
        }
    }
}

impl Serialize for Keep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn limited(text: &str) -> Result<Keep, String> {
    let keep = text.parse::<Keep>()?;
    if keep.0.is_none() { Err("must be a number and a unit: 12h, 30d, 4w".into()) } else { Ok(keep) }
}

fn at_least_an_hour(text: &str) -> Result<Keep, String> {
    let keep = text.parse::<Keep>().map_err(|error| format!("{error}, or forever"))?;
    if keep.0.is_some_and(|time| time < HOUR) { Err("must be at least 1h".into()) } else { Ok(keep) }
}

fn at_least_a_day(text: &str) -> Result<Keep, String> {
    let keep = limited(text)?;
    if keep.0.is_some_and(|time| time < DAY) { Err("must be at least 1d".into()) } else { Ok(keep) }
}

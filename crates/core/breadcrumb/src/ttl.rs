//! Times to live: the combined meaning of a record's fields `ttl`, `ttl_type` and `ttl_config`.

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::Violations;
use crate::names::names;

/// The longest time to live, in seconds: 100 years.
pub const MAX_TTL_SECONDS: u64 = 3_155_760_000;
/// The most reads that a time to live can allow.
pub const MAX_TTL_READS: u64 = 1_000_000_000;

/// When a record expires: never; at the time `ttl`; `ttl_config.duration` after the write; after
/// its last permitted read (`ttl_config.max_reads`); or by time or reads, whichever comes first
/// (`hybrid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TtlType {
    Never,
    Datetime,
    Duration,
    Usage,
    Hybrid,
}

names!(TtlType, "time to live", {
    Never => "never",
    Datetime => "datetime",
    Duration => "duration",
    Usage => "usage",
    Hybrid => "hybrid",
});

impl TtlType {
    /// Whether reads of such a record are counted.
    pub fn counts_reads(self) -> bool {
        matches!(self, Self::Usage | Self::Hybrid)
    }
}

/// When a record expires by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    Never,
    At(DateTime<Utc>),
    /// This many seconds after the write.
    After(u64),
}

/// A valid time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeToLive {
    pub expiry: Expiry,
    /// How many reads the record permits; `None`: reads are not counted.
    pub max_reads: Option<u64>,
}

impl TimeToLive {
    /// Parses the three fields, or returns the violations with their field names.
    pub fn read(
        ttl: Option<DateTime<Utc>>,
        ttl_type: Option<TtlType>,
        ttl_config: Option<&Value>,
    ) -> Result<Self, Violations> {
        let mut found = Violations::default();
        let empty = Map::new();
        let config = match ttl_config {
            None => &empty,
            Some(Value::Object(config)) => config,
            Some(_) => return Err(Violations::one("ttl_config", "must be an object, such as {\"duration\": 3600}")),
        };
        let seconds = config.get("duration").map(|value| duration(&mut found, "ttl_config.duration", value));
        let reads = config.get("max_reads").map(|value| max_reads(&mut found, value));
        if config.get("hybrid_mode").is_some_and(|mode| mode != "any") {
            found.add(
                "ttl_config.hybrid_mode",
                "must be \"any\": the record ends by time or by reads, whichever comes first",
            );
        }
        // The combination of the fields is checked only if each field is valid.
        found.into_result()?;
        let (seconds, reads) = (seconds.flatten(), reads.flatten());
        let time = ttl.map(Expiry::At).or(seconds.map(Expiry::After));

        let mut found = Violations::default();
        let kind = ttl_type.or(ttl.map(|_| TtlType::Datetime));
        let takes_duration = matches!(kind, Some(TtlType::Duration | TtlType::Hybrid));
        if seconds.is_some() && !takes_duration {
            found.add("ttl_config.duration", "can be set only with ttl_type duration or hybrid");
        }
        if reads.is_some() && !kind.is_some_and(TtlType::counts_reads) {
            found.add("ttl_config.max_reads", "can be set only with ttl_type usage or hybrid");
        }
        match kind {
            Some(TtlType::Never) if ttl.is_some() => {
                found.add("ttl", "cannot be given with ttl_type never; name ttl_type datetime");
            }
            Some(TtlType::Usage) if ttl.is_some() => {
                found.add("ttl", "cannot be given with ttl_type usage; name ttl_type hybrid to end by time or reads");
            }
            Some(TtlType::Datetime) if ttl.is_none() => {
                found.add("ttl", "is required when ttl_type is datetime (RFC 3339, such as 2026-01-31T12:00:00Z)");
            }
            Some(TtlType::Duration) if time.is_none() => found.add("ttl_config.duration", DURATION_REQUIRED),
            Some(TtlType::Hybrid) if time.is_none() => {
                found.add(
                    "ttl_config.duration",
                    "or ttl is required when ttl_type is hybrid: it ends by time or by reads",
                );
            }
            _ => {}
        }
        if kind.is_some_and(TtlType::counts_reads) && reads.is_none() {
            found.add("ttl_config.max_reads", "is required when ttl_type is usage or hybrid: a number of reads from 1");
        }
        found.into_result()?;
        Ok(Self { expiry: time.unwrap_or(Expiry::Never), max_reads: reads })
    }

    /// When a record that is written at `now` expires by time.
    pub fn ends_at(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.expiry {
            Expiry::Never => None,
            Expiry::At(moment) => Some(moment),
            Expiry::After(seconds) => i64::try_from(seconds)
                .ok()
                .and_then(TimeDelta::try_seconds)
                .and_then(|time| now.checked_add_signed(time)),
        }
    }
}

/// Reads the field `ttl`. The error says how a duration is given instead.
pub(crate) fn time<'de, D: Deserializer<'de>>(field: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let time = match Option::<Value>::deserialize(field)? {
        None => return Ok(None),
        Some(Value::String(text)) => text.parse::<DateTime<FixedOffset>>().ok(),
        Some(_) => None,
    };
    let message = "must be a time such as \"2026-01-31T12:00:00Z\"; for a duration, set ttl_type \"duration\" \
                   and ttl_config {\"duration\": \"2h\"}";
    time.map(|time| Some(time.to_utc())).ok_or_else(|| D::Error::custom(message))
}

const DURATION_REQUIRED: &str =
    "is required when ttl_type is duration: a number of seconds above 0, or a text such as \"2h\"";

fn max_reads(found: &mut Violations, value: &Value) -> Option<u64> {
    let reads = value.as_u64().filter(|reads| (1..=MAX_TTL_READS).contains(reads));
    if reads.is_none() {
        found.add("ttl_config.max_reads", format!("must be a whole number from 1 to {MAX_TTL_READS}"));
    }
    reads
}

fn duration(found: &mut Violations, field: &str, value: &Value) -> Option<u64> {
    let seconds = ttl_seconds(value);
    if seconds.is_none() {
        let message = format!(
            "must be a whole number of seconds from 1 to {MAX_TTL_SECONDS}, or a text such as \"90s\", \"15m\", \"2h\" or \"30d\""
        );
        found.add(field, message);
    }
    seconds
}

/// Parses a time to live in seconds: a number, or a number with its unit as RCRT's clients write it
/// (`2h`, `24 hours`). `None` for anything else, and outside of 1 second to 100 years.
pub fn ttl_seconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::String(text) => {
            let text = text.trim();
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let (number, unit) = text.split_at(digits);
            let unit = match unit.trim() {
                "s" | "sec" | "second" | "seconds" => 1,
                "m" | "min" | "minute" | "minutes" => 60,
                "h" | "hour" | "hours" => 3600,
                "d" | "day" | "days" => 86_400,
                "w" | "week" | "weeks" => 604_800,
                _ => return None,
            };
            number.parse::<u64>().ok()?.checked_mul(unit)?
        }
        number => number.as_u64()?,
    };
    (1..=MAX_TTL_SECONDS).contains(&seconds).then_some(seconds)
}

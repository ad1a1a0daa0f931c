//! The retention options that the servers of a database use, recorded for `rcrt doctor`.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};

use crate::Retention;
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;

pub(crate) const OTHER_OPTIONS: &str = "another server of this database uses other retention options, and each server \
    deletes by its own; start all with the same --keep-calls, --keep-versions, --keep-events, --keep-egress-audit and \
    --archive";

/// Records the options of this server. Returns whether another server has recorded others since.
pub(crate) async fn record(database: &Arc<Database>, retention: Retention, archives: bool) -> Result<bool> {
    let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let mut tx = database.begin("BEGIN").await?;
    let differs: bool = sqlx::query_scalar("SELECT record_retention($1, $2, $3, $4, $5)")
        .bind(retention.calls.map(seconds))
        .bind(retention.versions.map(seconds))
        .bind(seconds(retention.events))
        .bind(seconds(retention.egress))
        .bind(archives)
        .fetch_one(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(differs)
}

/// What a server recorded when it deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedRetention {
    pub retention: Retention,
    /// Whether it archives calls and events before.
    pub archives: bool,
    pub recorded_at: DateTime<Utc>,
}

from_row! {
    struct Recorded {
        calls: Option<i64>,
        versions: Option<i64>,
        events: i64,
        egress: i64,
        archives: bool,
        recorded_at: DateTime<Utc>,
    }
}

/// The options of the server that deleted last in the database at this URL. `None` if no server has
/// used the database.
pub async fn recorded_retention(url: &str) -> Result<Option<RecordedRetention>, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let recorded: Result<Option<Recorded>, sqlx::Error> =
        sqlx::query_as("SELECT * FROM public.recorded_retention()").fetch_optional(&mut connection).await;
    let _ = connection.close().await;
    let time = |seconds: i64| Duration::from_secs(seconds.unsigned_abs());
    Ok(recorded?.map(|recorded| RecordedRetention {
        retention: Retention {
            calls: recorded.calls.map(time),
            versions: recorded.versions.map(time),
            events: time(recorded.events),
            egress: time(recorded.egress),
        },
        archives: recorded.archives,
        recorded_at: recorded.recorded_at,
    }))
}

//! Counts and durations of finished calls. The write of a response adds a row to `call_outcomes`;
//! housekeeping counts these rows into `call_stats`, a histogram for each tool and interval, and
//! deletes them. A reader adds up both, so that the counts are exact at any time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use rcrt_breadcrumb::{CallInterval, CallStats, CallStatsQuery, Percentiles, ToolStats, UnfinishedCalls};
use uuid::Uuid;

use crate::database::Database;
use crate::database::batches::{repeat, tenants};
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

/// Rows that one transaction counts.
const BATCH: i64 = 20_000;
/// The longest window that is read by minutes.
const BY_MINUTES: u64 = 3 * 60 * 60;
/// How long minutes and hours are stored: the longest windows that are read from them, and one
/// interval.
const MINUTES_KEPT: TimeDelta = TimeDelta::hours(4);
const HOURS_KEPT: TimeDelta = TimeDelta::days(32);

from_row! {
    struct OutcomeCount {
        tool: String,
        error_code: String,
        bucket: i16,
        totals: i64,
        runs: i64,
    }
}

from_row! {
    struct IntervalRow {
        start: DateTime<Utc>,
        bucket: i16,
        calls: i64,
        failed: i64,
    }
}

/// What is counted and what is not yet.
macro_rules! every {
    () => {
        "WITH every AS (
            SELECT start, tool, error_code, bucket, totals, runs FROM call_stats
            WHERE owner_id = $1 AND width = $2 AND start >= $3 AND ($4::text IS NULL OR tool = $4)
            UNION ALL
            SELECT date_bin(make_interval(secs => $2), o.finished_at, '2000-01-01Z'),
                o.tool, coalesce(o.error_code, ''), p.bucket, p.totals, p.runs
            FROM call_outcomes o CROSS JOIN LATERAL (
                SELECT duration_bucket(o.total_us) AS bucket, 1::bigint AS totals, 0::bigint AS runs
                UNION ALL SELECT duration_bucket(o.run_us), 0, 1 WHERE o.run_us IS NOT NULL) p
            WHERE o.owner_id = $1 AND o.finished_at >= $3 AND ($4::text IS NULL OR o.tool = $4))"
    };
}

const BY_BUCKET: &str = concat!(
    every!(),
    " SELECT tool, error_code, bucket, sum(totals)::bigint AS totals, sum(runs)::bigint AS runs
     FROM every GROUP BY tool, error_code, bucket"
);
const BY_INTERVAL: &str = concat!(
    every!(),
    " SELECT start, bucket, sum(totals)::bigint AS calls,
        coalesce(sum(totals) FILTER (WHERE error_code <> ''), 0)::bigint AS failed
     FROM every GROUP BY start, bucket"
);

pub(crate) async fn read(mut tx: TenantTransaction, query: &CallStatsQuery) -> Result<CallStats> {
    let width = if query.window_seconds <= BY_MINUTES { 60 } else { 3600 };
    let until = Utc::now();
    let window = TimeDelta::seconds(query.window_seconds.cast_signed());
    let since = (until - window).duration_trunc(TimeDelta::seconds(width)).unwrap_or(until - window);
    let owner_id = tx.owner_id;
    let rows: Vec<OutcomeCount> = sqlx::query_as(BY_BUCKET)
        .bind(owner_id)
        .bind(width as i32)
        .bind(since)
        .bind(&query.tool)
        .fetch_all(tx.connection())
        .await?;
    let intervals: Vec<IntervalRow> = sqlx::query_as(BY_INTERVAL)
        .bind(owner_id)
        .bind(width as i32)
        .bind(since)
        .bind(&query.tool)
        .fetch_all(tx.connection())
        .await?;
    let (mut all, mut by_tool) = (Histograms::default(), BTreeMap::<String, Histograms>::new());
    for row in &rows {
        all.add(row);
        by_tool.entry(row.tool.clone()).or_default().add(row);
    }
    let seconds = (until - since).num_milliseconds().max(1) as f64 / 1000.0;
    let mut tools: Vec<ToolStats> =
        by_tool.into_iter().map(|(tool, counted)| counted.stats(Some(tool), seconds)).collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
    let interval_seconds = width as u32;
    Ok(CallStats {
        since,
        until,
        interval_seconds,
        all: all.stats(None, seconds),
        tools,
        intervals: by_interval(&intervals),
    })
}

/// The intervals in which calls finished, oldest first.
fn by_interval(rows: &[IntervalRow]) -> Vec<CallInterval> {
    let mut intervals = BTreeMap::<DateTime<Utc>, (BTreeMap<i16, u64>, u64)>::new();
    for row in rows {
        let (histogram, failed) = intervals.entry(row.start).or_default();
        *histogram.entry(row.bucket).or_default() += row.calls.unsigned_abs();
        *failed += row.failed.unsigned_abs();
    }
    let interval = |(start, (histogram, failed)): (DateTime<Utc>, (BTreeMap<i16, u64>, u64))| CallInterval {
        start,
        calls: histogram.values().sum(),
        failed,
        duration_ms: percentiles(&histogram),
    };
    intervals.into_iter().map(interval).filter(|interval| interval.calls > 0).collect()
}

#[derive(Default)]
struct Histograms {
    totals: BTreeMap<i16, u64>,
    runs: BTreeMap<i16, u64>,
    failures: BTreeMap<String, u64>,
}

impl Histograms {
    fn add(&mut self, row: &OutcomeCount) {
        let (totals, runs) = (row.totals.unsigned_abs(), row.runs.unsigned_abs());
        *self.totals.entry(row.bucket).or_default() += totals;
        *self.runs.entry(row.bucket).or_default() += runs;
        if !row.error_code.is_empty() && totals > 0 {
            *self.failures.entry(row.error_code.clone()).or_default() += totals;
        }
    }

    fn stats(self, tool: Option<String>, seconds: f64) -> ToolStats {
        let calls: u64 = self.totals.values().sum();
        ToolStats {
            tool,
            calls,
            per_second: calls as f64 / seconds,
            failed: self.failures.values().sum(),
            failures: self.failures,
            duration_ms: percentiles(&self.totals),
            run_ms: percentiles(&self.runs),
        }
    }
}

fn percentiles(histogram: &BTreeMap<i16, u64>) -> Percentiles {
    let count: u64 = histogram.values().sum();
    let at = |percent: u64| {
        // The nearest rank, from 1.
        let rank = (count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = histogram.iter().find(|(_, calls)| {
            seen += **calls;
            seen >= rank
        });
        bucket.map_or(0.0, |(bucket, _)| middle_ms(*bucket))
    };
    Percentiles { p50: at(50), p95: at(95), p99: at(99) }
}

/// The geometric middle of a bucket of the SQL function `duration_bucket`, in milliseconds. No
/// duration in the bucket differs from it by more than a factor of 2^(1/8), which is 9.1 %.
fn middle_ms(bucket: i16) -> f64 {
    if bucket == 0 {
        return 0.0;
    }
    let us = ((f64::from(bucket) - 0.5) / 4.0).exp2();
    us.round().max(1.0) / 1000.0
}

/// Counts outcomes of the transaction's tenant. Returns how many: at most a batch, so call it again
/// until it returns 0. Both statements are one, so that a crash cannot count a call twice.
pub(crate) async fn count(mut tx: TenantTransaction) -> Result<usize> {
    let counted: i64 = sqlx::query_scalar(
        "WITH taken AS (
            DELETE FROM call_outcomes WHERE owner_id = current_tenant() AND ctid = ANY (ARRAY(
                SELECT ctid FROM call_outcomes WHERE owner_id = current_tenant() LIMIT $1))
            RETURNING *),
        points AS (
            SELECT tool, error_code, finished_at, duration_bucket(total_us) AS bucket, 1 AS totals, 0 AS runs FROM taken
            UNION ALL
            SELECT tool, error_code, finished_at, duration_bucket(run_us), 0, 1 FROM taken WHERE run_us IS NOT NULL),
        added AS (
            INSERT INTO call_stats AS s (owner_id, width, start, tool, error_code, bucket, totals, runs)
            SELECT current_tenant(), w.width, date_bin(make_interval(secs => w.width), p.finished_at, '2000-01-01Z') AS start,
                p.tool, coalesce(p.error_code, '') AS code, p.bucket, sum(p.totals), sum(p.runs)
            FROM points p CROSS JOIN (VALUES (60), (3600)) AS w (width)
            GROUP BY w.width, start, p.tool, code, p.bucket
            ORDER BY w.width, start, p.tool, code, p.bucket
            ON CONFLICT (owner_id, width, start, tool, error_code, bucket) DO UPDATE
            SET totals = s.totals + EXCLUDED.totals, runs = s.runs + EXCLUDED.runs)
        SELECT count(*) FROM taken",
    )
    .bind(BATCH)
    .fetch_one(tx.connection())
    .await?;
    tx.commit().await?;
    Ok(usize::try_from(counted).unwrap_or_default())
}

/// Counts the outcomes of all tenants.
pub(crate) async fn count_all(database: &Arc<Database>) -> Result<()> {
    for tenant in tenants(database, "SELECT tenants_with_call_outcomes()").await? {
        repeat(database, tenant, Duration::MAX, count).await?;
    }
    Ok(())
}

/// Deletes intervals that are past their retention, in all tenants. Returns how many rows.
pub(crate) async fn prune(database: &Arc<Database>) -> Result<usize> {
    let (now, mut count) = (Utc::now(), 0);
    for tenant in tenants(database, "SELECT tenants_with_call_stats()").await? {
        let mut tx = TenantTransaction::begin(database, tenant).await?;
        for (width, kept) in [(60, MINUTES_KEPT), (3600, HOURS_KEPT)] {
            let pruned =
                sqlx::query("DELETE FROM call_stats WHERE owner_id = current_tenant() AND width = $1 AND start < $2")
                    .bind(width)
                    .bind(now - kept)
                    .execute(tx.connection())
                    .await?;
            count += pruned.rows_affected();
        }
        tx.commit().await?;
    }
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

from_row! {
    struct UnfinishedRow {
        owner_id: Uuid,
        tool: String,
        queued: i64,
        claimed: i64,
        running: i64,
        oldest_ms: Option<f64>,
    }
}

/// The unfinished calls of all tenants, from the indexes of the queue.
pub(crate) async fn unfinished(database: &Arc<Database>) -> Result<Vec<UnfinishedCalls>> {
    let mut tx = database.begin("BEGIN").await?;
    let rows: Vec<UnfinishedRow> = sqlx::query_as("SELECT * FROM unfinished_calls()").fetch_all(&mut *tx).await?;
    let calls = rows.into_iter().map(|row| UnfinishedCalls {
        owner_id: row.owner_id,
        tool: row.tool,
        queued: row.queued.unsigned_abs(),
        claimed: row.claimed.unsigned_abs(),
        running: row.running.unsigned_abs(),
        oldest_ms: row.oldest_ms,
    });
    Ok(calls.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use rcrt_breadcrumb::Tenancy;
    use rcrt_test_database::TestDatabase;
    use serde_json::Value;
    use sqlx::AssertSqlSafe;

    use super::*;
    use crate::{SecretsKey, Store, StoreOptions};

    /// The tables that a plan reads.
    fn tables(plan: &Value, found: &mut BTreeSet<String>) {
        match plan {
            Value::Array(parts) => parts.iter().for_each(|part| tables(part, found)),
            Value::Object(parts) => {
                found.extend(parts.get("Relation Name").and_then(Value::as_str).map(str::to_owned));
                parts.values().for_each(|part| tables(part, found));
            }
            _ => {}
        }
    }

    /// So their cost does not depend on the number of calls. Outcomes are deleted when they are
    /// counted, within a second.
    #[tokio::test]
    async fn statistics_read_neither_calls_nor_records() {
        let database = TestDatabase::new().await;
        let options = StoreOptions {
            app_url: Some(database.app_url.clone()),
            ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
        };
        let store = Store::open(options, &|_| {}).await.unwrap();
        let tenant = store.ensure_tenant("one").await.unwrap().id;
        for sql in [BY_BUCKET, BY_INTERVAL] {
            let mut tx = TenantTransaction::begin(&store.inner.database, tenant).await.unwrap();
            let plan: sqlx::types::Json<Value> =
                sqlx::query_scalar(AssertSqlSafe(format!("EXPLAIN (FORMAT JSON) {sql}")))
                    .bind(tenant)
                    .bind(3600)
                    .bind(Utc::now())
                    .bind(None::<String>)
                    .fetch_one(tx.connection())
                    .await
                    .unwrap();
            let mut found = BTreeSet::new();
            tables(&plan.0, &mut found);
            assert_eq!(found, ["call_outcomes".to_owned(), "call_stats".to_owned()].into());
        }
        store.close().await;
    }

    #[test]
    fn percentiles_are_within_ten_percent() {
        // Every whole millisecond from 1 to 1000 once, in the buckets of the SQL function.
        let mut histogram = BTreeMap::new();
        for ms in 1..=1000_u32 {
            let bucket = (4.0 * (f64::from(ms) * 1000.0).log2()).floor() as i16 + 1;
            *histogram.entry(bucket).or_insert(0) += 1;
        }
        let found = percentiles(&histogram);
        for (found, exact) in [(found.p50, 500.0), (found.p95, 950.0), (found.p99, 990.0)] {
            assert!((found / exact - 1.0_f64).abs() < 0.1, "{found} for {exact}");
        }
        assert_eq!(percentiles(&BTreeMap::new()), Percentiles::default());
    }
}

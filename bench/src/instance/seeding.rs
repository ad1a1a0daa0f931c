//! Fills a store by SQL, which is much faster than the API, with rows as the API writes them:
//! finished calls, notes, and tools.

use std::path::Path;

use anyhow::Context;
use rcrt_postgres::PostgresOptions;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use uuid::Uuid;

/// The number of events, and so of records, that one transaction can number.
const BATCH: u64 = 4_000;

/// For an instance with a filled store: embedding the records that SQL wrote would take hours and
/// disturb the measurement.
pub const QUIET: &[&str] = &["--embeddings", "off"];

/// What a store is filled with.
#[derive(Debug, Clone, Copy)]
pub struct Filling {
    /// Nine tenths are requests with their responses, the rest are notes.
    pub records: u64,
    /// Like `adding`, named `bench-many-<n>`.
    pub tools: u64,
}

/// Fills the store of a data folder on which `rcrt up` has run, and is not running now.
pub async fn fill(data: &Path, filling: Filling) -> anyhow::Result<()> {
    let options =
        PostgresOptions { data_dir: data.to_owned(), cache_dir: rcrt_postgres::default_cache_dir(), durable: true };
    let server = Box::pin(rcrt_postgres::start(options, &|_| {})).await.context("the store's Postgres")?;
    let url = server.url(rcrt_postgres::SUPERUSER, rcrt_postgres::DATABASE);
    let pool = PgPoolOptions::new().max_connections(2).connect(&url).await?;
    let filled = write(&pool, filling).await;
    pool.close().await;
    server.stop().await;
    filled
}

async fn write(pool: &PgPool, filling: Filling) -> anyhow::Result<()> {
    let (tenant, agent): (Uuid, Uuid) =
        sqlx::query_as("SELECT owner_id, id FROM agents WHERE name = 'first' AND deleted_at IS NULL")
            .fetch_one(pool)
            .await
            .context("the store has no agent `first`; start `rcrt up` on it before")?;
    for (statement, rows, records_each) in
        [(TOOLS, filling.tools, 1), (NOTES, filling.records / 10, 1), (CALLS, filling.records * 9 / 20, 2)]
    {
        let step = BATCH / records_each;
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + step);
            sqlx::query(statement)
                .bind(i64::try_from(from)?)
                .bind(i64::try_from(to)? - 1)
                .bind(tenant)
                .bind(agent)
                .execute(pool)
                .await
                .context("the store cannot be filled")?;
            from = to;
        }
    }
    for table in ["breadcrumbs", "breadcrumb_tags", "events", "calls"] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("VACUUM (ANALYZE) {table}"))).execute(pool).await?;
    }
    // Write everything to its final place now, not during a measurement.
    sqlx::raw_sql("CHECKPOINT").execute(pool).await?;
    Ok(())
}

/// `row` has the fields of a record (id, title, context, tags, `schema_name`), and its place in the
/// transaction.
macro_rules! written {
    ($rows:literal, $finally:literal) => {
        concat!(
            "WITH row AS MATERIALIZED (",
            $rows,
            "), record AS (
                INSERT INTO breadcrumbs (id, owner_id, title, context, tags, schema_name, visibility, sensitivity,
                    version, checksum, size_bytes, created_at, updated_at, created_by, updated_by, words)
                SELECT id, $3, title, context, tags, schema_name, 'team', 'low', 1,
                    encode(sha256(context::text::bytea), 'hex'), length(context::text), now(), now(), $4, $4,
                    setweight(to_tsvector('english', title), 'A')
                        || setweight(to_tsvector('english', array_to_string(tags, ' ')), 'B')
                        || setweight(to_tsvector('english', context), 'C')
                FROM row),
            tag AS (
                INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id) SELECT $3, unnest(tags), id FROM row), ",
            $finally,
            " INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
            SELECT $3, event_number(event_index::integer), 'breadcrumb.created', id, 1, now(), length(context::text) FROM row"
        )
    };
}

const TOOLS: &str = written!(
    "SELECT uuidv7() AS id, name AS title, row_number() OVER () - 1 AS event_index, 'tool.code.v1' AS schema_name,
        ARRAY['tool', 'tool:' || name, 'workspace:tools'] AS tags,
        json_build_object('name', name, 'description', 'A tool of the bench.', 'version', '1.0.0',
            'code', json_build_object('language', 'typescript', 'source',
                'export async function execute(input: { a: number; b: number }): Promise<{ sum: number }> {'
                || ' return { sum: input.a + input.b }; }'),
            'input_schema', json '{\"type\": \"object\", \"required\": [\"a\", \"b\"], \"properties\":
                {\"a\": {\"type\": \"number\", \"description\": \"A number.\"},
                 \"b\": {\"type\": \"number\", \"description\": \"A number.\"}}}',
            'output_schema', json '{}',
            'examples', json '[{\"description\": \"One and two.\", \"input\": {\"a\": 1, \"b\": 2}}]') AS context
    FROM (SELECT 'bench-many-' || n AS name FROM generate_series($1, $2) n)",
    "nothing AS (SELECT 1)"
);

const NOTES: &str = written!(
    "SELECT uuidv7() AS id, 'Note ' || n AS title, row_number() OVER () - 1 AS event_index, 'note.v1' AS schema_name,
        ARRAY['note', 'workspace:w' || n % 1000] AS tags,
        json_build_object('number', n, 'text', 'Something to remember, number ' || n) AS context
    FROM generate_series($1, $2) n",
    "nothing AS (SELECT 1)"
);

const CALLS: &str = written!(
    "SELECT CASE WHEN part = 0 THEN request ELSE response END AS id, row_number() OVER () - 1 AS event_index, part, request,
        response, n,
        CASE WHEN part = 0 THEN 'Call bench-many-1' ELSE 'Answer of bench-many-1' END AS title,
        CASE WHEN part = 0 THEN 'tool.request.v1' ELSE 'tool.response.v1' END AS schema_name,
        CASE WHEN part = 0 THEN ARRAY['tool:request'] ELSE ARRAY['tool:response', 'request:seeded-' || n] END AS tags,
        CASE WHEN part = 0
            THEN json_build_object('tool', 'bench-many-1', 'input', json_build_object('a', n, 'b', 2),
                'requestId', 'seeded-' || n)
            ELSE json_build_object('request_id', 'seeded-' || n, 'tool', 'bench-many-1', 'status', 'success',
                'output', json_build_object('sum', n + 2)) END AS context
    FROM (SELECT n, uuidv7() AS request, uuidv7() AS response FROM generate_series($1, $2) n) pair,
        generate_series(0, 1) part",
    "call AS (
        INSERT INTO calls (request, owner_id, state, tool, request_id, agent_id, attempt, response, finished_at)
        SELECT request, $3, 'finished', 'bench-many-1', 'seeded-' || n, $4, 1, response, now() FROM row WHERE part = 0)"
);

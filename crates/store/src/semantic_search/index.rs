//! The index of one model's vectors, built while the system runs.

use breadcrumb::EmbeddingModel;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// What an index can be made of: so many numbers as they are, and so many as halves.
const MAX_WHOLE: usize = 2000;
const MAX_HALVES: usize = 4000;
/// Under which one process at a time makes it.
const LOCK: i64 = 0x7263_7274_656d_6264;

/// Makes the index of this model where there is none. It is one of this model alone, since vectors of two models have neither a
/// distance nor one length. Longer vectors than it can take are compared one by one.
pub(super) async fn ensure(admin: &PgConnectOptions, number: i32, model: &EmbeddingModel) -> Result<(), sqlx::Error> {
    if model.dimensions > MAX_HALVES {
        return Ok(());
    }
    // It takes as long as it needs and blocks nothing.
    let admin = admin.clone().options([
        ("statement_timeout", "0"),
        ("maintenance_work_mem", "128MB"),
        // Workers would take their memory from /dev/shm, of which a container has 64 MB, and processors from the calls.
        ("max_parallel_maintenance_workers", "0"),
    ]);
    let mut connection = PgConnection::connect_with(&admin).await?;
    let made = make(&mut connection, number, model.dimensions).await;
    // The lock ends with the connection. Closing politely can only fail when it is gone already.
    let _ = connection.close().await;
    made
}

async fn make(connection: &mut PgConnection, number: i32, dimensions: usize) -> Result<(), sqlx::Error> {
    let is_indexed: bool = sqlx::query_scalar("SELECT is_indexed FROM embedding_models WHERE id = $1")
        .bind(number)
        .fetch_one(&mut *connection)
        .await?;
    let is_ours: bool =
        sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK).fetch_one(&mut *connection).await?;
    if is_indexed || !is_ours {
        return Ok(());
    }
    tracing::info!("making the index for search by meaning; meanwhile vectors are compared one by one");
    let kind = if dimensions <= MAX_WHOLE { "vector" } else { "halfvec" };
    let name = format!("breadcrumb_embeddings_nearest_{number}");
    for statement in [
        // One that was interrupted is there and no good.
        format!("DROP INDEX CONCURRENTLY IF EXISTS {name}"),
        format!(
            "CREATE INDEX CONCURRENTLY {name} ON breadcrumb_embeddings \
             USING hnsw ((embedding::{kind}({dimensions})) {kind}_cosine_ops) WHERE model = {number}"
        ),
        format!("UPDATE embedding_models SET is_indexed = true WHERE id = {number}"),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut *connection).await?;
    }
    Ok(())
}

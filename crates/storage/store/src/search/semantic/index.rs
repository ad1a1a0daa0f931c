//! The index of one model's vectors, built while the system runs.

use rcrt_breadcrumb::EmbeddingModel;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// The most dimensions of an index on full-precision vectors, and on half-precision vectors.
const MAX_WHOLE: usize = 2000;
const MAX_HALVES: usize = 4000;
/// The advisory lock under which one process at a time builds the index.
const LOCK: i64 = 0x7263_7274_656d_6264;

/// Builds the index of this model if there is none. An index covers one model, because vectors of
/// two models have different lengths and no distance. Vectors that are too long for an index are
/// compared one by one.
pub(super) async fn ensure(admin: &PgConnectOptions, number: i32, model: &EmbeddingModel) -> Result<(), sqlx::Error> {
    if model.dimensions > MAX_HALVES {
        return Ok(());
    }
    // Without a timeout: it blocks nothing.
    let admin = admin.clone().options([
        ("statement_timeout", "0"),
        ("maintenance_work_mem", "128MB"),
        // Parallel workers would use memory of /dev/shm, of which a container has 64 MB, and
        // processors that calls need.
        ("max_parallel_maintenance_workers", "0"),
    ]);
    let mut connection = PgConnection::connect_with(&admin).await?;
    let made = make(&mut connection, number, model.dimensions).await;
    // Closing the connection releases the lock. It can only fail if the connection is already gone.
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
    tracing::info!("building the index for semantic search; until then vectors are compared one by one");
    let kind = if dimensions <= MAX_WHOLE { "vector" } else { "halfvec" };
    let name = format!("breadcrumb_embeddings_nearest_{number}");
    for statement in [
        // An interrupted build leaves an invalid index.
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

//! The tag `author:curator` in rows that were written before the store reserved it.

use rcrt_store::MIGRATOR;
use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

/// The newest migration before the one that removes forged tags.
const BEFORE: i64 = 122;
const TENANT: Uuid = Uuid::from_u128(0x7000_8000_0000_0000_0001);
const CURATOR: Uuid = Uuid::from_u128(1);
const EMITTER: Uuid = Uuid::from_u128(2);
const FORMER_CURATOR: Uuid = Uuid::from_u128(3);

async fn record(admin: &mut PgConnection, schema_name: &str, author: Uuid, version: i64) -> Uuid {
    let id = Uuid::new_v4();
    sqlx::query(
        "WITH record AS (
            INSERT INTO breadcrumbs (id, owner_id, title, context, tags, schema_name, visibility, sensitivity, version,
                checksum, size_bytes, created_at, updated_at, created_by, updated_by, words)
            VALUES ($1, $2, 'Tool', '{}', '{kept,author:curator}', $3, 'team', 'low', $5, '', 2, now(), now(), $4, $4, ''))
         INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id) VALUES ($2, 'kept', $1), ($2, 'author:curator', $1)",
    )
    .bind(id)
    .bind(TENANT)
    .bind(schema_name)
    .bind(author)
    .bind(version)
    .execute(admin)
    .await
    .unwrap();
    id
}

async fn old_version(admin: &mut PgConnection, id: Uuid, version: i64, author: Uuid) {
    sqlx::query(
        "INSERT INTO breadcrumb_versions (breadcrumb_id, version, owner_id, title, context, tags, schema_name, checksum,
            updated_at, updated_by)
         VALUES ($1, $2, $3, 'Tool', '{}', '{author:curator,kept}', 'tool.code.v1', '', now(), $4)",
    )
    .bind(id)
    .bind(version)
    .bind(TENANT)
    .bind(author)
    .execute(admin)
    .await
    .unwrap();
}

#[tokio::test]
async fn the_migration_keeps_the_tag_only_on_curators_tools() {
    let database = TestDatabase::empty().await;
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    MIGRATOR.run_to(BEFORE, &mut admin).await.unwrap();
    sqlx::query("INSERT INTO tenants (id, name) VALUES ($1, 'one')").bind(TENANT).execute(&mut admin).await.unwrap();
    for (id, roles, is_deleted) in
        [(CURATOR, "{curator}", false), (EMITTER, "{emitter}", false), (FORMER_CURATOR, "{curator}", true)]
    {
        sqlx::query(
            "INSERT INTO agents (id, owner_id, name, roles, key_hash, deleted_at)
             VALUES ($1, $2, $1::text, $3::text[], '', CASE WHEN $4 THEN now() END)",
        )
        .bind(id)
        .bind(TENANT)
        .bind(roles)
        .bind(is_deleted)
        .execute(&mut admin)
        .await
        .unwrap();
    }
    let forged = record(&mut admin, "tool.code.v1", EMITTER, 1).await;
    let genuine = record(&mut admin, "tool.code.v1", CURATOR, 3).await;
    old_version(&mut admin, genuine, 1, EMITTER).await;
    old_version(&mut admin, genuine, 2, CURATOR).await;
    let formers = record(&mut admin, "tool.code.v1", FORMER_CURATOR, 1).await;
    let note = record(&mut admin, "note.v1", EMITTER, 1).await;

    MIGRATOR.run(&mut admin).await.unwrap();

    for (id, is_kept) in [(forged, false), (genuine, true), (formers, false), (note, true)] {
        let expected: &[&str] = if is_kept { &["author:curator", "kept"] } else { &["kept"] };
        let tags: Vec<String> = sqlx::query_scalar("SELECT unnest(tags) FROM breadcrumbs WHERE id = $1 ORDER BY 1")
            .bind(id)
            .fetch_all(&mut admin)
            .await
            .unwrap();
        assert_eq!(tags, expected);
        let listed: Vec<String> =
            sqlx::query_scalar("SELECT tag FROM breadcrumb_tags WHERE breadcrumb_id = $1 ORDER BY tag")
                .bind(id)
                .fetch_all(&mut admin)
                .await
                .unwrap();
        assert_eq!(listed, expected);
    }
    let marked: Vec<i64> = sqlx::query_scalar(
        "SELECT version FROM breadcrumb_versions WHERE breadcrumb_id = $1 AND 'author:curator' = ANY (tags)",
    )
    .bind(genuine)
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert_eq!(marked, [2]);
}

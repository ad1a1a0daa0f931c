//! The versions of a record.

use rcrt_breadcrumb::{BreadcrumbVersion, StoreError};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::rows::row::VersionRow;

/// Newest first, including the current version.
pub(crate) async fn read(tx: &mut TenantTransaction, id: Uuid) -> Result<Vec<BreadcrumbVersion>> {
    let rows: Vec<VersionRow> = sqlx::query_as(
        "WITH record AS (
            SELECT * FROM breadcrumbs WHERE id = $1 AND (ttl IS NULL OR ttl > clock_timestamp()))
        SELECT version, title, context, tags, schema_name, checksum, updated_at, updated_by FROM record
        UNION ALL
        SELECT v.version, v.title, v.context, v.tags, v.schema_name, v.checksum, v.updated_at, v.updated_by
        FROM breadcrumb_versions v JOIN record ON v.owner_id = record.owner_id AND v.breadcrumb_id = record.id
        ORDER BY version DESC",
    )
    .bind(id)
    .fetch_all(tx.connection())
    .await?;
    if rows.is_empty() {
        return Err(StoreError::NotFound { what: "breadcrumb", id }.into());
    }
    Ok(rows.into_iter().map(BreadcrumbVersion::from).collect())
}

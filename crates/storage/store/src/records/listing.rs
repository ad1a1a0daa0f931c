//! Lists of records.

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use rcrt_breadcrumb::{BreadcrumbListItem, BreadcrumbQuery, StoreError, Violations};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::records::selector_sql::Conditions;
use crate::rows::row::Context;

/// The most bytes of contexts in one response, to bound the memory of client and server.
const MAX_ANSWER_BYTES: i64 = 64 * 1024 * 1024;

from_row! {
    pub(crate) struct ItemRow {
        id: Uuid,
        owner_id: Option<Uuid>,
        title: String,
        tags: Vec<String>,
        schema_name: Option<String>,
        version: i64,
        updated_at: DateTime<Utc>,
        size_bytes: i64,
        context: Option<Context>,
        redacted: bool,
    }
}

impl ItemRow {
    pub(crate) fn columns(include_context: bool) -> &'static str {
        if include_context {
            "b.id, NULLIF(b.owner_id, current_tenant()) AS owner_id, b.title, b.tags, b.schema_name, b.version, \
             b.updated_at, b.size_bytes, CASE WHEN b.sensitivity = 'secret' THEN '{}' ELSE b.context END AS context, \
             b.sensitivity = 'secret' AS redacted"
        } else {
            "b.id, NULLIF(b.owner_id, current_tenant()) AS owner_id, b.title, b.tags, b.schema_name, b.version, \
             b.updated_at, 0::bigint AS size_bytes, NULL::json AS context, false AS redacted"
        }
    }
}

impl From<ItemRow> for BreadcrumbListItem {
    fn from(row: ItemRow) -> Self {
        Self {
            id: row.id,
            owner_id: row.owner_id,
            title: row.title,
            tags: row.tags,
            schema_name: row.schema_name,
            version: row.version,
            updated_at: row.updated_at,
            context: row.context.map(|json| json.0),
            redacted: row.redacted,
            score: None,
        }
    }
}

/// Lists records. `shared_with`: also includes what other tenants have shared with this agent.
pub(crate) async fn list(
    tx: &mut TenantTransaction,
    query: &BreadcrumbQuery,
    shared_with: Option<Uuid>,
) -> Result<Vec<BreadcrumbListItem>> {
    let mut conditions = Conditions::new();
    conditions.select(&query.selector);
    let (limit, offset) = (query.limit, query.offset);
    let from = match shared_with {
        None => format!("breadcrumbs b WHERE {}", conditions.sql()),
        Some(agent) => format!(
            "((SELECT b.* FROM breadcrumbs b WHERE {own} ORDER BY b.updated_at DESC, b.id LIMIT {most}) \
             UNION ALL (SELECT b.* FROM shared_breadcrumbs('{agent}') b WHERE {shared})) b",
            shared = conditions.shared(&query.selector),
            own = conditions.sql(),
            most = u64::from(limit) + u64::from(offset),
        ),
    };
    let sql = format!(
        "SELECT {columns} FROM {from} ORDER BY b.updated_at DESC, b.id LIMIT {limit} OFFSET {offset}",
        columns = ItemRow::columns(query.include_context),
    );
    fetch(tx, sql, conditions).await
}

/// Runs a query whose only dynamic parts are numbers, fixed fragments and placeholders.
pub(crate) async fn fetch(
    tx: &mut TenantTransaction,
    sql: String,
    conditions: Conditions,
) -> Result<Vec<BreadcrumbListItem>> {
    let query = conditions.bind(sqlx::query_as::<_, ItemRow>(AssertSqlSafe(sql)));
    let mut rows = query.fetch(tx.connection());
    let (mut items, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        bytes += row.size_bytes;
        if bytes > MAX_ANSWER_BYTES {
            let message = format!(
                "would return more than {MAX_ANSWER_BYTES} bytes of contexts; ask for fewer records, or without \
                 include_context"
            );
            return Err(StoreError::Invalid(Violations::one("limit", message)).into());
        }
        items.push(row.into());
    }
    Ok(items)
}

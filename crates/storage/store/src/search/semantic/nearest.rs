//! The records nearest to a vector.

use std::fmt::Write;

use rcrt_breadcrumb::Selector;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::records::selector_sql::Conditions;

/// The most candidates that are read, however few of them the caller can see.
const MOST: u32 = 20_000;

/// Up to `wanted` records that the caller can see and the selector matches, nearest first, each
/// with its cosine.
///
/// The database finds the nearest of a tenant. Rights and conditions on the context are checked
/// afterwards, so more candidates are read than wanted, and more again while too few are left.
pub(crate) async fn nearest(
    tx: &mut TenantTransaction,
    (model, vector): (i32, &[f32]),
    selector: &Selector,
    wanted: u32,
    exact_up_to: u32,
) -> Result<Vec<(Uuid, f64)>> {
    let vector = literal(vector);
    let mut candidates = wanted.saturating_mul(2).max(64);
    loop {
        let (seen, found) = query_candidates(tx, model, &vector, selector, (wanted, candidates, exact_up_to)).await?;
        if found.len() >= wanted as usize || seen < i64::from(candidates) || candidates >= MOST {
            return Ok(found);
        }
        candidates = candidates.saturating_mul(8).min(MOST);
    }
}

/// Up to `wanted` of these records that have a vector, as above.
pub(crate) async fn nearest_of(
    tx: &mut TenantTransaction,
    (model, vector): (i32, &[f32]),
    ids: &[Uuid],
    selector: &Selector,
    wanted: u32,
) -> Result<Vec<(Uuid, f64)>> {
    let mut conditions = Conditions::new();
    let vector = conditions.text(&literal(vector));
    let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    let ids = conditions.texts(&ids);
    conditions.select(selector);
    let sql = format!(
        "SELECT b.id, (1 - (e.embedding <=> {vector}::vector))::float8 AS cosine FROM breadcrumbs b
         JOIN breadcrumb_embeddings e ON e.owner_id = b.owner_id AND e.breadcrumb_id = b.id AND e.model = {model}
         WHERE b.owner_id = current_tenant() AND b.id = ANY({ids}::uuid[]) AND b.sensitivity <> 'secret' AND {conditions}
         ORDER BY cosine DESC, b.id LIMIT {wanted}",
        conditions = conditions.sql(),
    );
    let query = conditions.bind(sqlx::query_as::<_, (Uuid, f64)>(AssertSqlSafe(sql)));
    Ok(query.fetch_all(tx.connection()).await?)
}

/// One query: how many candidates there were, and which of them are left.
async fn query_candidates(
    tx: &mut TenantTransaction,
    model: i32,
    vector: &str,
    selector: &Selector,
    (wanted, candidates, exact_up_to): (u32, u32, u32),
) -> Result<(i64, Vec<(Uuid, f64)>)> {
    let mut conditions = Conditions::new();
    let vector = conditions.text(vector);
    let all_tags = conditions.texts(&selector.all_tags);
    let any_tags = conditions.texts(&selector.any_tags);
    let schema = match &selector.schema_name {
        Some(name) => conditions.text(name),
        None => "NULL".to_owned(),
    };
    conditions.select(selector);
    // The row without an id holds the number of candidates.
    let sql = format!(
        "WITH m AS MATERIALIZED (
            SELECT * FROM nearest_breadcrumbs({model}, {vector}, {all_tags}, {any_tags}, {schema}, {candidates}, {exact_up_to}))
         SELECT NULL::uuid, (SELECT count(*) FROM m)::float8
         UNION ALL
         SELECT id, cosine FROM (
            SELECT b.id, 1 - m.distance AS cosine FROM m
            JOIN breadcrumbs b ON b.owner_id = current_tenant() AND b.id = m.id
            WHERE b.sensitivity <> 'secret' AND {conditions} ORDER BY m.distance, b.id LIMIT {wanted}) found",
        conditions = conditions.sql(),
    );
    let query = conditions.bind(sqlx::query_as::<_, (Option<Uuid>, f64)>(AssertSqlSafe(sql)));
    let rows = query.fetch_all(tx.connection()).await?;
    let seen = rows.iter().find(|(id, _)| id.is_none()).map_or(0, |(_, count)| *count as i64);
    let mut found: Vec<(Uuid, f64)> = rows.into_iter().filter_map(|(id, cosine)| Some((id?, cosine))).collect();
    found.sort_by(|(one, a), (other, b)| b.total_cmp(a).then(one.cmp(other)));
    Ok((seen, found))
}

/// The vector in pgvector's text format.
pub(super) fn literal(vector: &[f32]) -> String {
    let mut text = String::with_capacity(vector.len() * 13 + 2);
    text.push('[');
    for (index, number) in vector.iter().enumerate() {
        // Writing into a String cannot fail.
        let _ = write!(text, "{}{number}", if index > 0 { "," } else { "" });
    }
    text.push(']');
    text
}

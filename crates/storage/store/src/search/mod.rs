//! Full-text search: how a record's words are found, and how the result is combined with semantic
//! search.

pub(crate) mod semantic;

use std::collections::HashMap;

use rcrt_breadcrumb::{BreadcrumbListItem, Search, SearchMode, Selector};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use self::semantic::SearchPlan;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::records::listing::{self, ItemRow};
use crate::records::selector_sql::Conditions;

/// Candidates of each ranking in a hybrid search.
const CANDIDATES: u32 = 100;

pub(crate) async fn run(
    tx: &mut TenantTransaction,
    search: &Search,
    asked: &SearchPlan,
    exact_up_to: u32,
) -> Result<Vec<BreadcrumbListItem>> {
    let words = search.q.as_deref().unwrap_or_default();
    let ranked = match (asked.mode, &asked.vector) {
        (SearchMode::Vector, Some((model, vector))) => {
            semantic::nearest(tx, (*model, vector), &search.selector, search.nn, exact_up_to).await?
        }
        (SearchMode::Hybrid, Some((model, vector))) => {
            let candidates = CANDIDATES.max(search.nn * 2);
            let near = semantic::nearest(tx, (*model, vector), &search.selector, candidates, exact_up_to).await?;
            let by_words = by_words(tx, words, &search.selector, candidates).await?;
            let [near, by_words] =
                [near, by_words].map(|ranked| ranked.into_iter().map(|(id, _)| id).collect::<Vec<Uuid>>());
            let mut fused = semantic::fuse(&[&near, &by_words]);
            fused.truncate(search.nn as usize);
            fused
        }
        _ => by_words(tx, words, &search.selector, search.nn).await?,
    };
    items(tx, &ranked, search.include_context).await
}

/// The best matches of these words, best first, each with its rank.
async fn by_words(tx: &mut TenantTransaction, words: &str, selector: &Selector, most: u32) -> Result<Vec<(Uuid, f64)>> {
    let mut conditions = Conditions::new();
    let words = conditions.text(words);
    conditions.select(selector);
    let sql = format!(
        "SELECT b.id, m.rank::float8 FROM matching_breadcrumbs({words}) m \
         JOIN breadcrumbs b ON b.owner_id = current_tenant() AND b.id = m.id \
         WHERE {conditions} ORDER BY m.rank DESC, b.updated_at DESC, b.id LIMIT {most}",
        conditions = conditions.sql(),
    );
    let query = conditions.bind(sqlx::query_as(AssertSqlSafe(sql)));
    Ok(query.fetch_all(tx.connection()).await?)
}

/// The records in the given order, each with its score. Records that were just deleted are left
/// out.
async fn items(
    tx: &mut TenantTransaction,
    ranked: &[(Uuid, f64)],
    include_context: bool,
) -> Result<Vec<BreadcrumbListItem>> {
    if ranked.is_empty() {
        return Ok(Vec::new());
    }
    let mut conditions = Conditions::new();
    let ids: Vec<String> = ranked.iter().map(|(id, _)| id.to_string()).collect();
    let ids = conditions.texts(&ids);
    let sql = format!(
        "SELECT {columns} FROM breadcrumbs b WHERE b.id = ANY({ids}::uuid[]) AND {conditions}",
        columns = ItemRow::columns(include_context),
        conditions = conditions.sql(),
    );
    let found = listing::fetch(tx, sql, conditions).await?;
    let mut found: HashMap<Uuid, BreadcrumbListItem> = found.into_iter().map(|item| (item.id, item)).collect();
    let scored = |(id, score): &(Uuid, f64)| Some(BreadcrumbListItem { score: Some(*score), ..found.remove(id)? });
    Ok(ranked.iter().filter_map(scored).collect())
}

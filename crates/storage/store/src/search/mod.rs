//! Search: [`words`] ranks by the words of a question, [`semantic`] by its meaning, and a hybrid
//! search joins both.

pub(crate) mod semantic;
mod words;

use std::collections::HashMap;

use rcrt_breadcrumb::{BreadcrumbListItem, Search, SearchMode};
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
    let text = search.q.as_deref().unwrap_or_default();
    let ranked = match (asked.mode, &asked.vector) {
        (SearchMode::Vector, Some((model, vector))) if !search.ids.is_empty() => {
            semantic::nearest_of(tx, (*model, vector), &search.ids, &search.selector, search.nn).await?
        }
        (SearchMode::Vector, Some((model, vector))) => {
            semantic::nearest(tx, (*model, vector), &search.selector, search.nn, exact_up_to).await?
        }
        (SearchMode::Hybrid, Some((model, vector))) => {
            let candidates = CANDIDATES.max(search.nn * 2);
            let mut near = semantic::nearest(tx, (*model, vector), &search.selector, candidates, exact_up_to).await?;
            let matches = words::matches(tx, text, &search.selector, candidates).await?;
            words::retain_satisfying(tx, &matches, &mut near).await?;
            let best = &matches.ranked[..matches.ranked.len().min(candidates as usize)];
            semantic::fuse(&near, best, &matches.shares)
        }
        _ => {
            let matches = words::matches(tx, text, &search.selector, search.nn).await?;
            matches.ranked.into_iter().map(|id| (id, matches.shares[&id])).collect()
        }
    };
    items(tx, &ranked[..ranked.len().min(search.nn as usize)], search.include_context).await
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

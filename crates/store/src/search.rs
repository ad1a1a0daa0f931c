//! Full-text search: which words of a record are kept, and how they are found.

use breadcrumb::{BreadcrumbListItem, NewBreadcrumb, Sensitivity, StoreError, TextSearch, Violations};
use serde_json::Value;

use crate::failure::Done;
use crate::listing::{self, ItemRow};
use crate::selecting::Conditions;
use crate::transaction::TenantTransaction;

/// How many bytes of a context's strings can be searched. Postgres refuses to index texts without end, and a tool's
/// large output is not what people look for.
const MAX_CONTEXT_WORDS: usize = 16 * 1024;

pub(crate) fn check(search: &TextSearch) -> Result<(), StoreError> {
    let mut found = Violations::default();
    if search.q.trim().is_empty() || search.q.chars().count() > 1000 || search.q.contains('\0') {
        found.add("q", "must have 1 to 1000 characters, none of them NUL");
    }
    if !(1..=100).contains(&search.nn) {
        found.add("nn", "must be from 1 to 100");
    }
    if let Err(more) = search.selector.check() {
        found.0.extend(more.0);
    }
    Ok(found.into_result()?)
}

pub(crate) async fn run(tx: &mut TenantTransaction, search: &TextSearch) -> Done<Vec<BreadcrumbListItem>> {
    let mut conditions = Conditions::new();
    let words = conditions.text(&search.q);
    conditions.select(&search.selector);
    let sql = format!(
        "SELECT {columns} FROM matching_breadcrumbs({words}) m JOIN breadcrumbs b ON b.id = m.id \
         WHERE {conditions} ORDER BY m.rank DESC, b.updated_at DESC, b.id LIMIT {limit}",
        columns = ItemRow::columns(search.include_context),
        conditions = conditions.sql(),
        limit = search.nn,
    );
    listing::fetch(tx, sql, conditions).await
}

/// Description and tags, as one text.
pub(crate) fn label_words(record: &NewBreadcrumb) -> String {
    let mut words = record.description.clone().unwrap_or_default();
    for tag in &record.tags {
        words.push(' ');
        words.push_str(tag);
        // `workspace:tools` is also found by either half.
        if tag.contains([':', '/', '_']) {
            words.push(' ');
            words.push_str(&tag.replace([':', '/', '_'], " "));
        }
    }
    words
}

/// The string values of a record's context in their order, up to [`MAX_CONTEXT_WORDS`]; none of a secret one.
pub(crate) fn context_words(record: &NewBreadcrumb) -> String {
    let mut words = String::new();
    if record.sensitivity == Sensitivity::Secret {
        return words;
    }
    for value in record.context.values() {
        gather(value, &mut words);
    }
    words
}

fn gather(value: &Value, words: &mut String) {
    if words.len() >= MAX_CONTEXT_WORDS {
        return;
    }
    match value {
        Value::String(text) => {
            let end = text.floor_char_boundary(MAX_CONTEXT_WORDS - words.len());
            words.push_str(&text[..end]);
            words.push(' ');
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(entries) => entries.values().for_each(|item| gather(item, words)),
        _ => {}
    }
}

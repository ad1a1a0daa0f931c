//! Search by words: each of the question's words counts, by its rarity.

mod question;
mod ranking;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::Selector;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use self::question::Question;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::records::selector_sql::Conditions;

/// The most terms of one question. Codes and names come first.
const MOST_TERMS: usize = 32;
/// The weights of a word: none, in the context, in description or tags, in the title.
const WEIGHTS: &str = "{0.1,0.4,0.6,1.0}";

/// The records that have words of a question.
pub(super) struct WordMatches {
    /// How much of the question each record has, from 0 to 1.
    pub(super) shares: HashMap<Uuid, f64>,
    /// The best first.
    pub(super) ranked: Vec<Uuid>,
    /// What the question requires of each record, as the text of a `tsquery`. Empty: nothing.
    required: String,
}

/// A part of the question that is looked up in the index.
struct Term {
    /// The text of a `tsquery`.
    query: String,
    is_identifier: bool,
    /// Too many records have it for all of them to be candidates.
    is_common: bool,
}

/// A record with at least one term.
struct Candidate {
    id: Uuid,
    updated_at: DateTime<Utc>,
    /// The number of different words in the record.
    length: i32,
    /// The rank of each term, 0 if the record does not have it.
    ranks: Vec<f32>,
}

/// The best matches of this text that the caller can see and the selector matches. Looks for more
/// candidates, also by common words, while there are fewer than `wanted`.
pub(super) async fn matches(
    tx: &mut TenantTransaction,
    text: &str,
    selector: &Selector,
    wanted: u32,
) -> Result<WordMatches> {
    let (mut terms, required) = parse(tx, &Question::read(text)).await?;
    let (searched, mut candidates) = find(tx, &mut terms, &required, selector, wanted).await?;
    let shares = ranking::shares(&terms, searched, &candidates);
    candidates.sort_by(|one, other| {
        let by_share = shares[&other.id].total_cmp(&shares[&one.id]);
        by_share.then(other.updated_at.cmp(&one.updated_at)).then(one.id.cmp(&other.id))
    });
    Ok(WordMatches { shares, ranked: candidates.iter().map(|record| record.id).collect(), required })
}

/// Removes the records that do not satisfy the conditions in the question.
pub(super) async fn retain_satisfying(
    tx: &mut TenantTransaction,
    matches: &WordMatches,
    records: &mut Vec<(Uuid, f64)>,
) -> Result<()> {
    if matches.required.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = records.iter().map(|(id, _)| *id).collect();
    let satisfying: Vec<Uuid> =
        sqlx::query_scalar("SELECT b.id FROM breadcrumbs b WHERE b.id = ANY($1) AND b.words @@ $2::tsquery")
            .bind(ids)
            .bind(&matches.required)
            .fetch_all(tx.connection())
            .await?;
    records.retain(|(id, _)| satisfying.contains(id));
    Ok(())
}

from_row! {
    struct Parsed {
        places: Vec<i64>,
        terms: Vec<String>,
        required: String,
    }
}

/// A token with a hyphen or an underscore is a term as a whole, and each of its parts is one. The
/// parser takes the hyphen of `INV-88213` for a sign, so numbers match with and without it.
const PARSE: &str = r"
    WITH token AS (
        SELECT t.place, t.token, ARRAY(SELECT lexeme FROM unnest(to_tsvector('english', t.token))) AS lexemes
        FROM unnest($1::text[]) WITH ORDINALITY t(token, place)),
    term AS (
        SELECT t.place, CASE WHEN l ~ '^-?\d+$' THEN format('''%1$s'' | ''-%1$s''', ltrim(l, '-'))
            ELSE format('''%s''', replace(replace(l, '\', '\\'), '''', ''''''))::tsquery::text END AS term
        FROM token t, unnest(t.lexemes) l
        UNION ALL
        SELECT t.place, phraseto_tsquery('english', t.token)::text FROM token t WHERE cardinality(t.lexemes) > 1)
    SELECT coalesce(array_agg(place - 1), '{}') AS places, coalesce(array_agg(term), '{}') AS terms,
        (SELECT coalesce(string_agg('(' || q::text || ')', ' & '), '')
         FROM unnest($2::text[]) r, websearch_to_tsquery('english', r) q WHERE numnode(q) > 0) AS required
    FROM (SELECT * FROM term ORDER BY place) t";

async fn parse(tx: &mut TenantTransaction, question: &Question) -> Result<(Vec<Term>, String)> {
    let tokens: Vec<&str> = question.tokens.iter().map(|token| token.text.as_str()).collect();
    let parsed: Parsed = sqlx::query_as(PARSE).bind(tokens).bind(&question.required).fetch_one(tx.connection()).await?;
    let mut terms: Vec<Term> = Vec::new();
    for (place, query) in parsed.places.into_iter().zip(parsed.terms) {
        let is_identifier = question.tokens[place as usize].is_identifier;
        match terms.iter_mut().find(|term| term.query == query) {
            Some(known) => known.is_identifier |= is_identifier,
            None => terms.push(Term { query, is_identifier, is_common: false }),
        }
    }
    terms.sort_by_key(|term| !term.is_identifier);
    terms.truncate(MOST_TERMS);
    Ok((terms, parsed.required))
}

from_row! {
    struct FoundRow {
        searched: i32,
        /// Which terms are common, counted from 1.
        common: Vec<i32>,
        id: Option<Uuid>,
        updated_at: Option<DateTime<Utc>>,
        length: Option<i32>,
        ranks: Option<Vec<f32>>,
    }
}

/// The candidates, and how many records were searched. Sets which terms are common.
///
/// The index is read by a function that sees the whole tenant. What it returns is joined with
/// `breadcrumbs` under the caller's policies, and only the records that are left are counted and
/// ranked: no score tells how many others have a word.
async fn find(
    tx: &mut TenantTransaction,
    terms: &mut [Term],
    required: &str,
    selector: &Selector,
    wanted: u32,
) -> Result<(u32, Vec<Candidate>)> {
    let mut conditions = Conditions::new();
    let queries: Vec<String> = terms.iter().map(|term| term.query.clone()).collect();
    let ranks: Vec<String> = queries
        .iter()
        .map(|query| {
            let query = conditions.text(query);
            format!(
                "CASE WHEN b.words @@ {query}::tsquery THEN ts_rank('{WEIGHTS}', b.words, {query}::tsquery) ELSE 0 END"
            )
        })
        .collect();
    let (queries, required) = (conditions.texts(&queries), conditions.text(required));
    let (all_tags, any_tags) = (conditions.texts(&selector.all_tags), conditions.texts(&selector.any_tags));
    let schema = match &selector.schema_name {
        Some(name) => conditions.text(name),
        None => "NULL".to_owned(),
    };
    let exclude_runtime = selector.exclude_runtime;
    conditions.select(selector);
    let sql = format!(
        "SELECT m.searched, m.common, found.* \
         FROM matching_breadcrumbs({queries}, {required}, {all_tags}, {any_tags}, {schema}, {exclude_runtime}, \
            {wanted}) m \
         LEFT JOIN LATERAL ( \
            SELECT b.id, b.updated_at, length(b.words) AS length, ARRAY[{ranks}]::real[] AS ranks \
            FROM unnest(m.ids) c(id) JOIN breadcrumbs b ON b.owner_id = current_tenant() AND b.id = c.id \
            WHERE {conditions}) found ON true",
        ranks = ranks.join(", "),
        conditions = conditions.sql(),
    );
    let query = conditions.bind(sqlx::query_as::<_, FoundRow>(AssertSqlSafe(sql)));
    let rows = query.fetch_all(tx.connection()).await?;
    let searched = rows.first().map_or(0, |row| row.searched as u32);
    for place in rows.first().map_or(&[][..], |row| &row.common) {
        terms[*place as usize - 1].is_common = true;
    }
    let candidate = |row: FoundRow| {
        Some(Candidate { id: row.id?, updated_at: row.updated_at?, length: row.length?, ranks: row.ranks? })
    };
    Ok((searched, rows.into_iter().filter_map(candidate).collect()))
}

//! A selector as SQL conditions that agree exactly with [`rcrt_breadcrumb::Matcher`].
//!
//! Conditions on the context read it as jsonb. They have no index (under row-level security none
//! could serve them), so narrow them by a tag or a schema name.

use std::fmt::Write;
use std::time::Duration;

use rcrt_breadcrumb::{ContextMatch, MatchOp, Selector, StoreError, Violations, schema_names};
use serde_json::Value;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryAs;
use sqlx::{FromRow, Postgres};

use crate::database::failure::{Failure, Result};
use crate::database::transaction::TenantTransaction;

/// Longer names are not in the column (see its migration), and no valid tool has one.
const MAX_TOOL_NAME: usize = 100;

/// Whether the contexts of all records that match the other conditions are read. A tool's name
/// alone is an index lookup.
pub(crate) fn reads_contexts(selector: &Selector) -> bool {
    let looked_up = usize::from(tool_name(selector).is_some());
    selector.context_match.len() > looked_up
}

/// Sets a statement timeout if the selector has conditions on the context: these read every record
/// that the other conditions leave.
pub(crate) async fn limit_time(tx: &mut TenantTransaction, selector: &Selector, limit: Duration) -> Result<()> {
    if !selector.context_match.is_empty() {
        let limit = format!("{}ms", limit.as_millis());
        sqlx::query("SELECT set_config('statement_timeout', $1, true)").bind(limit).execute(tx.connection()).await?;
    }
    Ok(())
}

/// The error that the caller gets after that timeout.
pub(crate) fn timeout_error(selector: &Selector, limit: Duration, failure: Failure) -> StoreError {
    if selector.context_match.is_empty() || !failure.ran_out_of_time() {
        return failure.into();
    }
    let seconds = limit.as_secs_f64();
    let message = format!(
        "takes longer than {seconds} s to match (the limit is lower while many such reads run); add a tag or a schema_name to the selector, so that fewer records are compared"
    );
    Violations::one("context_match", message).into()
}

/// Conditions on `breadcrumbs b`, with the values that they compare with.
pub(crate) struct Conditions {
    sql: String,
    values: Vec<BindValue>,
    /// For records of other tenants, whose tag rows are not visible.
    is_shared: bool,
}

const NOT_ENDED: &str = "(b.ttl IS NULL OR b.ttl > now())";

enum BindValue {
    Text(String),
    Texts(Vec<String>),
}

impl Conditions {
    /// Matches every record that has not expired.
    pub(crate) fn new() -> Self {
        Self { sql: NOT_ENDED.into(), values: Vec::new(), is_shared: false }
    }

    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    pub(crate) fn bind<'q, O>(
        self,
        mut query: QueryAs<'q, Postgres, O, PgArguments>,
    ) -> QueryAs<'q, Postgres, O, PgArguments>
    where
        O: for<'r> FromRow<'r, sqlx::postgres::PgRow>,
    {
        for value in self.values {
            query = match value {
                BindValue::Text(text) => query.bind(text),
                BindValue::Texts(texts) => query.bind(texts),
            };
        }
        query
    }

    /// Binds a text and returns its placeholder.
    pub(crate) fn text(&mut self, text: &str) -> String {
        self.placeholder(BindValue::Text(text.to_owned()))
    }

    /// Binds an array of texts and returns its placeholder.
    pub(crate) fn texts(&mut self, texts: &[String]) -> String {
        self.placeholder(BindValue::Texts(texts.to_vec()))
    }

    fn placeholder(&mut self, value: BindValue) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn and(&mut self, condition: &str) {
        // Writing into a String cannot fail.
        let _ = write!(self.sql, " AND {condition}");
    }

    /// The selector's conditions on [shared](crate::rights::shares) records, for use beside the
    /// others in one query.
    pub(crate) fn shared(&mut self, selector: &Selector) -> String {
        let own = std::mem::replace(&mut self.sql, NOT_ENDED.into());
        self.is_shared = true;
        self.select(selector);
        self.is_shared = false;
        std::mem::replace(&mut self.sql, own)
    }

    /// Adds the selector's conditions.
    pub(crate) fn select(&mut self, selector: &Selector) {
        if !selector.any_tags.is_empty() {
            let tags = self.texts(&selector.any_tags);
            let any = if self.is_shared { format!("b.tags && {tags}") } else { tagged(&format!("= ANY({tags})")) };
            self.and(&any);
        }
        for tag in &selector.all_tags {
            let tag = self.text(tag);
            let has = if self.is_shared { format!("{tag} = ANY (b.tags)") } else { tagged(&format!("= {tag}")) };
            self.and(&has);
        }
        if let Some(name) = &selector.schema_name {
            let name = self.text(name);
            self.and(&format!("b.schema_name = {name}"));
        }
        if selector.exclude_runtime {
            self.and("NOT is_runtime_schema(b.schema_name)");
        }
        if let Some(name) = tool_name(selector) {
            let name = self.text(name);
            self.and(&format!("b.tool_name = {name}"));
        }
        for condition in &selector.context_match {
            let condition = self.context(condition);
            self.and(&condition);
        }
        // Last, since it runs for each remaining record. Shared records are never responses.
        if selector.names_request() && !self.is_shared {
            self.and(&format!(
                "(coalesce(b.schema_name, '') NOT IN ('{}', '{}') OR can_get_response(b.id))",
                schema_names::TOOL_RESPONSE,
                schema_names::TOOL_CREATE_RESPONSE
            ));
        }
    }

    fn context(&mut self, condition: &ContextMatch) -> String {
        let there = self.value_at(condition);
        if condition.op == MatchOp::Exists {
            return match condition.value {
                Value::Bool(false) => format!("({there}) IS NULL"),
                _ => format!("({there}) IS NOT NULL"),
            };
        }
        let wanted = self.text(&condition.value.to_string());
        let holds = match condition.op {
            MatchOp::Eq => format!("v = {wanted}::jsonb"),
            MatchOp::Ne => return format!("NOT coalesce(({there}) = {wanted}::jsonb, false)"),
            MatchOp::Gt => compared(&condition.value, ">", &wanted),
            MatchOp::Gte => compared(&condition.value, ">=", &wanted),
            MatchOp::Lt => compared(&condition.value, "<", &wanted),
            MatchOp::Lte => compared(&condition.value, "<=", &wanted),
            MatchOp::Contains => contains_any(&format!("jsonb_build_array({wanted}::jsonb)")),
            MatchOp::ContainsAny => contains_any(&format!("{wanted}::jsonb")),
            MatchOp::Exists => "true".into(),
        };
        // No row if the path does not exist. OFFSET 0 keeps Postgres from inlining the expression
        // of `v`: it would parse the context at each use of `v`, in `contains_any` once per wanted
        // text.
        format!("coalesce((SELECT {holds} FROM (SELECT {there} AS v OFFSET 0) at_path), false)")
    }

    /// The value at the path, or SQL NULL if it does not exist.
    fn value_at(&mut self, condition: &ContextMatch) -> String {
        let mut sql = String::from("b.context::jsonb");
        for step in condition.path.steps() {
            let step_text = self.text(step);
            if step.parse::<usize>().is_ok() {
                // A key of an object or an index of an array, as `#>` interprets it.
                let _ = write!(sql, " #> ARRAY[{step_text}]");
            } else {
                // Only a key: `#>` would read "-1" or " 1" on an array as an index.
                let _ = write!(sql, " -> {step_text}");
            }
        }
        sql
    }
}

/// The tool name that the selector asks for, if the name column can match it. The same condition on
/// the context would read every tool.
fn tool_name(selector: &Selector) -> Option<&str> {
    let of_tools = schema_names::is_tool(selector.schema_name.as_deref());
    let named = |one: &&ContextMatch| one.op == MatchOp::Eq && *one.path.steps() == ["name"];
    let name = selector.context_match.iter().filter(|_| of_tools).find(named)?.value.as_str()?;
    (name.chars().count() <= MAX_TOOL_NAME).then_some(name)
}

fn tagged(tag: &str) -> String {
    format!(
        "EXISTS (SELECT FROM breadcrumb_tags t WHERE t.owner_id = b.owner_id AND t.breadcrumb_id = b.id AND t.tag {tag})"
    )
}

fn compared(value: &Value, operator: &str, wanted: &str) -> String {
    match value {
        Value::Number(_) => {
            format!("CASE WHEN jsonb_typeof(v) = 'number' THEN v::numeric {operator} ({wanted}::jsonb)::numeric END")
        }
        _ => format!(
            "CASE WHEN jsonb_typeof(v) = 'string' \
             THEN (v #>> '{{}}') COLLATE \"C\" {operator} ({wanted}::jsonb #>> '{{}}') COLLATE \"C\" END"
        ),
    }
}

/// Whether `v` contains an element of this SQL expression, a jsonb array.
fn contains_any(wanted: &str) -> String {
    // `IN` under `IS TRUE` becomes a hashed subplan with one lookup per item. A join might compare
    // each item with each value.
    format!(
        "CASE jsonb_typeof(v) \
         WHEN 'array' THEN EXISTS (SELECT FROM jsonb_array_elements(v) e(item) \
            WHERE (e.item IN (SELECT w.one FROM jsonb_array_elements({wanted}) w(one))) IS TRUE) \
         WHEN 'string' THEN EXISTS ( \
            SELECT FROM (SELECT v #>> '{{}}' AS text OFFSET 0) whole, jsonb_array_elements({wanted}) w(one) \
            WHERE jsonb_typeof(w.one) = 'string' AND strpos(whole.text, w.one #>> '{{}}') > 0) \
         ELSE false END"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rcrt_breadcrumb::{ContextPath, Tenancy};
    use rcrt_test_database::TestDatabase;
    use serde_json::json;
    use sqlx::AssertSqlSafe;

    use super::*;
    use crate::{SecretsKey, Store, StoreOptions};

    /// Each `OFFSET 0` keeps an expression out of a condition that is evaluated many times.
    #[tokio::test]
    async fn each_context_is_parsed_once_and_its_text_made_once() {
        let database = TestDatabase::new().await;
        let options = StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]));
        let store = Store::open(options, &|_| {}).await.unwrap();
        let tenant = store.ensure_tenant("one").await.unwrap().id;
        let mut tx = TenantTransaction::begin(&store.inner.database, tenant).await.unwrap();
        for (op, value) in
            [(MatchOp::ContainsAny, json!(["a", "b"])), (MatchOp::Gt, json!(1)), (MatchOp::Lt, json!("a"))]
        {
            let path = ContextPath::try_from("$.a.b".to_owned()).unwrap();
            let mut conditions = Conditions::new();
            conditions
                .select(&Selector { context_match: vec![ContextMatch { path, op, value }], ..Selector::default() });
            let sql = format!("EXPLAIN (VERBOSE, COSTS OFF) SELECT b.id FROM breadcrumbs b WHERE {}", conditions.sql());
            let plan: Vec<(String,)> =
                conditions.bind(sqlx::query_as(AssertSqlSafe(sql))).fetch_all(tx.connection()).await.unwrap();
            let plan: Vec<String> = plan.into_iter().map(|(line,)| line).collect();
            let plan = plan.join("\n");
            assert_eq!(plan.matches("context)::jsonb").count(), 1, "{plan}");
            if op == MatchOp::ContainsAny {
                // An output of its own, not a part of the condition on each wanted text.
                assert!(plan.contains("Output: (at_path.v #>> '{}'::text[])"), "{plan}");
            }
        }
        drop(tx);
        store.close().await;
    }
}

//! `rcrt crumb`: reads, lists, writes and watches records.

use anyhow::Context;
use clap::{Args, Subcommand};
use futures::StreamExt;
use rcrt_breadcrumb::{
    BreadcrumbQuery, ContextMatch, ContextPath, DEFAULT_PAGE, EventNumber, Fuel, MatchOp, Matcher, NewBreadcrumb,
    Selector, StoreError, check_numbers, read_typed,
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::config::{Config, id};
use crate::exit::Failure;
use crate::output::{Output, one_line};
use crate::{connection, input};

/// Read, list, write and watch records
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  rcrt crumb list --schema tool.response.v1 --limit 5
  rcrt crumb list --match '$.status:eq:error' --match '$.execution_time_ms:gt:100'
  rcrt crumb create '{\"title\": \"A note\", \"tags\": [\"note\"], \"context\": {\"text\": \"hello\"}}'
  rcrt crumb watch --tag tool:response")]
pub enum Crumb {
    /// Print one record
    Get {
        #[arg(value_parser = id)]
        id: Uuid,
        /// Include owner, audit and expiry fields
        #[arg(long, conflicts_with = "history")]
        full: bool,
        /// Print every version, newest first
        #[arg(long)]
        history: bool,
    },
    /// List records, newest change first
    List(List),
    /// Write a record
    Create {
        /// The record: JSON, `-` for stdin, or `@file`
        #[arg(value_name = "JSON")]
        record: String,
        /// Makes a repeated command write only one record
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Print events as they arrive, one JSON object per line, until Ctrl-C
    Watch {
        #[command(flatten)]
        which: Which,
        /// Start after the event with this number [default: with the next one]
        #[arg(long, value_name = "NUMBER")]
        since: Option<i64>,
    },
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    which: Which,
    /// Maximum number of rows, 1 to 1000
    #[arg(long, default_value_t = DEFAULT_PAGE)]
    limit: u32,
    /// Number of rows to skip
    #[arg(long, default_value_t = 0)]
    offset: u32,
    /// Include the records' contexts (in JSON output)
    #[arg(long)]
    include_context: bool,
}

/// Selects records. All conditions must match.
#[derive(Debug, Args)]
pub struct Which {
    /// Only with this tag. Can be repeated: all of them
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only with this schema name, such as tool.request.v1
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// Only with this condition on the context: `$.a.b:OP:VALUE`; OP is eq, ne, gt, gte, lt, lte,
    /// contains, contains_any or exists, VALUE is JSON or plain text
    #[arg(long = "match", value_name = "PATH:OP:VALUE", value_parser = condition)]
    matches: Vec<ContextMatch>,
    /// Without the runtime's own records, such as requests, responses, tools and guides
    #[arg(long)]
    exclude_runtime: bool,
}

impl Which {
    fn selector(self) -> Selector {
        Selector {
            all_tags: self.tags,
            schema_name: self.schema,
            context_match: self.matches,
            exclude_runtime: self.exclude_runtime,
            ..Selector::default()
        }
    }
}

const OPERATORS: &str = "eq, ne, gt, gte, lt, lte, contains, contains_any, exists";

/// Parses `$.a.b:op:value`. A key cannot contain a colon; a value can.
fn condition(text: &str) -> Result<ContextMatch, String> {
    let mut parts = text.splitn(3, ':');
    let (Some(path), Some(op)) = (parts.next(), parts.next()) else {
        return Err("must be PATH:OP:VALUE, such as $.status:eq:error".into());
    };
    let op = MatchOp::deserialize(Value::from(op))
        .map_err(|_| format!("{op:?} is not an operator; expected one of {OPERATORS}"))?;
    let value = match (parts.next(), op) {
        (None, MatchOp::Exists) => Value::Bool(true),
        (None, _) => return Err("the value is missing; expected PATH:OP:VALUE".into()),
        (Some(value), _) => match serde_json::from_str(value) {
            Ok(json) => {
                check_numbers(value.as_bytes()).map_err(|rounded| rounded.to_string())?;
                json
            }
            Err(_) => value.into(),
        },
    };
    Ok(ContextMatch { path: ContextPath::try_from(path.to_owned())?, op, value })
}

impl Crumb {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self {
            Self::Get { id, full, history } => get(config, output, id, full, history).await,
            Self::List(list) => list.run(config, output).await,
            Self::Create { record, idempotency_key } => create(config, output, &record, idempotency_key).await,
            Self::Watch { which, since } => watch(config, output, which.selector(), since).await,
        }
    }
}

async fn get(config: &Config, output: Output, id: Uuid, full: bool, history: bool) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    if history {
        return output.json(&store.history(id).await?);
    }
    // The short view also opens with a `read_context` grant.
    if full { output.json(&store.get(id).await?) } else { output.json(&store.view(id).await?) }
}

impl List {
    async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let query = BreadcrumbQuery {
            selector: self.which.selector(),
            limit: self.limit,
            offset: self.offset,
            include_context: self.include_context,
        };
        query.check().map_err(|violations| Failure::Usage(violations.to_string()))?;
        let items = connection::store(config)?.list(&query).await?;
        output.list(&items, &["ID", "SCHEMA", "VERSION", "UPDATED (UTC)", "TITLE"], |item| {
            vec![
                item.id.to_string(),
                item.schema_name.clone().unwrap_or_else(|| "-".into()),
                item.version.to_string(),
                item.updated_at.format("%Y-%m-%d %H:%M:%S").to_string(),
                one_line(&item.title, 60),
            ]
        })
    }
}

async fn create(config: &Config, output: Output, record: &str, key: Option<String>) -> anyhow::Result<()> {
    let record: NewBreadcrumb = read_typed(input::json(record, "the record")?)
        .map_err(|violation| Failure::Usage(format!("the record is not valid: {violation}")))?;
    record.check().map_err(|violations| Failure::Usage(violations.to_string()))?;
    let key = key.unwrap_or_else(|| Uuid::new_v4().to_string());
    let created = connection::store(config)?.create(record, Some(&key)).await?;
    output.either(&created, &created.id.to_string())
}

/// Prints events, and reconnects when the stream breaks.
async fn watch(config: &Config, output: Output, which: Selector, since: Option<i64>) -> anyhow::Result<()> {
    which.check().map_err(|violations| Failure::Usage(violations.to_string()))?;
    let matcher = Matcher::from(&which);
    let store = connection::store(config)?;
    let mut after = match since {
        Some(number) => EventNumber(number),
        None => store.latest_event().await?,
    };
    let follow = async {
        loop {
            let mut events = store.events(Some(after)).await?;
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        after = event.number;
                        if matcher.matches_event(&event, &mut Fuel::for_blocking())? {
                            let mut line = json!({"number": event.number});
                            if let (Some(line), Value::Object(fields)) =
                                (line.as_object_mut(), serde_json::to_value(&event)?)
                            {
                                line.extend(fields);
                            }
                            output.json_line(&line)?;
                        }
                    }
                    Err(StoreError::Unavailable(reason)) => {
                        tracing::warn!(reason, "the event stream broke; reconnecting");
                        break;
                    }
                    Err(error) => return Err(anyhow::Error::new(error)),
                }
            }
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        ended = follow => ended,
        signal = tokio::signal::ctrl_c() => signal.context("Ctrl-C cannot be watched"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_takes_json_or_plain_text_and_colons_in_the_value() {
        let value = |text: &str| condition(text).unwrap().value;
        assert_eq!(value("$.n:gt:5"), json!(5));
        assert_eq!(value("$.url:eq:http://host:80/"), json!("http://host:80/"));
        assert_eq!(value("$.tags:contains_any:[\"a\", \"b\"]"), json!(["a", "b"]));
        assert_eq!(value("$.a.b:exists"), json!(true));
        assert_eq!(value("$.a.b:exists:false"), json!(false));
    }

    #[test]
    fn a_condition_without_path_operator_or_value_is_refused() {
        // The last value has more than 64 bits.
        for text in ["", "$.a", "$.a:eq", "a:eq:1", "$:eq:1", "$.a:like:1", "$.a:eq:123456789012345678901"] {
            assert!(condition(text).is_err(), "{text:?}");
        }
    }
}

//! `rcrt tool diff`: what changed between two versions of a tool.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use rcrt_breadcrumb::BreadcrumbVersion;
use serde::Serialize;
use serde_json::Value;
use similar::TextDiff;

use super::tool_versions::ToolVersions;
use crate::config::Config;
use crate::connection;
use crate::exit::fail;
use crate::output::{Output, Style};

/// How long the shortest list of changes is searched for. Then a longer one is shown.
const SEARCH_TIME: Duration = Duration::from_millis(500);

/// Show what changed between two versions of a tool
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints a unified difference of the source and of each other field. The versions are those of `rcrt tool history`. \
Without them it compares the current version with the one before it.

Examples:
  rcrt tool diff weather
  rcrt tool diff weather 3
  rcrt tool diff weather 1 3")]
pub struct Diff {
    name: String,
    /// The older version [default: the one before NEW]
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    old: Option<i64>,
    /// The newer version [default: the current one]
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    new: Option<i64>,
}

/// A field with two values, as text of lines.
#[derive(Debug, Serialize)]
struct ChangedField {
    field: String,
    /// Hunks in the unified format.
    diff: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Differences<'n> {
    name: &'n str,
    old: i64,
    new: i64,
    changes: Vec<ChangedField>,
}

impl Diff {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let versions = ToolVersions::read(&connection::client(config)?, &self.name).await?;
        let new = versions.version(self.new.unwrap_or(versions.record.version))?;
        let before = || versions.all.iter().map(|one| one.version).find(|number| *number < new.version);
        let Some(old) = self.old.or_else(before) else {
            fail!(NotFound, "{} has no version before {}, so there is nothing to compare", self.name, new.version);
        };
        let old = versions.version(old)?;
        let found =
            Differences { name: &self.name, old: old.version, new: new.version, changes: differences(old, new) };
        if output.is_json() { output.json(&found) } else { found.print(output) }
    }
}

impl Differences<'_> {
    fn print(&self, output: Output) -> anyhow::Result<()> {
        let Self { name, old, new, .. } = self;
        if self.changes.is_empty() {
            return output.line(&format!("versions {old} and {new} of {name} are the same"));
        }
        for ChangedField { field, diff } in &self.changes {
            output.line(&output.paint(Style::Bold, &format!("--- {name} version {old}: {field}")))?;
            output.line(&output.paint(Style::Bold, &format!("+++ {name} version {new}: {field}")))?;
            diff.iter().try_for_each(|line| print_line(output, line))?;
        }
        Ok(())
    }
}

/// Prints a line of a hunk in the colour of its kind.
pub(super) fn print_line(output: Output, line: &str) -> anyhow::Result<()> {
    match line.as_bytes().first() {
        Some(b'-') => output.line(&output.paint(Style::Bad, line)),
        Some(b'+') => output.line(&output.paint(Style::Good, line)),
        _ => output.line(line),
    }
}

/// The source first, then the record's own fields, then the fields of the definition by name.
fn differences(old: &BreadcrumbVersion, new: &BreadcrumbVersion) -> Vec<ChangedField> {
    let mut names = vec!["code.source".to_owned(), "schema_name".into(), "title".into(), "tags".into()];
    let keys: BTreeSet<&String> = old.context.keys().chain(new.context.keys()).collect();
    names.extend(keys.into_iter().map(|key| format!("context.{key}")));
    let changed = |field: String| {
        let (before, after) = (field_text(old, &field), field_text(new, &field));
        let mut diff = unified(&before, &after);
        if diff.is_empty() && before != after {
            diff.push("only the end of the last line differs".into());
        }
        (!diff.is_empty()).then_some(ChangedField { field, diff })
    };
    names.into_iter().filter_map(changed).collect()
}

/// The field's value as text; empty if it is absent.
fn field_text(version: &BreadcrumbVersion, field: &str) -> String {
    let source = || version.context.get("code").and_then(|code| code.get("source")).and_then(Value::as_str);
    match field {
        "code.source" => source().unwrap_or_default().to_owned(),
        "schema_name" => version.schema_name.clone().unwrap_or_default(),
        "title" => version.title.clone(),
        "tags" => version.tags.join("\n"),
        _ => {
            let key = field.strip_prefix("context.").unwrap_or(field);
            let mut value = version.context.get(key).cloned();
            if let (Some(Value::Object(code)), Some(_)) = (&mut value, source().filter(|_| key == "code")) {
                code.remove("source");
            }
            value.map(|value| serde_json::to_string_pretty(&value).unwrap_or_default()).unwrap_or_default()
        }
    }
}

/// Hunks in the unified format; empty if the texts have the same lines.
pub(super) fn unified(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let diff = TextDiff::configure().timeout(SEARCH_TIME).diff_slices(&old, &new);
    let hunks = diff.unified_diff().to_string();
    hunks.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn version(number: i64, context: Value) -> BreadcrumbVersion {
        let (updated_at, updated_by) = (chrono::Utc::now(), None);
        let Value::Object(context) = context else { panic!("a context is an object") };
        BreadcrumbVersion {
            version: number,
            title: "Greets".into(),
            context,
            tags: vec!["tool".into()],
            schema_name: Some("tool.code.v1".into()),
            checksum: String::new(),
            updated_at,
            updated_by,
        }
    }

    #[test]
    fn the_source_and_each_other_field_are_compared_on_their_own() {
        let old = version(1, json!({"code": {"language": "typescript", "source": "one\ntwo\n"}, "limits": {"a": 1}}));
        let mut new = version(2, json!({"code": {"language": "javascript", "source": "one\n2\n"}, "version": "2.0.0"}));
        new.tags.push("workspace:tools".into());
        let found = differences(&old, &new);
        let fields: Vec<&str> = found.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["code.source", "tags", "context.code", "context.limits", "context.version"]);
        assert_eq!(found[0].diff, ["@@ -1,2 +1,2 @@", " one", "-two", "+2"]);
        assert!(found[2].diff.iter().any(|line| line == "-  \"language\": \"typescript\""), "{:?}", found[2].diff);
        assert!(!found[2].diff.iter().any(|line| line.contains("source")), "{:?}", found[2].diff);
        assert_eq!(found[4].diff, ["@@ -0,0 +1 @@", "+\"2.0.0\""]);
    }

    #[test]
    fn the_same_definition_has_no_differences() {
        let context = json!({"code": {"language": "typescript", "source": "one"}});
        assert!(differences(&version(1, context.clone()), &version(2, context)).is_empty());
    }

    #[test]
    fn a_change_of_the_last_line_break_is_named() {
        let with = |source: &str| version(1, json!({"code": {"source": source}}));
        let found = differences(&with("one"), &with("one\n"));
        assert_eq!(found[0].field, "code.source");
        assert_eq!(found[0].diff, ["only the end of the last line differs"]);
    }
}

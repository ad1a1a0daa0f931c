//! `tool.guide.v1`: how a family of tools is used, with worked examples in markdown.
//!
//! The context: `{name, title, summary, tools: [names], content, resources?: [texts]}`. The record
//! is tagged `tool:guide` and `guide:<name>`.

use rcrt_breadcrumb::{NewBreadcrumb, Violations};
use serde::Deserialize;

use crate::seed::context_as;

/// The maximum length of a guide's content, in characters.
pub const MAX_CONTENT: usize = 200_000;
/// The maximum number of tools that one guide names.
pub const MAX_TOOLS: usize = 100;

/// A guide, read from its record's context.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guide {
    /// The name by which agents request it.
    pub name: String,
    pub title: String,
    /// One or two sentences: what it is about, and when to read it.
    pub summary: String,
    /// The names of the tools that it is about.
    pub tools: Vec<String>,
    /// Markdown.
    pub content: String,
    /// Where else to look: keys of the working memory, files, addresses.
    #[serde(default)]
    pub resources: Vec<String>,
}

/// Checks a guide's record. The violations name its fields.
pub fn check(record: &NewBreadcrumb) -> Result<(), Violations> {
    let guide: Guide = context_as(&record.context)?;
    let mut found = Violations::default();
    let texts = [("name", &guide.name, 100), ("title", &guide.title, 200), ("summary", &guide.summary, 500)];
    for (field, text, most) in texts.into_iter().chain([("content", &guide.content, MAX_CONTENT)]) {
        if text.trim().is_empty() || text.chars().count() > most {
            found.add(format!("context.{field}"), format!("must have 1 to {most} characters"));
        }
    }
    if guide.tools.len() > MAX_TOOLS {
        found.add("context.tools", format!("names {} tools; at most {MAX_TOOLS} are allowed", guide.tools.len()));
    }
    for tag in ["tool:guide".to_owned(), format!("guide:{}", guide.name)] {
        if !record.tags.contains(&tag) {
            found.add("tags", format!("must have {tag:?}, by which the guide is found"));
        }
    }
    found.into_result()
}

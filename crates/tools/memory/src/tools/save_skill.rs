//! `save_skill`.

use async_trait::async_trait;
use rcrt_breadcrumb::{Guide, ToolFailure};
use rcrt_executors::{NativeTool, ToolCall};
use rcrt_large_results::{at_most, one_line};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer;
use crate::skills;

const MAX_NAME: usize = 100;
const MAX_SUMMARY: usize = 500;
const MAX_CONTENT: usize = 200_000;
/// The maximum number of tools, and of resources, of one skill.
const MAX_LISTED: usize = 100;
const MAX_RESOURCE: usize = 500;
/// Words of a summary that is derived from the content.
const SUMMARY_WORDS: usize = 15;

pub(super) struct SaveSkill;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    content: String,
    summary: Option<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
}

#[async_trait]
impl NativeTool for SaveSkill {
    fn name(&self) -> &'static str {
        "save_skill"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let skill = read(answer::read(call)?)?;
        let guides = Guide::all(&*call.breadcrumbs).await.map_err(answer::store)?;
        if guides.iter().any(|guide| guide.name == skill.name) {
            let message = format!("{:?} is the name of a guide to tools; choose another one", skill.name);
            return Err(answer::invalid("name", message));
        }
        let replaced = skills::save(call, &skill).await.map_err(answer::store)?;
        Ok(json!({"name": skill.name, "summary": skill.summary, "replaced": replaced}))
    }
}

fn read(input: Input) -> Result<Guide, ToolFailure> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let other = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if !input.name.starts_with(first) || !input.name.chars().all(other) || input.name.len() > MAX_NAME {
        let right = format!("must be a letter or _, then letters, digits, _, - and ., up to {MAX_NAME} characters");
        return Err(answer::invalid("name", right));
    }
    let within = |field: &str, text: &str, most: usize| {
        if text.trim().is_empty() || text.chars().count() > most {
            return Err(answer::invalid(field, format!("must have 1 to {most} characters")));
        }
        Ok(())
    };
    within("content", &input.content, MAX_CONTENT)?;
    let summary = match input.summary {
        Some(summary) => one_line(&summary),
        None => first_words(&input.content),
    };
    within("summary", &summary, MAX_SUMMARY)?;
    for (field, texts, most) in [("tools", &input.tools, MAX_NAME), ("resources", &input.resources, MAX_RESOURCE)] {
        if texts.len() > MAX_LISTED {
            return Err(answer::invalid(
                field,
                format!("has {} entries; at most {MAX_LISTED} are allowed", texts.len()),
            ));
        }
        for (index, text) in texts.iter().enumerate() {
            within(&format!("{field}[{index}]"), text, most)?;
            if texts[..index].contains(text) {
                return Err(answer::invalid(&format!("{field}[{index}]"), format!("{text:?} is listed twice")));
            }
        }
    }
    Ok(Guide {
        title: heading(&input.content).unwrap_or_else(|| input.name.clone()),
        name: input.name,
        summary,
        tools: input.tools,
        content: input.content,
        resources: input.resources,
    })
}

/// The first heading of the Markdown.
fn heading(content: &str) -> Option<String> {
    let title = content.lines().find_map(|line| line.strip_prefix("# "))?;
    Some(at_most(&one_line(title), 200)).filter(|title| !title.is_empty())
}

/// The first words outside of headings, or of the whole content if there are none.
fn first_words(content: &str) -> String {
    let body = content.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(str::split_whitespace);
    let mut words: Vec<&str> = body.take(SUMMARY_WORDS + 1).collect();
    if words.is_empty() {
        words = content.split_whitespace().take(SUMMARY_WORDS + 1).collect();
    }
    let is_cut = words.len() > SUMMARY_WORDS;
    words.truncate(SUMMARY_WORDS);
    at_most(&(words.join(" ") + if is_cut { " …" } else { "" }), MAX_SUMMARY)
}

//! Prompts and resources that tools provide. A record names the tool, so a tenant adds one by
//! writing a record: `mcp.prompt.v1` or `mcp.resource.v1`.

use std::collections::BTreeMap;

use rcrt_breadcrumb::{BreadcrumbListItem, Records, Selector, named_records, oldest_by_name};
use rmcp::ErrorData;
use rmcp::model::PromptArgument;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::errors;

pub(crate) const PROMPT: &str = "mcp.prompt.v1";
pub(crate) const RESOURCE: &str = "mcp.resource.v1";
const PAGE: u32 = 200;

/// A prompt. The input of the tool is the arguments; its output is a text, or an object with
/// `messages` of the protocol.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PublishedPrompt {
    pub name: String,
    pub title: Option<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
    pub tool: String,
}

/// A resource at `uri`, or one for each URI that matches `uri_template`. The input of the tool has
/// `uri` and the template's variables; its output is a text, or an object with `contents` of the
/// protocol.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PublishedResource {
    #[serde(alias = "uri_template")]
    pub uri: String,
    pub name: String,
    pub title: Option<String>,
    #[serde(default)]
    pub description: String,
    pub mime_type: Option<String>,
    pub tool: String,
}

/// What identifies a published thing.
pub(crate) trait Published: DeserializeOwned {
    const SCHEMA: &str;

    fn key(&self) -> &str;
}

impl Published for PublishedPrompt {
    const SCHEMA: &str = PROMPT;

    fn key(&self) -> &str {
        &self.name
    }
}

impl Published for PublishedResource {
    const SCHEMA: &str = RESOURCE;

    fn key(&self) -> &str {
        &self.uri
    }
}

/// All of a kind, by their keys. Records that are not valid are left out.
pub(crate) async fn all<T: Published>(store: &(impl Records + ?Sized)) -> Result<Vec<T>, ErrorData> {
    let selector = Selector { schema_name: Some(T::SCHEMA.into()), ..Selector::default() };
    let items = named_records(store, selector, PAGE).await.map_err(errors::of_store)?;
    let read = |item: BreadcrumbListItem| Some((item.id, T::deserialize(Value::Object(item.context?)).ok()?));
    Ok(oldest_by_name(items.into_iter().filter_map(read), T::key))
}

impl PublishedResource {
    /// Whether it stands for many URIs.
    pub fn is_template(&self) -> bool {
        self.uri.contains('{')
    }

    /// The variables of the template for this URI; `None` if it does not match. A variable
    /// `{name}` stands for one part of a path.
    pub fn variables(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        let mut variables = BTreeMap::new();
        let (mut template, mut rest) = (self.uri.as_str(), uri);
        while let Some((fixed, after)) = template.split_once('{') {
            let (name, after) = after.split_once('}')?;
            rest = rest.strip_prefix(fixed)?;
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let fixed_after = after.split('{').next().unwrap_or_default();
            let end =
                if fixed_after.is_empty() { end } else { rest.find(fixed_after).filter(|found| *found <= end)? };
            let (value, left) = rest.split_at(end);
            if value.is_empty() {
                return None;
            }
            let value = percent_encoding::percent_decode_str(value).decode_utf8().ok()?;
            variables.insert(name.to_owned(), value.into_owned());
            (template, rest) = (after, left);
        }
        (rest == template).then_some(variables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(uri: &str) -> PublishedResource {
        let (name, tool) = ("n".to_owned(), "t".to_owned());
        PublishedResource { uri: uri.into(), name, title: None, description: String::new(), mime_type: None, tool }
    }

    #[test]
    fn a_template_matches_whole_uris_and_one_part_for_each_variable() {
        let variables = |template: &str, uri: &str| at(template).variables(uri).map(|found| format!("{found:?}"));
        let expected = Some(r#"{"id": "1 2"}"#.to_owned());
        assert_eq!(variables("test://template/{id}/data", "test://template/1%202/data"), expected);
        assert_eq!(variables("a://{x}-{y}", "a://1-2"), Some(r#"{"x": "1", "y": "2"}"#.to_owned()));
        assert_eq!(variables("a://fixed", "a://fixed"), Some("{}".to_owned()));
        for (template, uri) in [
            ("a://{id}", "a://"),
            ("a://{id}", "a://1/2"),
            ("a://{id}/data", "a://1/data/more"),
            ("a://fixed", "a://fixed/"),
            ("a://{id", "a://1"),
        ] {
            assert_eq!(variables(template, uri), None, "{template} {uri}");
        }
    }
}

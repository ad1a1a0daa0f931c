//! The tools of a tenant, as an index that follows the catalog.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use rcrt_breadcrumb::{Catalog, Registration, ToolSource};
use serde_json::Value;
use uuid::Uuid;

use crate::index::{Index, Slot, Text};
use crate::question::Question;
use crate::scoring;

/// The most tools in one index. Further ones are not found.
pub const MAX_TOOLS: usize = 20_000;
/// How deep and how many arguments are read.
const MAX_DEPTH: usize = 4;
const MAX_ARGUMENTS: usize = 100;

/// A tool that fits a question.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundTool {
    pub name: String,
    /// From 0 to 1: how well the tool fits. Scores of different questions can be compared.
    pub score: f64,
}

/// The tools of one tenant.
#[derive(Debug, Default)]
pub struct ToolSearch {
    index: Index<Registration>,
    by_name: BTreeMap<String, Slot>,
}

/// A document's rank.
pub(crate) struct Ranked<'t> {
    pub tool: &'t Registration,
    pub score: f64,
    /// How near its meaning is, if the store has a vector of it.
    pub cosine: Option<f64>,
}

impl Ranked<'_> {
    /// The best first; equal scores by name.
    pub fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.tool.name.cmp(&other.tool.name))
    }
}

impl ToolSearch {
    /// Inserts the tool, in the place of the one of the same name. Its schema is not kept. Returns
    /// whether there was room for it.
    pub fn insert(&mut self, mut tool: Registration) -> bool {
        self.remove(&tool.name);
        if self.index.len() >= MAX_TOOLS {
            return false;
        }
        let text = text(&tool);
        tool.parameters = Value::Null;
        let name = tool.name.clone();
        let slot = self.index.insert(&text, tool);
        self.by_name.insert(name, slot);
        true
    }

    pub fn remove(&mut self, name: &str) -> bool {
        self.by_name.remove(name).is_some_and(|slot| self.index.remove(slot).is_some())
    }

    /// Makes the index equal to the offered tools of the catalog. Only what changed costs time.
    pub fn set(&mut self, catalog: &Catalog) {
        let names: HashSet<&str> = catalog.tools.iter().map(|tool| tool.name.as_str()).collect();
        let gone: Vec<String> = self.by_name.keys().filter(|name| !names.contains(name.as_str())).cloned().collect();
        for name in gone {
            self.remove(&name);
        }
        for tool in &catalog.tools {
            let is_same = self
                .find(&tool.name)
                .is_some_and(|known| (known.tool_id, known.tool_version) == (tool.tool_id, tool.tool_version));
            if !is_same {
                self.insert(tool.clone());
            }
        }
    }

    fn find(&self, name: &str) -> Option<&Registration> {
        let slot = self.by_name.get(name)?;
        self.index.document(*slot).map(|document| &document.data)
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tools that fit the question best, the best first. `may_call`: whether the asker can call
    /// a tool; no other tool is found, or has an influence on a score.
    pub fn tools(&self, question: &Question, may_call: impl Fn(&Registration) -> bool, limit: usize) -> Vec<FoundTool> {
        let (mut ranked, _) = self.rank(question, may_call, &[]);
        if (1..ranked.len()).contains(&limit) {
            ranked.select_nth_unstable_by(limit, Ranked::order);
        }
        ranked.truncate(limit);
        ranked.sort_unstable_by(Ranked::order);
        ranked.into_iter().map(|one| FoundTool { name: one.tool.name.clone(), score: one.score }).collect()
    }

    /// All tools that fit, in no order, and the shares of the texts.
    pub(crate) fn rank(
        &self,
        question: &Question,
        may_call: impl Fn(&Registration) -> bool,
        texts: &[Text],
    ) -> (Vec<Ranked<'_>>, Vec<f64>) {
        let shares = scoring::rank(&self.index, question.text(), may_call, texts);
        let documents = self.index.documents().iter().zip(&shares.documents).zip(&shares.visible);
        let ranked = documents.filter(|(_, is_visible)| **is_visible).filter_map(|((document, share), _)| {
            let tool = &document.as_ref()?.data;
            let nearness = question.nearness(tool.tool_id);
            let ranked = || Ranked { tool, score: question.score(*share, nearness), cosine: nearness.cosine() };
            (*share > 0.0 || nearness.is_near()).then(ranked)
        });
        (ranked.collect(), shares.texts)
    }

    /// The records of the tools that the asker can call.
    pub fn callable_records(&self, may_call: impl Fn(&Registration) -> bool) -> Vec<Uuid> {
        self.callable(may_call).map(|tool| tool.tool_id).collect()
    }

    /// The tools that the asker can call, by name.
    pub(crate) fn callable(&self, may_call: impl Fn(&Registration) -> bool) -> impl Iterator<Item = &Registration> {
        let tools = self.by_name.keys().filter_map(move |name| self.find(name));
        tools.filter(move |tool| may_call(tool))
    }
}

fn text(tool: &Registration) -> Text {
    let mut arguments = Vec::new();
    gather(&tool.parameters, 0, &mut arguments);
    let title = tool.annotations.title.as_deref().unwrap_or_default();
    // A tag such as `category:files` or `billing` says what a tool is about; `tool:name` does not.
    let is_own = |tag: &&str| *tag != "tool" && !tag.starts_with("tool:") && !tag.starts_with("workspace:");
    let tags = tool.tags.iter().map(String::as_str).filter(is_own);
    let tags = tags.map(|tag| tag.strip_prefix(CATEGORY).unwrap_or(tag));
    let server = match &tool.source {
        ToolSource::Mcp(server) if !tool.name.starts_with(server.as_str()) => server.as_str(),
        _ => "",
    };
    let first = [tool.name.as_str(), server, title, tool.description.as_str()];
    Text::new(first.into_iter().filter(|field| !field.is_empty()), arguments.into_iter().chain(tags))
}

/// The prefix of the tag that names a tool's family.
pub(crate) const CATEGORY: &str = "category:";

/// The names and descriptions of the arguments in a schema.
fn gather<'s>(schema: &'s Value, depth: usize, found: &mut Vec<&'s str>) {
    if depth > MAX_DEPTH {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if found.len() >= 2 * MAX_ARGUMENTS {
            return;
        }
        found.push(name);
        found.extend(property.get("description").and_then(Value::as_str));
        gather(property, depth + 1, found);
    }
    if let Some(items) = schema.get("items") {
        gather(items, depth + 1, found);
    }
}

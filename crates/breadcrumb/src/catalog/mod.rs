//! The catalog: the tools that are offered, and those that wait for something, as runners keep them
//! in `tool.catalog.v1` records.

mod format;
mod parts;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Annotations, Breadcrumbs, NewBreadcrumb, Profile, StoreError, ToolSource};

pub use format::ToolFormat;

/// A tool that can be called, whatever runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Registration {
    pub name: String,
    /// For whoever chooses among tools.
    #[serde(default)]
    pub description: String,
    /// JSON Schema 2020-12 of the input. `true` admits everything.
    #[schema(value_type = Object)]
    pub parameters: Value,
    pub source: ToolSource,
    #[serde(default)]
    pub annotations: Annotations,
    /// The record that defines the tool.
    pub tool_id: Uuid,
    /// The version of that record that serves.
    pub tool_version: i64,
}

/// A tool that cannot be called yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    pub name: String,
    pub source: ToolSource,
    pub tool_id: Uuid,
    /// What is missing, each a sentence for people that says what to do.
    pub waits_for: Vec<String>,
}

/// A tool that can be called, or (it has `waits_for`) one that cannot be called yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum CatalogEntry {
    Waiting(Waiting),
    Offered(Registration),
}

/// All tools of a tenant, each name once, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Catalog {
    pub tools: Vec<Registration>,
    pub waiting: Vec<Waiting>,
}

impl Catalog {
    /// Sorts both lists. Of two tools of one name the first stays, and one that is offered goes before one that waits.
    pub fn new(mut tools: Vec<Registration>, mut waiting: Vec<Waiting>) -> Self {
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|later, first| later.name == first.name);
        waiting.retain(|one| tools.binary_search_by(|tool| tool.name.cmp(&one.name)).is_err());
        waiting.sort_by(|a, b| a.name.cmp(&b.name));
        waiting.dedup_by(|later, first| later.name == first.name);
        Self { tools, waiting }
    }

    /// The records that hold this catalog, to be written beside or over those that are there: each part is known by its
    /// tag `catalog:part:<n>`, and a part that is there but not here is to be deleted. A part has at most
    /// [`Self::MAX_PART_BYTES`] of JSON, and a tool's name chooses its part, so that one changed tool changes one
    /// record.
    pub fn records(&self) -> Vec<NewBreadcrumb> {
        parts::split(self, 0)
    }

    /// As [`Self::records`], in as many parts as there are now unless they are too few or far too many: so a tool more or
    /// less does not divide all of them anew.
    pub fn records_beside(&self, present: usize) -> Vec<NewBreadcrumb> {
        parts::split(self, present)
    }

    /// In which of so many parts a tool of this name stands.
    pub fn part_of(name: &str, parts: usize) -> usize {
        parts::place(name, parts)
    }

    /// The record of one part alone, `None` where these entries are too much for one. They stand in it in this order,
    /// which is by name in every runner.
    pub fn part(number: usize, entries: &[CatalogEntry]) -> Option<NewBreadcrumb> {
        parts::part(number, entries)
    }

    /// Parts that one answer of a store can hold.
    pub const PARTS_AT_ONCE: u32 = parts::PAGE;

    /// The most JSON text in one part, in bytes. A schema that alone is larger is left out of the catalog, which then
    /// says where it stands.
    pub const MAX_PART_BYTES: usize = 256 * 1024;

    /// With what the tag of one part begins. A catalog record without such a tag is another program's, and is not read.
    pub const PART_TAG: &str = "catalog:part:";

    /// The part that a record with these tags is, as its tag says it.
    pub fn part_tag(tags: &[String]) -> Option<&str> {
        tags.iter().map(String::as_str).find(|tag| tag.starts_with(Self::PART_TAG))
    }

    /// The tag of all parts.
    pub const TAG: &str = "tool:catalog";

    /// `None` when no runner has written one yet. While a runner writes, a reader sees each tool in its old state or
    /// in its new one.
    pub async fn read(store: &dyn Breadcrumbs) -> Result<Option<Self>, StoreError> {
        parts::read(store).await
    }

    /// What an agent of this profile sees. What waits is told to everybody who may have it.
    #[must_use]
    pub fn for_profile(mut self, profile: Profile) -> Self {
        self.tools.retain(|tool| profile.allows(&tool.name, &tool.source));
        self.waiting.retain(|tool| profile.allows(&tool.name, &tool.source));
        self
    }

    pub fn find(&self, name: &str) -> Option<&Registration> {
        self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().and_then(|at| self.tools.get(at))
    }

    pub fn find_waiting(&self, name: &str) -> Option<&Waiting> {
        self.waiting.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().and_then(|at| self.waiting.get(at))
    }

    /// The tool of this name, or the one that has this name in a format that refuses its own (see [`ToolFormat::name`]).
    pub fn find_by_any_name(&self, name: &str) -> Option<&Registration> {
        self.find(name).or_else(|| {
            self.tools.iter().find(|tool| ToolFormat::ALL.iter().any(|format| format.name(&tool.name) == name))
        })
    }

    /// What the catalog says of a tool, by its own name or by the one that it has in a format.
    pub fn entry(&self, name: &str) -> Option<CatalogEntry> {
        let waiting = || self.find_waiting(name).cloned().map(CatalogEntry::Waiting);
        self.find_by_any_name(name).cloned().map(CatalogEntry::Offered).or_else(waiting)
    }

    /// All names, those of waiting tools too.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str()).chain(self.waiting.iter().map(|tool| tool.name.as_str()))
    }

    /// The tools as this format has them. See [`ToolFormat`] for the shapes, and for what a format cannot say.
    pub fn in_format(&self, format: ToolFormat) -> Value {
        format::catalog(self, format)
    }
}

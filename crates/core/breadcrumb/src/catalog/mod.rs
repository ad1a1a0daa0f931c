//! The catalog: the tools that are offered, and those that wait for something. Runners keep it in
//! `tool.catalog.v1` records.

mod format;
mod model_call;
mod parts;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    AllowedTools, Annotations, BreadcrumbListItem, Deprecation, NewBreadcrumb, Profile, Records, StoreError, ToolSource,
};

pub use format::ToolFormat;
pub use model_call::ModelCall;

/// A tool that can be called, of any source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Registration {
    pub name: String,
    /// For people and models that choose a tool.
    #[serde(default)]
    pub description: String,
    /// JSON Schema 2020-12 of the input. `true` accepts everything.
    #[schema(value_type = Object)]
    pub parameters: Value,
    /// JSON Schema 2020-12 of the output, if its author described it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub output_schema: Option<Value>,
    pub source: ToolSource,
    #[serde(default)]
    pub annotations: Annotations,
    /// Its author announced its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecation>,
    /// The tags of the record that defines the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The record that defines the tool.
    pub tool_id: Uuid,
    /// The version of that record that runs.
    pub tool_version: i64,
}

impl Registration {
    /// Why calls of this tool are refused at this time, if its author's last day for it is over.
    pub fn removal(&self, now: DateTime<Utc>) -> Option<String> {
        self.deprecated.as_ref().and_then(|deprecation| deprecation.removal(&self.name, now))
    }
}

/// A tool that cannot be called yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    pub name: String,
    pub source: ToolSource,
    /// The tags of the record that defines the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub tool_id: Uuid,
    /// What is missing. Each is a sentence that says what to do.
    pub missing_requirements: Vec<String>,
}

/// A tool that can be called, or (with `missing_requirements`) one that cannot be called yet.
// Most entries are offered tools, so a box would save nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum CatalogEntry {
    Waiting(Waiting),
    Offered(Registration),
}

/// All tools of a tenant, sorted by name, without duplicate names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Catalog {
    pub tools: Vec<Registration>,
    pub waiting: Vec<Waiting>,
}

impl Catalog {
    /// Sorts both lists. Of two tools with one name the first remains, and an offered tool precedes
    /// a waiting one.
    pub fn new(mut tools: Vec<Registration>, mut waiting: Vec<Waiting>) -> Self {
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|later, first| later.name == first.name);
        waiting.retain(|one| tools.binary_search_by(|tool| tool.name.cmp(&one.name)).is_err());
        waiting.sort_by(|a, b| a.name.cmp(&b.name));
        waiting.dedup_by(|later, first| later.name == first.name);
        Self { tools, waiting }
    }

    /// The records of this catalog. They replace existing parts or are added to them; a part is
    /// identified by its tag `catalog:part:<n>`. Existing parts that are not in the result are to
    /// be deleted.
    ///
    /// A part has at most [`Self::MAX_PART_BYTES`] of JSON. A tool's name selects its part, so that
    /// one changed tool changes one record.
    pub fn records(&self) -> Vec<NewBreadcrumb> {
        parts::split(self, 0, true)
    }

    /// Like [`Self::records`], with the present number of parts unless that is too small, or if
    /// there may be fewer, far too large. So one tool more or less does not change the division of
    /// all of them.
    pub fn records_beside(&self, present: usize, may_be_fewer: bool) -> Vec<NewBreadcrumb> {
        parts::split(self, present, may_be_fewer)
    }

    /// The part of a tool with this name, for a given number of parts.
    pub fn part_of(name: &str, parts: usize) -> usize {
        parts::part_of(name, parts)
    }

    /// The record of one of so many parts; `None` if the entries are too large for one. They appear
    /// in the given order, which is by name in every runner.
    pub fn part(number: usize, parts: usize, entries: &[CatalogEntry]) -> Option<NewBreadcrumb> {
        parts::part(number, parts, entries)
    }

    /// Whether parts of so many entries with so many bytes of JSON have more than twice their usual
    /// size, so that each change writes that much. [`Self::records_beside`] divides them then.
    pub fn needs_more_parts(parts: usize, entries: usize, bytes: usize) -> bool {
        parts::usual_parts(entries / 2, bytes / 2) > parts
    }

    /// The most JSON text in one part, in bytes. A larger schema is left out of the catalog, which
    /// then says which record has it.
    pub const MAX_PART_BYTES: usize = 256 * 1024;

    /// The prefix of a part's tag.
    const PART_TAG: &str = "catalog:part:";

    /// The tag of the part with this number.
    pub fn tag_of_part(number: usize) -> String {
        format!("{}{number}", Self::PART_TAG)
    }

    /// The tag among these that identifies a part. Other programs' catalog records do not have such
    /// a tag and are not read.
    pub fn part_tag(tags: &[String]) -> Option<&str> {
        tags.iter().map(String::as_str).find(|tag| tag.starts_with(Self::PART_TAG))
    }

    /// The prefix of the tag with the number of parts. All parts of a catalog have the same, except
    /// while a runner divides it again.
    const PARTS_TAG: &str = "catalog:parts:";

    /// Into how many parts the catalog was divided when the part with these tags was written.
    pub fn parts_in(tags: &[String]) -> Option<usize> {
        tags.iter().find_map(|tag| tag.strip_prefix(Self::PARTS_TAG)?.parse().ok())
    }

    /// The tag of all parts.
    pub const TAG: &str = "tool:catalog";

    /// The records of the parts with one of these tags, newest first and each once. Without tags,
    /// all of them and other programs' catalog records.
    pub async fn list_parts(
        store: &(impl Records + ?Sized),
        any_tags: Vec<String>,
        include_context: bool,
    ) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        parts::list_parts(store, any_tags, include_context).await
    }

    /// Reads the catalog; `None` if no runner has written one yet. While a runner writes, a reader
    /// sees each tool in its old or its new state.
    pub async fn read(store: &(impl Records + ?Sized)) -> Result<Option<Self>, StoreError> {
        parts::read(store).await
    }

    /// Reads the part of this tool. If the part does not have it, reads the whole catalog, because
    /// the name can be one that a format made.
    pub async fn read_with(store: &(impl Records + ?Sized), tool: &str) -> Result<Option<Self>, StoreError> {
        match parts::read_part_of(store, tool).await? {
            Some(part) if part.find(tool).is_some() || part.find_waiting(tool).is_some() => Ok(Some(part)),
            _ => Self::read(store).await,
        }
    }

    /// The catalog for an agent with this profile. Waiting tools are included if the profile allows
    /// them.
    #[must_use]
    pub fn for_profile(mut self, profile: Profile) -> Self {
        self.tools.retain(|tool| profile.allows(&tool.name, &tool.source));
        self.waiting.retain(|tool| profile.allows(&tool.name, &tool.source));
        self
    }

    /// The catalog for an agent with this allow list.
    #[must_use]
    pub fn for_allowed(mut self, allowed: &AllowedTools) -> Self {
        self.tools.retain(|tool| allowed.allows(&tool.name, &tool.source, &tool.tags));
        self.waiting.retain(|tool| allowed.allows(&tool.name, &tool.source, &tool.tags));
        self
    }

    /// The catalog without the tools that can no longer be called at this time. Runners keep them,
    /// because a call of one is answered with its replacement.
    #[must_use]
    pub fn without_removed(mut self, now: DateTime<Utc>) -> Self {
        self.tools.retain(|tool| tool.removal(now).is_none());
        self
    }

    pub fn find(&self, name: &str) -> Option<&Registration> {
        self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().and_then(|at| self.tools.get(at))
    }

    pub fn find_waiting(&self, name: &str) -> Option<&Waiting> {
        self.waiting.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().and_then(|at| self.waiting.get(at))
    }

    /// The tool with this name, or the one with this name in a format that refuses its own (see
    /// [`ToolFormat::name`]).
    pub fn find_by_any_name(&self, name: &str) -> Option<&Registration> {
        self.find(name).or_else(|| {
            self.tools.iter().find(|tool| ToolFormat::ALL.iter().any(|format| format.name(&tool.name) == name))
        })
    }

    /// The entry of a tool, by its own name or by its name in a format.
    pub fn entry(&self, name: &str) -> Option<CatalogEntry> {
        let waiting = || self.find_waiting(name).cloned().map(CatalogEntry::Waiting);
        self.find_by_any_name(name).cloned().map(CatalogEntry::Offered).or_else(waiting)
    }

    /// All names, including those of waiting tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str()).chain(self.waiting.iter().map(|tool| tool.name.as_str()))
    }

    /// The tools in this format. See [`ToolFormat`] for the shapes and for what a format cannot
    /// express.
    pub fn in_format(&self, format: ToolFormat) -> Value {
        format::catalog(self, format)
    }
}

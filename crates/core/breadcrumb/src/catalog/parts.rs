//! Splits the catalog into records, and reads it from them.

use std::collections::{BTreeMap, HashSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Catalog, CatalogEntry, Registration, Waiting};
use crate::schema_names::TOOL_CATALOG;
use crate::{BreadcrumbListItem, BreadcrumbQuery, NewBreadcrumb, Records, Selector, StoreError};

/// The most parts. 4096 parts have a gigabyte.
const MAX_PARTS: usize = 4096;
/// The approximate bytes of JSON in a part with many tools. A change of one tool writes this much.
const USUAL_PART_BYTES: usize = 24 * 1024;
/// The usual tools in a part: few tools make few parts, even if they are large.
const USUAL_ENTRIES: usize = 8;
/// A catalog gets fewer parts only if it has this many times the parts that it would get.
const SLACK: usize = 4;
/// Parts in one list result of the store, which has at most 64 MiB.
const PAGE: u32 = 200;
/// How often a catalog of several pages is read, until no part is missing.
const MAX_READS: u32 = 5;
/// The longest description of a tool whose schema was left out.
const SHORT_DESCRIPTION: usize = 10_000;
/// The most sentences of a waiting tool, if all of them are too large.
const FEW_SENTENCES: usize = 20;

/// One part, as written: the entries as JSON, by kind.
#[derive(Default)]
struct CatalogPart {
    tools: Vec<Value>,
    waiting: Vec<Value>,
}

/// `present` is the current number of parts, 0 if there are none.
pub(super) fn split(catalog: &Catalog, present: usize, may_be_fewer: bool) -> Vec<NewBreadcrumb> {
    let tools: Vec<(&str, Value)> = catalog.tools.iter().map(|tool| (tool.name.as_str(), registration(tool))).collect();
    let waiting: Vec<(&str, Value)> = catalog.waiting.iter().map(|tool| (tool.name.as_str(), waits(tool))).collect();
    let bytes: usize = tools.iter().chain(&waiting).map(|(_, entry)| size(entry)).sum();
    let usual = usual_parts(tools.len() + waiting.len(), bytes);
    let most = if may_be_fewer { MAX_PARTS.min(usual * SLACK - 1) } else { MAX_PARTS };
    let keeps = present.is_power_of_two() && (usual..=most).contains(&present);
    let mut count = if keeps { present } else { usual };
    loop {
        let mut parts: Vec<CatalogPart> = (0..count).map(|_| CatalogPart::default()).collect();
        for (name, tool) in &tools {
            parts[part_of(name, count)].tools.push(tool.clone());
        }
        for (name, tool) in &waiting {
            parts[part_of(name, count)].waiting.push(tool.clone());
        }
        if count >= MAX_PARTS || !parts.iter().any(CatalogPart::is_too_large) {
            return parts.into_iter().enumerate().map(|(number, part)| record(number, count, part)).collect();
        }
        count *= 2;
    }
}

/// The number of parts for so many entries with so many bytes of JSON: a power of two.
pub(super) fn usual_parts(entries: usize, bytes: usize) -> usize {
    let by_size = bytes.div_ceil(USUAL_PART_BYTES);
    by_size.min(entries.div_ceil(USUAL_ENTRIES)).clamp(1, MAX_PARTS).next_power_of_two()
}

/// One part; `None` if the entries are too large for one.
pub(super) fn part(number: usize, parts: usize, entries: &[CatalogEntry]) -> Option<NewBreadcrumb> {
    let mut part = CatalogPart::default();
    for entry in entries {
        match entry {
            CatalogEntry::Offered(tool) => part.tools.push(registration(tool)),
            CatalogEntry::Waiting(tool) => part.waiting.push(waits(tool)),
        }
    }
    (!part.is_too_large()).then(|| record(number, parts, part))
}

impl CatalogPart {
    fn is_too_large(&self) -> bool {
        let bytes: usize = self.tools.iter().chain(&self.waiting).map(size).sum();
        bytes > Catalog::MAX_PART_BYTES - 1024
    }
}

fn record(number: usize, parts: usize, part: CatalogPart) -> NewBreadcrumb {
    let mut context = Map::new();
    context.insert("part".into(), number.into());
    context.insert("tools".into(), Value::Array(part.tools));
    context.insert("waiting".into(), Value::Array(part.waiting));
    NewBreadcrumb {
        title: "Tools on offer".into(),
        context,
        tags: vec![Catalog::TAG.into(), Catalog::tag_of_part(number), format!("{}{parts}", Catalog::PARTS_TAG)],
        schema_name: Some(TOOL_CATALOG.into()),
        ..NewBreadcrumb::default()
    }
}

/// The part of a name: an even distribution that is the same in every runner.
pub(super) fn part_of(name: &str, parts: usize) -> usize {
    let hash = Sha256::digest(name.as_bytes());
    let number = hash.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    usize::try_from(number % (parts.max(1) as u64)).unwrap_or_default()
}

/// Bytes of an entry in its list, including the comma.
fn size(entry: &Value) -> usize {
    entry.to_string().len() + 1
}

fn registration(tool: &Registration) -> Value {
    let entry = json!(tool);
    let bytes = size(&entry);
    if bytes <= Catalog::MAX_PART_BYTES / 2 {
        return entry;
    }
    json!(Registration {
        description: tool.description.chars().take(SHORT_DESCRIPTION).collect(),
        parameters: json!({
            "type": "object",
            "description": format!(
                "The description and schema ({bytes} bytes) are too large for the catalog; see the record {}",
                tool.tool_id
            ),
        }),
        output_schema: None,
        ..tool.clone()
    })
}

fn waits(tool: &Waiting) -> Value {
    let entry = json!(tool);
    if size(&entry) <= Catalog::MAX_PART_BYTES / 2 {
        return entry;
    }
    let few = tool
        .missing_requirements
        .iter()
        .take(FEW_SENTENCES)
        .map(|sentence| sentence.chars().take(1000).collect())
        .collect();
    json!(Waiting { missing_requirements: few, ..tool.clone() })
}

/// See [`Catalog::list_parts`].
pub(super) async fn list_parts(
    store: &(impl Records + ?Sized),
    any_tags: Vec<String>,
    include_context: bool,
) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    let all_tags = vec![Catalog::TAG.into()];
    let selector = Selector { all_tags, any_tags, schema_name: Some(TOOL_CATALOG.into()), ..Selector::default() };
    let mut query = BreadcrumbQuery { selector, limit: PAGE, offset: 0, include_context };
    let (mut rows, mut seen) = (Vec::new(), HashSet::new());
    loop {
        let page = store.list(&query).await?;
        let is_last = page.len() < PAGE as usize;
        // If a part is written meanwhile, the next page begins with the last one of this page.
        rows.extend(page.into_iter().filter(|row| seen.insert(row.id)));
        if is_last {
            return Ok(rows);
        }
        query.offset += PAGE;
    }
}

pub(super) async fn read(store: &(impl Records + ?Sized)) -> Result<Option<Catalog>, StoreError> {
    let mut reads = 0;
    loop {
        reads += 1;
        let rows = list_parts(store, Vec::new(), true).await?;
        let is_one_page = rows.len() < PAGE as usize;
        let mut entries = Entries::default();
        let (mut found, mut parts) = (HashSet::new(), None);
        for row in rows {
            let Some(tag) = Catalog::part_tag(&row.tags) else { continue };
            parts = parts.or(Catalog::parts_in(&row.tags));
            found.insert(tag.to_owned());
            entries.add(row.context.unwrap_or_default());
        }
        // A part that was written between two pages can be in neither.
        let has_all = |parts| (0..parts).all(|number| found.contains(&Catalog::tag_of_part(number)));
        if is_one_page || parts.is_none_or(has_all) || reads == MAX_READS {
            return Ok((!found.is_empty()).then(|| entries.into_catalog()));
        }
    }
}

/// Reads only the part of this name. `None` if there is none. While a runner divides the catalog
/// again, it is the one that was written last.
pub(super) async fn read_part_of(store: &(impl Records + ?Sized), name: &str) -> Result<Option<Catalog>, StoreError> {
    // The number of parts is a power of two.
    let counts = std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|count| *count <= MAX_PARTS);
    let mut tags: Vec<String> = counts.map(|count| Catalog::tag_of_part(part_of(name, count))).collect();
    tags.dedup();
    let rows = list_parts(store, tags, false).await?;
    let has_name = |tags: &[String]| {
        let tag = Catalog::parts_in(tags).map(|parts| Catalog::tag_of_part(part_of(name, parts)));
        tag.is_some_and(|tag| tags.contains(&tag))
    };
    let Some(row) = rows.iter().find(|row| has_name(&row.tags)) else { return Ok(None) };
    let mut entries = Entries::default();
    match store.get(row.id).await {
        Ok(part) => entries.add(part.context),
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok(Some(entries.into_catalog()))
}

/// The entries of some parts, by name.
#[derive(Default)]
struct Entries(BTreeMap<String, CatalogEntry>);

impl Entries {
    /// Newest first. If two parts have the same name, because a runner is dividing the catalog
    /// again, the newer one is right.
    fn add(&mut self, mut context: Map<String, Value>) {
        for tool in list::<Registration>(context.remove("tools")) {
            self.0.entry(tool.name.clone()).or_insert(CatalogEntry::Offered(tool));
        }
        for tool in list::<Waiting>(context.remove("waiting")) {
            self.0.entry(tool.name.clone()).or_insert(CatalogEntry::Waiting(tool));
        }
    }

    fn into_catalog(self) -> Catalog {
        let mut catalog = Catalog::default();
        for entry in self.0.into_values() {
            match entry {
                CatalogEntry::Offered(tool) => catalog.tools.push(tool),
                CatalogEntry::Waiting(tool) => catalog.waiting.push(tool),
            }
        }
        catalog
    }
}

/// The valid entries. What another program wrote in another shape is skipped.
fn list<T: DeserializeOwned>(entries: Option<Value>) -> Vec<T> {
    match entries {
        Some(Value::Array(entries)) => entries.into_iter().filter_map(|entry| T::deserialize(entry).ok()).collect(),
        _ => Vec::new(),
    }
}

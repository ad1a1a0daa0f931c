//! Splits the catalog into records, and reads it from them.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Catalog, CatalogEntry, Registration, Waiting};
use crate::schema_names::TOOL_CATALOG;
use crate::{BreadcrumbQuery, Breadcrumbs, NewBreadcrumb, Selector, StoreError};

/// More parts than this are never made. 4096 parts hold a gigabyte.
const MAX_PARTS: usize = 4096;
/// About how much of JSON a part of many tools has: what a change of one of them writes.
const USUAL_PART_BYTES: usize = 24 * 1024;
/// Few tools make few parts, however large they are.
const USUAL_ENTRIES: usize = 8;
/// A catalog is divided anew only when it has this many times the parts that it would get, or too few.
const SLACK: usize = 4;
/// Parts of one answer of the store, which has at most 64 MiB.
pub(super) const PAGE: u32 = 200;
/// The longest description that stands beside a schema that was left out.
const SHORT_DESCRIPTION: usize = 10_000;
/// The most sentences of a tool that waits, when all of them are too much.
const FEW_SENTENCES: usize = 20;

/// One part, as it is written: the entries' own JSON, by kind.
#[derive(Default)]
struct Part {
    tools: Vec<Value>,
    waiting: Vec<Value>,
}

/// `present` is how many parts there are now, 0 when there are none.
pub(super) fn split(catalog: &Catalog, present: usize) -> Vec<NewBreadcrumb> {
    let tools: Vec<(&str, Value)> = catalog.tools.iter().map(|tool| (tool.name.as_str(), registration(tool))).collect();
    let waiting: Vec<(&str, Value)> = catalog.waiting.iter().map(|tool| (tool.name.as_str(), waits(tool))).collect();
    let bytes: usize = tools.iter().chain(&waiting).map(|(_, entry)| size(entry)).sum();
    let by_size = bytes.div_ceil(USUAL_PART_BYTES);
    let usual = by_size.min((tools.len() + waiting.len()).div_ceil(USUAL_ENTRIES)).max(1).next_power_of_two();
    let keeps = present.is_power_of_two() && (usual..usual.saturating_mul(SLACK)).contains(&present);
    let mut count = if keeps { present } else { usual }.min(MAX_PARTS);
    loop {
        let mut parts: Vec<Part> = (0..count).map(|_| Part::default()).collect();
        for (name, tool) in &tools {
            parts[place(name, count)].tools.push(tool.clone());
        }
        for (name, tool) in &waiting {
            parts[place(name, count)].waiting.push(tool.clone());
        }
        if count >= MAX_PARTS || !parts.iter().any(Part::is_too_large) {
            return parts.into_iter().enumerate().map(|(number, part)| record(number, part)).collect();
        }
        count *= 2;
    }
}

/// One part of its entries, or `None` where they are too many for one.
pub(super) fn part(number: usize, entries: &[CatalogEntry]) -> Option<NewBreadcrumb> {
    let mut part = Part::default();
    for entry in entries {
        match entry {
            CatalogEntry::Offered(tool) => part.tools.push(registration(tool)),
            CatalogEntry::Waiting(tool) => part.waiting.push(waits(tool)),
        }
    }
    (!part.is_too_large()).then(|| record(number, part))
}

impl Part {
    fn is_too_large(&self) -> bool {
        let bytes: usize = self.tools.iter().chain(&self.waiting).map(size).sum();
        bytes > Catalog::MAX_PART_BYTES - 1024
    }
}

fn record(number: usize, part: Part) -> NewBreadcrumb {
    let mut context = Map::new();
    context.insert("part".into(), number.into());
    context.insert("tools".into(), Value::Array(part.tools));
    context.insert("waiting".into(), Value::Array(part.waiting));
    NewBreadcrumb {
        title: "Tools on offer".into(),
        context,
        tags: vec![Catalog::TAG.into(), format!("{}{number}", Catalog::PART_TAG)],
        schema_name: Some(TOOL_CATALOG.into()),
        ..NewBreadcrumb::default()
    }
}

/// Where a name goes among so many parts, evenly and the same in every runner.
pub(super) fn place(name: &str, parts: usize) -> usize {
    let hash = Sha256::digest(name.as_bytes());
    let number = hash.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    usize::try_from(number % (parts.max(1) as u64)).unwrap_or_default()
}

/// Bytes of an entry in its list, the comma included.
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
                "What the tool says of itself ({bytes} bytes) is too large for the catalog; it stands in the record {}",
                tool.tool_id
            ),
        }),
        ..tool.clone()
    })
}

fn waits(tool: &Waiting) -> Value {
    let entry = json!(tool);
    if size(&entry) <= Catalog::MAX_PART_BYTES / 2 {
        return entry;
    }
    let few = tool.waits_for.iter().take(FEW_SENTENCES).map(|sentence| sentence.chars().take(1000).collect()).collect();
    json!(Waiting { waits_for: few, ..tool.clone() })
}

/// What a part says of a name.
enum Entry {
    Offered(Registration),
    Waiting(Waiting),
}

pub(super) async fn read(store: &dyn Breadcrumbs) -> Result<Option<Catalog>, StoreError> {
    let mut query = BreadcrumbQuery {
        selector: Selector {
            all_tags: vec![Catalog::TAG.into()],
            schema_name: Some(TOOL_CATALOG.into()),
            ..Selector::default()
        },
        limit: PAGE,
        offset: 0,
        include_context: true,
    };
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    let mut is_there = false;
    loop {
        let page = store.list(&query).await?;
        let more = page.len() as u64 == u64::from(PAGE);
        // Newest first: where two parts have a name, because a runner divides the catalog again,
        // the newer is right.
        for item in page.into_iter().filter(|item| Catalog::part_tag(&item.tags).is_some()) {
            is_there = true;
            let Some(mut context) = item.context else { continue };
            for tool in list::<Registration>(context.remove("tools")) {
                entries.entry(tool.name.clone()).or_insert(Entry::Offered(tool));
            }
            for tool in list::<Waiting>(context.remove("waiting")) {
                entries.entry(tool.name.clone()).or_insert(Entry::Waiting(tool));
            }
        }
        if !more {
            break;
        }
        query.offset += PAGE;
    }
    let mut catalog = Catalog::default();
    for entry in entries.into_values() {
        match entry {
            Entry::Offered(tool) => catalog.tools.push(tool),
            Entry::Waiting(tool) => catalog.waiting.push(tool),
        }
    }
    Ok(is_there.then_some(catalog))
}

/// The entries that are what they should be; what another program wrote otherwise is passed over.
fn list<T: DeserializeOwned>(entries: Option<Value>) -> Vec<T> {
    match entries {
        Some(Value::Array(entries)) => entries.into_iter().filter_map(|entry| T::deserialize(entry).ok()).collect(),
        _ => Vec::new(),
    }
}

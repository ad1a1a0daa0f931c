//! The catalog's way into records and back.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Catalog, Registration, Waiting};
use crate::schema_names::TOOL_CATALOG;
use crate::{BreadcrumbQuery, Breadcrumbs, MAX_PAGE, NewBreadcrumb, Selector, StoreError};

/// More parts than this are never made. 4096 parts hold a gigabyte.
const MAX_PARTS: u64 = 4096;
/// The longest description that stands beside a schema that was left out.
const SHORT_DESCRIPTION: usize = 10_000;
/// The most sentences of a tool that waits, when all of them are too much.
const FEW_SENTENCES: usize = 20;

/// One part, as it is measured and written: the entries' own JSON, by kind.
#[derive(Default)]
struct Part {
    tools: Vec<Value>,
    waiting: Vec<Value>,
    bytes: usize,
}

pub(super) fn split(catalog: &Catalog) -> Vec<NewBreadcrumb> {
    let tools: Vec<(u64, Value)> = catalog.tools.iter().map(|tool| (place(&tool.name), registration(tool))).collect();
    let waiting: Vec<(u64, Value)> = catalog.waiting.iter().map(|tool| (place(&tool.name), waits(tool))).collect();
    let mut count = 1;
    loop {
        let mut parts: Vec<Part> = (0..count).map(|_| Part::default()).collect();
        let at = |place: u64| usize::try_from(place % count).unwrap_or_default();
        for (place, tool) in &tools {
            parts[at(*place)].bytes += size(tool);
            parts[at(*place)].tools.push(tool.clone());
        }
        for (place, tool) in &waiting {
            parts[at(*place)].bytes += size(tool);
            parts[at(*place)].waiting.push(tool.clone());
        }
        if count >= MAX_PARTS || parts.iter().all(|part| part.bytes <= Catalog::MAX_PART_BYTES - 1024) {
            return parts.into_iter().enumerate().map(|(number, part)| record(number, part)).collect();
        }
        count *= 2;
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
        tags: vec![Catalog::TAG.into(), format!("catalog:part:{number}")],
        schema_name: Some(TOOL_CATALOG.into()),
        ..NewBreadcrumb::default()
    }
}

/// Where a name goes, evenly over all numbers and the same in every runner.
fn place(name: &str) -> u64 {
    let hash = Sha256::digest(name.as_bytes());
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
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
        limit: MAX_PAGE,
        offset: 0,
        include_context: true,
    };
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    let mut is_there = false;
    loop {
        let page = store.list(&query).await?;
        let more = page.len() as u64 == u64::from(MAX_PAGE);
        is_there |= !page.is_empty();
        // Newest first: where two parts have a name, because a runner divides the catalog anew, the newer is right.
        for mut context in page.into_iter().filter_map(|item| item.context) {
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
        query.offset += MAX_PAGE;
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

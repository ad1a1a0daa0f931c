//! Tools as the catalog has them, for an agent that cannot read their records: a caller.

use rcrt_breadcrumb::{Catalog, CatalogEntry};

use crate::output::{Output, one_line};

pub fn list(output: Output, catalog: &Catalog) -> anyhow::Result<()> {
    if output.is_json() {
        let waiting = catalog.waiting.iter().cloned().map(CatalogEntry::Waiting);
        let entries: Vec<CatalogEntry> =
            catalog.tools.iter().cloned().map(CatalogEntry::Offered).chain(waiting).collect();
        return output.json(&entries);
    }
    let offered =
        catalog.tools.iter().map(|tool| (&tool.name, tool.source.to_string(), one_line(&tool.description, 70)));
    let waiting = catalog.waiting.iter().map(|tool| {
        (&tool.name, tool.source.to_string(), one_line(&format!("WAITS: {}", tool.missing_requirements.join(" ")), 70))
    });
    let rows: Vec<Vec<String>> =
        offered.chain(waiting).map(|(name, source, about)| vec![one_line(name, 40), source, about]).collect();
    output.table(&["NAME", "SOURCE", "DESCRIPTION"], &rows)
}

//! The catalog, as a runner writes it and agents read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use rcrt_breadcrumb::{
    Annotations, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, BreadcrumbsDecorator, Catalog,
    NewBreadcrumb, Registration, StoreError, ToolSource, Waiting, schema_names,
};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Agent, Harness, alone, note};

fn tool(name: &str, hint: &str) -> Registration {
    Registration {
        name: name.into(),
        description: format!("What {name} does."),
        parameters: json!({"type": "object", "description": hint}),
        output_schema: None,
        source: ToolSource::Mcp("files".into()),
        tags: Vec::new(),
        annotations: Annotations { read_only: true, ..Annotations::default() },
        deprecated: None,
        tool_id: Uuid::new_v4(),
        tool_version: 2,
    }
}

fn waiting(name: &str) -> Waiting {
    let missing_requirements = vec!["Its key is missing.".into()];
    Waiting {
        name: name.into(),
        source: ToolSource::Rest,
        tags: Vec::new(),
        tool_id: Uuid::new_v4(),
        missing_requirements,
    }
}

async fn write(agent: &Agent, catalog: &Catalog) {
    for record in catalog.records() {
        agent.create(record, None).await.unwrap();
    }
}

pub async fn a_catalog_is_read_back_unchanged(harness: &impl Harness) {
    let agent = alone(harness).await;
    assert_eq!(Catalog::read(&*agent.store).await.unwrap(), None);
    write(&agent, &Catalog::default()).await;
    assert_eq!(Catalog::read(&*agent.store).await.unwrap(), Some(Catalog::default()));

    let agent = alone(harness).await;
    let tools = (0..60).map(|n| tool(&format!("tool_{n}"), &"x".repeat(10_000))).collect();
    let catalog = Catalog::new(tools, vec![waiting("needs_key"), waiting("needs_python")]);
    assert!(catalog.records().len() > 1, "more than one part");
    write(&agent, &catalog).await;
    // Not every record with the tag or the schema is a catalog, and another tenant's catalog does
    // not count.
    agent.create(NewBreadcrumb { tags: vec![Catalog::TAG.into()], ..note("not a catalog") }, None).await.unwrap();
    let foreign = NewBreadcrumb {
        tags: vec![Catalog::TAG.into()],
        schema_name: Some(schema_names::TOOL_CATALOG.into()),
        context: crate::harness::object(json!({"tools": [{"name": "half"}, 7], "waiting": "none"})),
        ..note("of another program")
    };
    agent.create(foreign, None).await.unwrap();
    write(&alone(harness).await, &Catalog::new(vec![tool("strange", "")], Vec::new())).await;
    assert_eq!(Catalog::read(&*agent.store).await.unwrap(), Some(catalog));
}

pub async fn a_tool_is_read_without_the_others(harness: &impl Harness) {
    let agent = alone(harness).await;
    assert_eq!(Catalog::read_with(&*agent.store, "tool_0").await.unwrap(), None);
    let tools = (0..60).map(|n| tool(&format!("tool_{n}"), &"x".repeat(10_000))).collect();
    let catalog = Catalog::new(tools, vec![waiting("needs_key")]);
    let parts = catalog.records().len();
    assert!(parts >= 8, "{parts}");
    write(&agent, &catalog).await;
    let mut read = 0;
    for one in &catalog.tools {
        let found = Catalog::read_with(&*agent.store, &one.name).await.unwrap().unwrap();
        assert_eq!(found.find(&one.name), Some(one));
        read += found.tools.len();
    }
    let of_all = catalog.tools.len() * catalog.tools.len();
    assert!(read < of_all / 4, "{read} of {of_all}");
    let found = Catalog::read_with(&*agent.store, "needs_key").await.unwrap().unwrap();
    assert_eq!(found.find_waiting("needs_key"), catalog.find_waiting("needs_key"));
    // No part has this name, so it can be another name of any tool.
    assert_eq!(Catalog::read_with(&*agent.store, "unknown").await.unwrap(), Some(catalog.clone()));

    // A runner divides the catalog into fewer parts, and the old ones are not deleted yet.
    let fewer = Catalog::new((0..60).map(|n| tool(&format!("tool_{n}"), "new")).collect(), Vec::new());
    assert!(fewer.records().len() < parts);
    write(&agent, &fewer).await;
    for one in &fewer.tools {
        let found = Catalog::read_with(&*agent.store, &one.name).await.unwrap().unwrap();
        assert_eq!(found.find(&one.name), Some(one));
    }
}

/// A list has 200 parts in the order of their last write, so one can leave the next page.
pub async fn a_part_that_changes_between_two_pages_is_read(harness: &impl Harness) {
    let agent = alone(harness).await;
    let catalog = Catalog::new((0..1100).map(|n| tool(&format!("tool_{n}"), &"x".repeat(3000))).collect(), Vec::new());
    assert!(catalog.records().len() > 200, "{}", catalog.records().len());
    write(&agent, &catalog).await;
    let changing = ChangesTheOldest { store: agent.store.clone(), is_changed: AtomicBool::new(false) };
    assert_eq!(Catalog::read(&changing).await.unwrap(), Some(catalog));
    assert!(changing.is_changed.into_inner());
}

/// A store in which the part that was written first changes before the second page is read.
struct ChangesTheOldest {
    store: Arc<dyn Breadcrumbs>,
    is_changed: AtomicBool,
}

#[async_trait]
impl BreadcrumbsDecorator for ChangesTheOldest {
    fn inner(&self) -> &dyn Breadcrumbs {
        &*self.store
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        if query.offset > 0 && !self.is_changed.swap(true, Ordering::Relaxed) {
            let oldest = self.store.list(query).await?.pop().expect("a second page");
            let changes = BreadcrumbChanges { title: Some("Changed".into()), ..BreadcrumbChanges::default() };
            self.store.update(oldest.id, oldest.version, changes).await?;
        }
        self.store.list(query).await
    }
}

pub async fn the_newest_catalog_entry_of_a_tool_counts(harness: &impl Harness) {
    let agent = alone(harness).await;
    let before = Catalog::new(vec![tool("a", "old"), tool("b", "old")], vec![]);
    write(&agent, &before).await;
    // As if the catalog was split again and the old part is not deleted yet.
    let after = Catalog::new(vec![tool("a", "new")], vec![waiting("b")]);
    write(&agent, &after).await;
    assert_eq!(Catalog::read(&*agent.store).await.unwrap(), Some(after));
}

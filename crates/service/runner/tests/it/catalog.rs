//! The `tool.catalog.v1` records follow the tools.

use std::collections::{BTreeSet, HashMap};

use rcrt_breadcrumb::{
    Annotations, BreadcrumbChanges, BreadcrumbQuery, Catalog, CatalogEntry, Event, EventKind, NewBreadcrumb,
    Registration, schema_names,
};
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, code, code_context, native, options};

#[tokio::test]
async fn catalog_entries_have_all_fields_needed_to_choose_a_tool() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let parameters = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "a number"}},
        "additionalProperties": false,
    });
    let more = json!({
        "description": "Adds one.",
        "input_schema": parameters,
        "annotations": {"read_only": true, "destructive": false, "idempotent": true, "open_world": false, "title": "Add"},
    });
    let add = fixture.create(code("add", more)).await;
    fixture.create(native("zip", json!({}))).await;
    fixture.create(code("broken", json!({"code": {"language": "typescript", "source": "broken("}}))).await;
    let runner = fixture.start(&fake);
    let catalog = fixture.catalog(|catalog| catalog.tools.len() == 2).await;
    assert_eq!(catalog.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["add", "zip"]);
    let tool = catalog.find("add").unwrap();
    assert_eq!((tool.description.as_str(), &tool.parameters), ("Adds one.", &parameters));
    assert_eq!((tool.source.to_string().as_str(), tool.tool_id, tool.tool_version), ("sandbox", add, 1));
    let annotations = Annotations {
        title: Some("Add".into()),
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };
    assert_eq!(tool.annotations, annotations);
    assert!(catalog.waiting.is_empty());
    runner.stop().await;
}

#[tokio::test]
async fn the_catalog_follows_created_changed_and_deleted_tools() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    // An empty catalog is written too, so that readers can distinguish it from a missing one.
    fixture.catalog(|catalog| catalog.tools.is_empty()).await;
    let id = fixture.create(code("echo", json!({}))).await;
    fixture.catalog(|catalog| catalog.find("echo").is_some()).await;
    fixture.change(id, 1, code_context("echo", json!({"description": "second"}))).await;
    fixture.catalog(|catalog| catalog.find("echo").is_some_and(|tool| tool.description == "second")).await;
    fixture.person.delete(id, None).await.unwrap();
    let versions = |catalog: &Catalog| catalog.tools.is_empty();
    let deleted = fixture.list(schema_names::TOOL_CATALOG).await;
    assert_eq!(deleted.len(), 1);
    let mut last = deleted[0].version;
    // After the first, empty catalog.
    while !versions(&Catalog::read(&*fixture.person).await.unwrap().unwrap()) {
        fixture.event(|event| event.breadcrumb_id == deleted[0].id && event.version > last).await;
        last += 1;
    }
    runner.stop().await;
}

/// Tools are assigned to parts by a hash of their names: a change of one tool rewrites one part,
/// and obsolete parts are deleted.
#[tokio::test]
async fn a_large_catalog_is_split_and_a_change_rewrites_one_part() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let long = "x".repeat(60_000);
    let mut tools = Vec::new();
    for n in 0..12 {
        tools.push(fixture.create(native(&format!("tool{n}"), json!({"description": long}))).await);
    }
    let runner = fixture.start(&fake);
    fixture.catalog(|catalog| catalog.tools.len() == 12).await;
    let before = fixture.list(schema_names::TOOL_CATALOG).await;
    assert!(before.len() > 1, "{}", before.len());
    let mut context = native("tool3", json!({"description": long})).context;
    context.insert("version".into(), "2".into());
    context.insert("description".into(), format!("y{}", &long[1..]).into());
    fixture.change(tools[3], 1, serde_json::Value::Object(context)).await;
    fixture.catalog(|catalog| catalog.find("tool3").is_some_and(|tool| tool.description.starts_with('y'))).await;
    let after = fixture.list(schema_names::TOOL_CATALOG).await;
    let changed = after.iter().filter(|row| !before.iter().any(|old| old.id == row.id && old.version == row.version));
    assert_eq!((changed.count(), after.len()), (1, before.len()));

    for tool in tools {
        fixture.person.delete(tool, None).await.unwrap();
    }
    fixture.catalog(|catalog| catalog.tools.is_empty()).await;
    let is_surplus = |event: &rcrt_breadcrumb::Event| {
        event.kind == rcrt_breadcrumb::EventKind::Deleted
            && event.schema_name.as_deref() == Some(schema_names::TOOL_CATALOG)
    };
    fixture.events(before.len() - 1, is_surplus).await;
    assert_eq!(fixture.list(schema_names::TOOL_CATALOG).await.len(), 1);
    runner.stop().await;
}

/// The events have the content of each part after each write, in order.
#[tokio::test]
async fn no_tool_is_missing_while_the_catalog_is_divided() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    let long = "x".repeat(60_000);
    for (first, last) in [(0, 4), (4, 12)] {
        for n in first..last {
            fixture.create(native(&format!("tool{n}"), json!({"description": long}))).await;
        }
        fixture.catalog(|catalog| catalog.tools.len() == last).await;
    }
    runner.stop().await;
    let parts = fixture.list(schema_names::TOOL_CATALOG).await;
    assert!(parts.len() > 1, "{}", parts.len());

    let mut contents = HashMap::new();
    let mut offered = BTreeSet::new();
    let mut seen = Vec::new();
    let is_last = |event: &Event| {
        if event.schema_name.as_deref() != Some(schema_names::TOOL_CATALOG) {
            return false;
        }
        let tools = event.context["tools"].as_array().unwrap();
        let names: Vec<String> = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        seen.push((event.breadcrumb_id, event.version));
        contents.insert(event.breadcrumb_id, names);
        let now: BTreeSet<String> = contents.values().flatten().cloned().collect();
        assert!(now.is_superset(&offered), "{offered:?} were offered, now {now:?}");
        offered = now;
        parts.iter().all(|part| seen.contains(&(part.id, part.version)))
    };
    fixture.event(is_last).await;
    assert_eq!(offered.len(), 12);
}

/// A catalog that grows tool by tool is divided long before a part has its largest size.
#[tokio::test]
async fn parts_are_divided_at_twice_their_usual_size() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    fixture.catalog(|catalog| catalog.tools.is_empty()).await;
    let text = "x".repeat(4_000);
    // 160 kB are below the largest size of one part.
    for n in 0..40 {
        fixture.create(native(&format!("tool{n}"), json!({"description": text}))).await;
    }
    fixture.event(|event| event.tags.contains(&Catalog::tag_of_part(3))).await;
    runner.stop().await;
}

fn is_first_of_two(event: &Event) -> bool {
    event.tags.contains(&Catalog::tag_of_part(0)) && Catalog::parts_in(&event.tags) == Some(2)
}

/// A runner that starts divides a catalog that one in operation leaves as it is.
#[tokio::test]
async fn a_runner_follows_when_another_one_divides_the_catalog() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let first = fixture.start(&fake);
    let text = "x".repeat(4_000);
    let mut tools = Vec::new();
    for n in 0..10 {
        let name = format!("tool{n}");
        tools.push((fixture.create(native(&name, json!({"description": text}))).await, name.clone()));
        fixture.catalog(|catalog| catalog.find(&name).is_some()).await;
    }
    assert_eq!(fixture.list(schema_names::TOOL_CATALOG).await.len(), 1);
    let second = fixture.start(&fake);
    fixture.event(|event| event.tags.contains(&Catalog::tag_of_part(1))).await;
    fixture.event(is_first_of_two).await;
    second.stop().await;

    let (id, name) = tools.iter().find(|(_, name)| Catalog::part_of(name, 2) == 1).unwrap();
    fixture.change(*id, 1, serde_json::Value::Object(native(name, json!({"description": "now"})).context)).await;
    fixture.catalog(|catalog| catalog.find(name).is_some_and(|tool| tool.tool_version == 2)).await;
    let read = Catalog::read_with(&*fixture.person, name).await.unwrap().unwrap();
    assert_eq!(read.find(name).unwrap().tool_version, 2);
    fixture.person.delete(*id, None).await.unwrap();
    fixture.catalog(|catalog| catalog.tools.len() == 9).await;
    first.stop().await;
}

/// Such as one that stopped, or of an earlier version, which does not write the number of parts.
#[tokio::test]
async fn what_another_runner_left_of_a_division_is_completed() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    for n in 0..4 {
        fixture.create(native(&format!("tool{n}"), json!({}))).await;
    }
    let catalog = fixture.catalog(|catalog| catalog.tools.len() == 4).await;
    let in_second = |tool: &Registration| Catalog::part_of(&tool.name, 2) == 1;
    let entries: Vec<_> = catalog.tools.into_iter().filter(in_second).map(CatalogEntry::Offered).collect();
    fixture.create(Catalog::part(1, 2, &entries).unwrap()).await;
    let first = fixture.event(is_first_of_two).await;

    let tags = vec![Catalog::TAG.into(), Catalog::tag_of_part(0)];
    let changes = BreadcrumbChanges { tags: Some(tags), ..BreadcrumbChanges::default() };
    let version = fixture.person.update(first.breadcrumb_id, first.version, changes).await.unwrap().version;
    fixture.event(|event| is_first_of_two(event) && event.version > version).await;
    runner.stop().await;
}

/// One of them sees all tools, the other one sees only that they wait for something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runners_that_see_catalogs_of_different_sizes_agree_on_the_parts() {
    let (fixture, fake, other) = (Fixture::new().await, Fake::new(), Fake::new());
    let text = "x".repeat(4_000);
    for n in 0..40 {
        let name = format!("tool{n}");
        other.missing_requirements.lock().unwrap().insert(name.clone(), vec!["Switch it on.".into()]);
        fixture.create(code(&name, json!({"description": text}))).await;
    }
    let runners = [fixture.start(&fake), fixture.start(&other)];
    for n in 0..30 {
        let name = format!("more{n}");
        fixture.create(code(&name, json!({}))).await;
        fixture.catalog(|catalog| catalog.find(&name).is_some()).await;
    }
    for runner in runners {
        runner.stop().await;
    }
    let last = fixture.create(NewBreadcrumb { title: "last".into(), ..NewBreadcrumb::default() }).await;
    let mut deleted = 0;
    let count = |event: &Event| {
        let is_part = event.schema_name.as_deref() == Some(schema_names::TOOL_CATALOG);
        deleted += usize::from(is_part && event.kind == EventKind::Deleted);
        event.breadcrumb_id == last
    };
    fixture.event(count).await;
    // Each start may make fewer of 8 parts once.
    assert!(deleted <= 16, "{deleted} parts were deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_runners_share_one_catalog_without_needless_writes() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(native("echo", json!({}))).await;
    fixture.create(native("shell", json!({}))).await;
    // One of them sees a different set of tools.
    let other = Fake::new();
    other.missing_requirements.lock().unwrap().insert("shell".into(), vec!["Switch it on.".into()]);
    let runners = [fixture.start(&fake), fixture.start(&other), fixture.start(&fake)];
    fixture.catalog(|catalog| catalog.find("echo").is_some()).await;
    let more = fixture.create(native("more", json!({}))).await;
    // A runner that responds for a later tool has finished its write of the earlier ones.
    fixture.catalog(|catalog| catalog.find("more").is_some()).await;
    for runner in runners {
        runner.stop().await;
    }
    let rows = fixture.list(schema_names::TOOL_CATALOG).await;
    assert_eq!(rows.len(), 1);
    // Two views, two changes of each, and a runner that started in between cause only a few
    // versions.
    assert!(rows[0].version <= 12, "{}", rows[0].version);

    // A runner whose view equals the catalog writes nothing.
    let runner = fixture.start(&fake);
    fixture.catalog(|catalog| catalog.find("shell").is_some() && catalog.find("more").is_some()).await;
    runner.stop().await;
    let version = fixture.list(schema_names::TOOL_CATALOG).await[0].version;
    let runner = fixture.start(&fake);
    fixture.call("echo", json!({})).await;
    fixture.change(more, 1, serde_json::Value::Object(native("more", json!({"description": "now"})).context)).await;
    fixture.catalog(|catalog| catalog.find("more").is_some_and(|tool| tool.tool_version == 2)).await;
    assert_eq!(fixture.list(schema_names::TOOL_CATALOG).await[0].version, version + 1);
    runner.stop().await;
}

#[tokio::test]
async fn a_deleted_part_is_written_again() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(native("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    fixture.catalog(|catalog| catalog.find("echo").is_some()).await;
    let first = fixture.list(schema_names::TOOL_CATALOG).await[0].id;
    fixture.person.delete(first, None).await.unwrap();
    let is_new = |event: &rcrt_breadcrumb::Event| {
        event.schema_name.as_deref() == Some(schema_names::TOOL_CATALOG) && event.breadcrumb_id != first
    };
    fixture.event(is_new).await;
    assert!(Catalog::read(&*fixture.person).await.unwrap().unwrap().find("echo").is_some());
    runner.stop().await;
}

/// Otherwise a tool that writes tools would trigger itself forever, since it changes the catalog.
#[tokio::test]
async fn a_catalog_change_triggers_no_tool() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let schema = json!({"subscriptions": [{"schema_name": schema_names::TOOL_CATALOG}]});
    fixture.create(code("curious", schema)).await;
    let runner = fixture.start(&fake);
    fixture.catalog(|catalog| catalog.find("curious").is_some()).await;
    fixture.create(code("echo", json!({"subscriptions": [{"any_tags": ["marker"]}]}))).await;
    fixture.catalog(|catalog| catalog.find("echo").is_some()).await;
    let marker = rcrt_breadcrumb::NewBreadcrumb {
        title: "marker".into(),
        tags: vec!["marker".into()],
        ..rcrt_breadcrumb::NewBreadcrumb::default()
    };
    fixture.create(marker).await;
    fake.until(|progress| progress.begun == 1).await;
    let requests = fixture.person.list(&BreadcrumbQuery::of_schema(schema_names::TOOL_REQUEST)).await.unwrap();
    assert_eq!(requests.len(), 1);
    runner.stop().await;
}

/// A catalog that RCRT's own runner or another program keeps.
#[tokio::test]
async fn a_catalog_of_another_program_is_ignored_and_not_deleted() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let theirs = json!({
        "workspace": "workspace:tools",
        "tools": [{"name": "ghost", "description": "", "parameters": {}, "source": "native",
            "tool_id": uuid::Uuid::new_v4(), "tool_version": 1}],
    });
    let theirs = NewBreadcrumb {
        title: "workspace:tools Tool Catalog".into(),
        context: theirs.as_object().unwrap().clone(),
        tags: vec!["workspace:tools".into(), "tool:catalog".into()],
        schema_name: Some(schema_names::TOOL_CATALOG.into()),
        ..NewBreadcrumb::default()
    };
    let theirs = fixture.create(theirs).await;
    assert_eq!(Catalog::read(&*fixture.person).await.unwrap(), None);
    let echo = fixture.create(code("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    let catalog = fixture.catalog(|catalog| catalog.find("echo").is_some()).await;
    assert_eq!(catalog.names().collect::<Vec<_>>(), ["echo"]);
    fixture.person.delete(echo, None).await.unwrap();
    fixture.catalog(|catalog| catalog.find("echo").is_none()).await;
    runner.stop().await;
    assert_eq!(fixture.person.get(theirs).await.unwrap().version, 1);
}

/// The format that RCRT's dashboard and agents read, if the operator enables it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_compat_the_catalog_is_also_written_in_rcrts_format() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let compat = || rcrt_runner::RunnerOptions { rcrt_compat: true, ..options() };
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "description": "a number"}}});
    let more = json!({
        "description": "Adds one.", "version": "1.2.0", "category": "math", "input_schema": schema,
        "limits": {"timeout_ms": 5000, "max_attempts": 3},
    });
    let add = fixture.create(code("add", more.clone())).await;
    fixture.create(native("zip", json!({}))).await;
    let removed = json!({"since": "2020-01-31", "use": "zip", "remove_after": "2020-12-31"});
    fixture.create(native("ended", json!({"deprecated": removed}))).await;
    let runners = [fixture.start_with(&fake, compat()), fixture.start_with(&fake, compat())];
    let is_theirs = |event: &rcrt_breadcrumb::Event, total: u64| {
        event.schema_name.as_deref() == Some(schema_names::TOOL_CATALOG)
            && event.tags.contains(&"workspace:tools".to_owned())
            && event.context["totalTools"] == total
    };
    let event = fixture.event(|event| is_theirs(event, 2)).await;
    let mut context = serde_json::Value::Object(event.context.clone().into());
    let times =
        [context["lastUpdated"].take(), context["tools"][0]["lastSeen"].take(), context["tools"][1]["lastSeen"].take()];
    assert!(times.iter().all(|time| time.as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().is_ok()));
    let hints = context["llm_hints"].take();
    assert_eq!(hints["transform"]["available_tools"]["value"], "$.tools[*].name");
    assert_eq!(
        context,
        json!({
            "workspace": "workspace:tools",
            "totalTools": 2,
            "activeTools": 2,
            "tools": [
                {"name": "add", "description": "Adds one.", "category": "math", "version": "1.2.0",
                    "inputSchema": schema, "outputSchema": {}, "status": "active", "lastSeen": null,
                    "examples": [{"description": "one", "input": {}, "explanation": "nothing in"}],
                    "capabilities": {"async": true, "timeout": 5000, "retries": 2}},
                {"name": "zip", "description": "for a test", "category": "general", "version": "1.0.0",
                    "inputSchema": {}, "outputSchema": {}, "status": "active", "lastSeen": null,
                    "examples": [{"description": "one", "input": {}}],
                    "capabilities": {"async": true, "timeout": 30000, "retries": 0}},
            ],
            "lastUpdated": null,
            "llm_hints": null,
        })
    );
    assert_eq!(fixture.person.get(event.breadcrumb_id).await.unwrap().title, "workspace:tools Tool Catalog");
    fixture.person.delete(add, None).await.unwrap();
    fixture.event(|event| is_theirs(event, 1)).await;
    // Our own catalog exists too, and neither is mistaken for the other.
    let catalog = fixture.catalog(|catalog| catalog.find("add").is_none() && catalog.find("zip").is_some()).await;
    assert_eq!(catalog.names().collect::<Vec<_>>(), ["ended", "zip"]);
    for runner in runners {
        runner.stop().await;
    }
    let rows = fixture.list(schema_names::TOOL_CATALOG).await;
    let theirs: Vec<_> = rows.iter().filter(|row| row.tags.contains(&"catalog:rcrt".to_owned())).collect();
    assert_eq!((rows.len(), theirs.len()), (2, 1));
    // It is not written again without a change.
    let version = theirs[0].version;
    let runner = fixture.start_with(&fake, compat());
    fixture.call("zip", json!({})).await;
    fixture.create(code("add", more)).await;
    fixture.event(|event| is_theirs(event, 2) && event.version > version).await;
    runner.stop().await;
    let rows = fixture.list(schema_names::TOOL_CATALOG).await;
    let theirs = rows.iter().find(|row| row.tags.contains(&"catalog:rcrt".to_owned())).unwrap();
    assert_eq!(theirs.version, version + 1);
}

/// Nothing would keep the record up to date.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_without_compat_removes_rcrts_catalog_unless_another_updates_it() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let compat = || rcrt_runner::RunnerOptions { rcrt_compat: true, ..options() };
    fixture.create(native("echo", json!({}))).await;
    let of_rcrts_own_runner = NewBreadcrumb {
        title: "workspace:tools Tool Catalog".into(),
        tags: vec!["workspace:tools".into(), Catalog::TAG.into()],
        schema_name: Some(schema_names::TOOL_CATALOG.into()),
        ..NewBreadcrumb::default()
    };
    let foreign = fixture.create(of_rcrts_own_runner).await;
    let is_written =
        |event: &Event| event.tags.contains(&"catalog:rcrt".to_owned()) && event.kind == EventKind::Created;
    let is_deleted = |id| move |event: &Event| event.breadcrumb_id == id && event.kind == EventKind::Deleted;

    let before = fixture.start_with(&fake, compat());
    let stale = fixture.event(is_written).await.breadcrumb_id;
    before.stop().await;
    let plain = fixture.start(&fake);
    fixture.event(is_deleted(stale)).await;

    let keeper = fixture.start_with(&fake, compat());
    let kept = fixture.event(|event| is_written(event) && event.breadcrumb_id != stale).await.breadcrumb_id;
    let second = fixture.start(&fake);
    fixture.event(is_deleted(kept)).await;
    let again = fixture.event(|event| is_written(event) && ![stale, kept].contains(&event.breadcrumb_id)).await;
    assert_eq!(again.context["tools"][0]["name"], "echo");
    for runner in [plain, second, keeper] {
        runner.stop().await;
    }
    fixture.person.get(again.breadcrumb_id).await.unwrap();
    assert_eq!(fixture.person.get(foreign).await.unwrap().version, 1);
}

//! Many tools: a runner is ready however many exist, and validates those that were not validated
//! before.

use std::collections::HashSet;

use rcrt_breadcrumb::{Catalog, ResponseStatus, schema_names};
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, native};

/// More tools than are loaded at once, and more than one part of the catalog holds.
const TOOLS: usize = 400;

/// A description so long that the catalog of these tools has many parts.
const LONG: usize = 250;

/// A description has so many phrases.
async fn seed(fixture: &Fixture, phrases: usize) {
    let implementation = "json_build_object('type', 'builtin', 'tool', 'tool_' || n)";
    insert(fixture, TOOLS, &format!("repeat('for a test ', {phrases})"), implementation).await;
}

/// Inserts records of tools directly into the database. `description` and `implementation`: SQL,
/// with the tool's number as `n`.
pub async fn insert(fixture: &Fixture, tools: usize, description: &str, implementation: &str) {
    let sql = format!(
        "INSERT INTO breadcrumbs (id, owner_id, title, context, tags, schema_name, visibility, sensitivity, version,
            checksum, size_bytes, created_at, updated_at, words)
         SELECT gen_random_uuid(), '{}', 'tool_' || n,
            json_build_object('name', 'tool_' || n, 'description', {description}, 'definition',
                '{{\"examples\": [{{\"description\": \"one\", \"input\": {{}}}}]}}'::json,
                'implementation', {implementation}),
            '{{}}', 'tool.v1', 'team', 'low', 1, 'none', 300, now(), now(), ''
         FROM generate_series(1, {tools}) n",
        fixture.owner
    );
    fixture.database.execute(&sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_do_not_wait_for_other_tools_to_load() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    seed(&fixture, 1).await;
    *fake.only_loads.lock().unwrap() = Some("tool_234".into());
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("tool_234", json!({})).await.status, ResponseStatus::Success);
    // No other tool finishes loading meanwhile; as many as can be loaded at once have begun.
    let begun: HashSet<String> = fake.loads.borrow().iter().cloned().collect();
    assert!(begun.contains("tool_234") && begun.len() <= 1 + 4, "{begun:?}");
    let missing = fixture.call("tool_9999", json!({})).await;
    assert_eq!(missing.error_code, Some(rcrt_breadcrumb::ErrorCode::ToolNotFound));
    fake.load_all();
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valid_version_is_validated_again_only_when_it_is_called() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    seed(&fixture, 1).await;
    let runner = fixture.start(&fake);
    fixture.catalog(|catalog| catalog.tools.len() == TOOLS).await;
    assert_eq!(fake.loads.borrow().len(), TOOLS, "each once");
    runner.stop().await;

    let fake = Fake::new();
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("tool_77", json!({})).await.status, ResponseStatus::Success);
    let parts = fixture.list(schema_names::TOOL_CATALOG).await;
    fixture.create(native("one_more", json!({}))).await;
    // The catalog is written when the runner knows all tools.
    fixture.catalog(|catalog| catalog.find("one_more").is_some()).await;
    let after = fixture.list(schema_names::TOOL_CATALOG).await;
    let changed = after.iter().filter(|row| !parts.iter().any(|old| old.id == row.id && old.version == row.version));
    let changed: Vec<usize> = changed.map(|row| json!(row.context).to_string().len()).collect();
    assert!(
        parts.len() > 1 && after.len() == parts.len() && changed.len() == 1 && changed[0] < 64 * 1024,
        "{changed:?}"
    );
    assert_eq!(Catalog::read(&*fixture.person).await.unwrap().unwrap().tools.len(), TOOLS + 1);
    let mut loads = fake.loads.borrow().clone();
    loads.sort();
    assert_eq!(loads, ["one_more", "tool_77"]);
    runner.stop().await;
}

/// A runner that starts reads the part of a large catalog that a call needs, and later the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_call_finds_its_tool_in_a_large_catalog() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    seed(&fixture, LONG).await;
    let runner = fixture.start(&fake);
    fixture.catalog(|catalog| catalog.tools.len() == TOOLS).await;
    let parts = fixture.list(schema_names::TOOL_CATALOG).await.len();
    assert!(parts >= 32, "{parts} parts");
    runner.stop().await;

    let fake = Fake::new();
    let runner = fixture.start(&fake);
    for tool in ["tool_77", "tool_301"] {
        assert_eq!(fixture.call(tool, json!({})).await.status, ResponseStatus::Success);
    }
    let missing = fixture.call("tool_9999", json!({})).await;
    assert_eq!(missing.error_code, Some(rcrt_breadcrumb::ErrorCode::ToolNotFound));
    fixture.create(native("one_more", json!({}))).await;
    fixture.catalog(|catalog| catalog.find("one_more").is_some()).await;
    let mut loads = fake.loads.borrow().clone();
    loads.sort();
    assert_eq!(loads, ["one_more", "tool_301", "tool_77"]);
    runner.stop().await;
}

/// The catalog vouches only for the version that it names: a later one is validated before it is
/// offered.
#[tokio::test]
async fn a_version_written_while_no_runner_ran_is_validated_first() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(crate::fixture::code("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    fixture.catalog(|catalog| catalog.find("echo").is_some()).await;
    runner.stop().await;
    let broken = json!({"code": {"language": "typescript", "source": "export async function execute(\n  broken"}});
    fixture.change(id, 1, crate::fixture::code_context("echo", broken)).await;
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("echo", json!({})).await.output.unwrap()["version"], 1);
    assert_eq!(fixture.tool_error(id, |_| true).await["running_version"], 1);
    runner.stop().await;
}

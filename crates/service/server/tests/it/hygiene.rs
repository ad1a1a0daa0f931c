//! Expired records and their deletion, over HTTP.

use std::time::Duration;

use rcrt_breadcrumb::Role;
use reqwest::StatusCode;
use serde_json::json;

use crate::harness::{World, note};

#[tokio::test]
async fn a_run_returns_its_deletions_and_the_statistics_include_them() {
    let world = World::start().await;
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, stranger) = world.agent(other, &[Role::Curator]).await;
    let mut ended = note("short");
    ended["ttl"] = json!("2020-01-01T00:00:00Z");
    for _ in 0..3 {
        world.create(&curator, ended.clone()).await;
    }
    // The store's own sweep may have deleted some, so only the sum is tested.
    let run = world.post("/hygiene/run", &curator, json!({})).await.ok().json();
    assert_eq!((run["triggered"].as_bool(), run["is_complete"].as_bool()), (Some(true), Some(true)));
    assert!(run["message"].is_string() && run["health_checks_purged"] == 0, "{run}");
    assert_eq!(run["total_cleaned"], run["expired_breadcrumbs_purged"]);
    let mut stats = world.get("/hygiene/stats", &curator).await.ok().json();
    while stats["total_breadcrumbs_purged"] != 3 {
        // A sweep counts its deletions when it finishes.
        tokio::time::sleep(Duration::from_millis(5)).await;
        stats = world.get("/hygiene/stats", &curator).await.ok().json();
    }
    assert_eq!((&stats["total_breadcrumbs_purged"], &stats["waiting"]), (&json!(3), &json!(0)), "{stats}");
    assert!(stats["runs_completed"].as_u64().unwrap() >= 1 && stats["last_run_at"].is_string(), "{stats}");
    for field in ["total_agents_cleaned", "last_run_duration_ms", "last_run_errors", "hygiene_enabled", "last_updated"]
    {
        assert!(!stats[field].is_null(), "{field} of {stats}");
    }
    let stats = world.get("/hygiene/stats", &stranger).await.ok().json();
    assert_eq!(stats["total_breadcrumbs_purged"], 0);
    let purged = world.post("/admin/purge", &stranger, json!({})).await.ok().json();
    assert_eq!((&purged["purged"], &purged["expired_purged"]), (&json!(0), &json!(0)));
    world.close().await;
}

#[tokio::test]
async fn both_views_count_as_reads_and_the_last_permitted_one_succeeds() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter, Role::Subscriber]).await;
    let mut record = note("twice");
    record["ttl_type"] = json!("usage");
    record["ttl_config"] = json!({"max_reads": 2});
    let id = world.create(&token, record.clone()).await;
    world.get(&format!("/breadcrumbs/{id}"), &token).await.ok();
    let full = world.get(&format!("/breadcrumbs/{id}/full"), &token).await.ok().json();
    assert_eq!((&full["read_count"], &full["reads_left"]), (&json!(2), &json!(0)));
    for path in [format!("/breadcrumbs/{id}"), format!("/breadcrumbs/{id}/full"), format!("/breadcrumbs/{id}/history")]
    {
        world.get(&path, &token).await.problem(404, "not_found");
    }
    record["ttl_config"] = json!({"max_reads": -1});
    world.post("/breadcrumbs", &token, record).await.violation("ttl_config.max_reads");
    world.close().await;
}

#[tokio::test]
async fn a_definition_validates_records_and_shapes_the_short_view() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter, Role::Subscriber]).await;
    let mut definition = json!({
        "title": "Notes", "schema_name": "schema.def.v1", "tags": ["defines:note.v1"], "context": {
            "schema_name": "note.v1", "schema": {"properties": {"text": {"type": "string", "maxLength": 5}}},
            "llm_hints": {"transform": {"said": {"type": "format", "format": "It says {text}."}}}
        }
    });
    let of_notes = world.create(&token, definition.clone()).await;
    world.post("/breadcrumbs", &token, note("too long")).await.violation("context.text");
    let id = world.create(&token, note("short")).await;
    let view = world.get(&format!("/breadcrumbs/{id}"), &token).await.ok().json();
    assert_eq!(view["context"], json!({"said": "It says short."}));
    let full = world.get(&format!("/breadcrumbs/{id}/full"), &token).await.ok().json();
    assert_eq!(full["context"], json!({"text": "short"}));

    definition["context"]["validation"] = json!("warn");
    let changes = json!({"context": definition["context"]});
    let path = format!("/breadcrumbs/{of_notes}");
    let changed = world.request("PATCH", &path, &token).header("if-match", "\"1\"").json(&changes);
    assert_eq!(crate::harness::answer(changed).await.status, StatusCode::OK);
    let created = world.post("/breadcrumbs", &token, note("too long")).await.ok().json();
    assert_eq!(created["warnings"][0]["field"], "context.text");
    // Only curators can define the runtime's own schema names.
    definition["context"]["schema_name"] = json!("tool.request.v1");
    definition["tags"] = json!([]);
    world.post("/breadcrumbs", &token, definition).await.problem(403, "forbidden");
    world.close().await;
}

//! Which tools are drafts: the tag that no author can forge.

use rcrt_breadcrumb::{
    BreadcrumbChanges, Breadcrumbs, DRAFT_TAG, NewBreadcrumb, PublishRule, Role, StoreError, Tenancy, is_draft,
    schema_names,
};
use rcrt_conformance::harness::noted;
use rcrt_conformance::{Agent, Harness};
use serde_json::json;
use uuid::Uuid;

use crate::harness::StoreHarness;

fn tool(schema: &str, tags: &[&str]) -> NewBreadcrumb {
    NewBreadcrumb { schema_name: Some(schema.into()), ..noted("A tool", json!({"name": "a-tool"}), tags) }
}

fn tagged(tags: &[&str]) -> BreadcrumbChanges {
    let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
    BreadcrumbChanges { tags: Some(tags), ..BreadcrumbChanges::default() }
}

fn rewritten(text: &str) -> BreadcrumbChanges {
    let context = json!({"name": "a-tool", "description": text}).as_object().unwrap().clone();
    BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() }
}

async fn writes_a_draft(writer: &dyn Breadcrumbs, tags: &[&str]) -> bool {
    let id = writer.create(tool(schema_names::TOOL_CODE, tags), None).await.unwrap().id;
    is_draft(&writer.get(id).await.unwrap().tags)
}

async fn agents(harness: &StoreHarness, publish: PublishRule) -> (Agent, Agent, Agent) {
    let tenant = harness.tenant().await;
    harness.store.set_publish(tenant, publish).await.unwrap();
    let author = harness.agent_with(tenant, &[Role::Emitter]).await;
    let curator = harness.agent_with(tenant, &[Role::Curator]).await;
    (author, curator, harness.agent_with(tenant, &[Role::Runner]).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tenants_rule_decides_what_is_a_draft() {
    let harness = StoreHarness::start().await;
    let tenant = harness.tenant().await;
    assert_eq!(harness.store.tenant(tenant).await.unwrap().unwrap().publish, PublishRule::Examples, "the default");
    let with = [DRAFT_TAG];
    for (publish, expected) in [
        (PublishRule::Examples, [false, true, false, true]),
        (PublishRule::Anyone, [false, false, false, false]),
        (PublishRule::Curator, [true, true, true, true]),
    ] {
        let (author, curator, runner) = agents(&harness, publish).await;
        let owner = author.identity.owner_id;
        assert_eq!(harness.store.tenant(owner).await.unwrap().unwrap().publish, publish);
        let for_author = runner.on_behalf_of(author.identity.agent_id).unwrap();
        let written = [
            writes_a_draft(&*author.store, &[]).await,
            writes_a_draft(&*author.store, &with).await,
            writes_a_draft(&*for_author, &[]).await,
            writes_a_draft(&*for_author, &with).await,
        ];
        assert_eq!(written, expected, "{publish:?}");
        // What a curator or the runtime itself writes stays as it is.
        for writer in [&curator, &runner] {
            assert!(!writes_a_draft(&*writer.store, &[]).await, "{publish:?}");
            assert!(writes_a_draft(&*writer.store, &with).await, "{publish:?}");
        }
    }
    let nobody = harness.store.set_publish(Uuid::new_v4(), PublishRule::Curator).await;
    assert!(matches!(nobody, Err(StoreError::NotFound { .. })), "{nobody:?}");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_curator_publishes_where_curators_do() {
    let harness = StoreHarness::start().await;
    let (author, curator, _) = agents(&harness, PublishRule::Curator).await;
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        // A note that becomes a tool is a draft too.
        let id = author.create(noted("A note", json!({"name": "a-tool"}), &[]), None).await.unwrap().id;
        let becomes = BreadcrumbChanges { schema_name: Some(schema.into()), ..BreadcrumbChanges::default() };
        assert!(is_draft(&author.update(id, 1, becomes).await.unwrap().tags), "{schema}");
        assert!(is_draft(&author.update(id, 2, tagged(&[])).await.unwrap().tags), "the author removes the tag");
        let published = curator.update(id, 3, tagged(&["kept"])).await.unwrap();
        assert!(!is_draft(&published.tags), "{:?}", published.tags);
        // The tool does not act with the curator's rights: it keeps its author.
        assert_eq!(published.updated_by, Some(author.identity.agent_id));
        // The next version of the author is a draft again, and one of the curator is the curator's.
        let next = author.update(id, 4, rewritten("next")).await.unwrap();
        assert!(is_draft(&next.tags), "{:?}", next.tags);
        let corrected = BreadcrumbChanges { tags: Some(Vec::new()), ..rewritten("corrected") };
        let corrected = curator.update(id, 5, corrected).await.unwrap();
        assert_eq!(corrected.updated_by, Some(curator.identity.agent_id));
    }
    harness.close().await;
}

/// The version that serves is older than the retention of versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_versions_behind_a_draft_are_kept() {
    let harness = StoreHarness::without_sweeps().await;
    let (author, ..) = agents(&harness, PublishRule::Examples).await;
    let mut records = Vec::new();
    for tags in [&[DRAFT_TAG][..], &[]] {
        let id = author.create(tool(schema_names::TOOL_CODE, &[]), None).await.unwrap().id;
        author.update(id, 1, tagged(tags)).await.unwrap();
        records.push(id);
    }
    let mut admin = harness.admin().await;
    let aging = "UPDATE breadcrumb_versions SET replaced_at = now() - make_interval(days => 200)";
    sqlx::query(aging).execute(&mut admin).await.unwrap();
    harness.store.prune().await.unwrap();
    let mut kept = Vec::new();
    for id in records {
        kept.push(author.history(id).await.unwrap().len());
    }
    assert_eq!(kept, [2, 1]);
    harness.close().await;
}

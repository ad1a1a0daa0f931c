//! What the store deletes after its retention.

use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{
    BreadcrumbChanges, CallQuery, CallState, EventKind, EventNumber, NewBreadcrumb, Release, Role, StoreError,
    SubscribeOptions, SubscriptionItem, Tenancy, ToolResponse, Visibility, schema_names,
};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{answer_to, claim_of, next, note, request};
use rcrt_store::{Retention, StoreOptions};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::harness::StoreHarness;

pub async fn is_stored(store: &rcrt_conformance::Agent, id: Uuid) -> bool {
    match store.get(id).await {
        Ok(_) => true,
        Err(StoreError::NotFound { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// All stored times are this much older.
pub async fn age(admin: &mut PgConnection, days: i32) {
    for (table, columns) in [
        ("breadcrumbs", &["updated_at"][..]),
        ("breadcrumb_versions", &["replaced_at"]),
        ("calls", &["queued_at", "finished_at"]),
        ("events", &["at"]),
    ] {
        for column in columns {
            let sql = format!("UPDATE {table} SET {column} = {column} - make_interval(days => $1)");
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(days).execute(&mut *admin).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_calls_are_deleted_and_open_ones_stay() {
    let harness = StoreHarness::without_sweeps().await;
    let (agent, other) = (harness.alone().await, harness.alone().await);
    let mut admin = harness.admin().await;
    let mut finished = Vec::new();
    // More than one batch.
    for _ in 0..120 {
        let id = agent.create(request(), None).await.unwrap().id;
        agent.cancel(id).await.unwrap();
        finished.extend([id, agent.call(id).await.unwrap().response.unwrap()]);
    }
    let log = NewBreadcrumb { schema_name: Some(schema_names::TOOL_LOG.into()), ..note("Log of echo") };
    finished.push(agent.create(log, None).await.unwrap().id);
    let of_other = other.create(request(), None).await.unwrap().id;
    other.cancel(of_other).await.unwrap();
    let (queued, record) =
        (agent.create(request(), None).await.unwrap().id, agent.create(note("a note"), None).await.unwrap().id);
    let running = agent.create(request(), None).await.unwrap().id;
    let claims = agent.claim(&claim_of(2)).await.unwrap();
    for claim in claims {
        if claim.lease.request == running {
            agent.start(claim.lease, 1).await.unwrap();
        } else {
            agent.release(claim.lease, Release::Unstarted).await.unwrap();
        }
    }
    age(&mut admin, 29).await;
    harness.store.prune().await.unwrap();
    for id in &finished {
        assert!(is_stored(&agent, *id).await, "younger than 30 days");
    }
    age(&mut admin, 2).await;
    let latest = agent.create(request(), None).await.unwrap().id;
    agent.cancel(latest).await.unwrap();
    harness.store.prune().await.unwrap();
    for id in finished {
        assert!(!is_stored(&agent, id).await);
    }
    assert!(!is_stored(&other, of_other).await);
    for id in [queued, running, record, latest] {
        assert!(is_stored(&agent, id).await);
    }
    // A call that ends late is counted from its end.
    agent.cancel(queued).await.unwrap();
    harness.store.prune().await.unwrap();
    assert!(is_stored(&agent, queued).await);
    let tag = ToolResponse::tag(&queued.to_string());
    assert!(is_stored(&agent, agent.call(queued).await.unwrap().response.unwrap()).await, "{tag}");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_versions_are_deleted_after_they_were_replaced() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let mut admin = harness.admin().await;
    let id = agent.create(note("first"), None).await.unwrap().id;
    agent.update(id, 1, BreadcrumbChanges::default()).await.unwrap();
    age(&mut admin, 60).await;
    agent.update(id, 2, BreadcrumbChanges::default()).await.unwrap();
    age(&mut admin, 31).await;
    harness.store.prune().await.unwrap();
    let versions: Vec<i64> = agent.history(id).await.unwrap().iter().map(|one| one.version).collect();
    assert_eq!(versions, [3, 2], "version 2 was replaced 31 days ago");
    age(&mut admin, 60).await;
    harness.store.prune().await.unwrap();
    assert_eq!(agent.history(id).await.unwrap().len(), 1);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stores_role_reads_what_is_stored() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let id = agent.create(request(), None).await.unwrap().id;
    agent.cancel(id).await.unwrap();
    agent.create(note("a note"), None).await.unwrap();
    agent.create(note("another"), Some("key")).await.unwrap();
    harness.store.count_calls().await.unwrap();
    let sizes = rcrt_store::stored_sizes(&harness.database.app_url).await.unwrap();
    for (kind, count, is_on_disk) in [
        ("records", 4, true),
        ("requests", 1, false),
        ("responses", 1, false),
        ("other records", 2, false),
        ("old versions", 0, true),
        ("embeddings", 0, true),
        ("calls", 1, true),
        // By minutes and by hours.
        ("call statistics", 2, true),
        ("events", 4, true),
        ("idempotency keys", 1, true),
        ("egress log", 0, true),
    ] {
        let size = sizes.iter().find(|size| size.kind == kind).unwrap();
        assert!((size.entries, size.is_on_disk) == (count, is_on_disk) && size.bytes > 0, "{sizes:?}");
    }
    // The creation of the tenant and of the agent.
    assert!(sizes.iter().any(|size| size.kind == "audit log" && size.entries >= 1), "{sizes:?}");
    harness.close().await;
}

/// A subscriber receives which call was deleted, and not what was in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_deleted_call_no_context_stays() {
    let harness = StoreHarness::without_sweeps().await;
    let tenant = harness.tenant().await;
    let (agent, other) = (harness.agent(tenant).await, harness.agent_with(tenant, &[Role::Subscriber]).await);
    let mut wanted = NewBreadcrumb { visibility: Visibility::Private, ..request() };
    wanted.context.insert("requestId".into(), "order-7".into());
    let id = agent.create(wanted, None).await.unwrap().id;
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    agent.start(claim.lease, 1).await.unwrap();
    // Writes a second version of the request.
    agent.cancel(id).await.unwrap();
    let mut answer = answer_to(&claim, json!("a secret answer"));
    answer.visibility = Visibility::Private;
    let response = agent.complete(claim.lease, answer).await.unwrap();
    let open = agent.create(request(), None).await.unwrap().id;
    agent.cancel(open).await.unwrap();
    let mut admin = harness.admin().await;
    // The events stay, as with --keep-events above --keep-calls.
    for table in ["breadcrumbs SET updated_at = updated_at", "calls SET finished_at = finished_at"] {
        let sql = format!("UPDATE {table} - interval '40 days'");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut admin).await.unwrap();
    }
    harness.store.prune().await.unwrap();
    assert!(!is_stored(&agent, id).await && !is_stored(&agent, response).await);
    let kept: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM breadcrumb_versions WHERE context::text <> '{}' OR title <> '' OR checksum <> ''",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap();
    assert_eq!(kept, 0);

    let mut events = agent.events(Some(rcrt_breadcrumb::EventNumber(0))).await.unwrap();
    let mut seen = Vec::new();
    while seen.iter().filter(|(_, kind, _)| *kind == EventKind::Deleted).count() < 4 {
        let event = next(&mut events).await;
        assert!(event.context.is_empty() && !event.redacted, "{event:?}");
        assert_eq!(event.private, [id, response].contains(&event.breadcrumb_id), "{event:?}");
        let schema = event.schema_name.as_deref().expect("a schema name").to_owned();
        assert!(!event.tags.is_empty(), "{event:?}");
        seen.push((event.breadcrumb_id, event.kind, (event.version, schema)));
    }
    let of = |wanted| seen.iter().filter(move |(id, ..)| *id == wanted).map(|(_, kind, rest)| (*kind, rest.clone()));
    let of_request: Vec<_> = of(id).collect();
    let request_v1 = |version| (version, "tool.request.v1".to_owned());
    assert_eq!(
        of_request,
        [(EventKind::Created, request_v1(1)), (EventKind::Updated, request_v1(2)), (EventKind::Deleted, request_v1(2))]
    );
    // Another agent still hears nothing of the private call.
    let mut others = other.events(Some(rcrt_breadcrumb::EventNumber(0))).await.unwrap();
    for _ in 0..4 {
        assert!(![id, response].contains(&next(&mut others).await.breadcrumb_id));
    }

    // The call itself is found by its id and by the caller's, as long as its events are kept.
    let query = CallQuery { request_id: Some("order-7".into()), ..CallQuery::default() };
    let found = agent.list_calls(&query).await.unwrap().calls;
    assert_eq!(found.iter().map(|call| call.call.request).collect::<Vec<_>>(), [id]);
    let details = agent.call_details(id).await.unwrap();
    assert_eq!((details.summary.call.state, details.request_record), (CallState::Finished, None));
    harness.close().await;
}

/// As after a day with very many events: the numbers of connections that are opened from now on are
/// in the next range. All events become eight days older. Returns the partition of the first range.
pub async fn begin_next_range(harness: &StoreHarness) -> String {
    let (first, next_number): (i64, i64) =
        sqlx::query_as("SELECT first_number, next_number FROM event_ranges ORDER BY first_number LIMIT 1")
            .fetch_one(&mut harness.admin().await)
            .await
            .unwrap();
    harness
        .database
        .execute(&format!(
            "CREATE OR REPLACE FUNCTION event_base(transaction bigint) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
                RETURN {}::bigint;
             UPDATE events SET at = at - interval '8 days'",
            next_number >> 12
        ))
        .await;
    format!("public.events_{first}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_with_only_old_events_is_dropped() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let kept = agent.create(note("Kept"), None).await.unwrap().id;
    let gone = agent.create(note("Gone"), None).await.unwrap().id;
    agent.delete(gone, None).await.unwrap();
    let mut admin = harness.admin().await;
    let range = begin_next_range(&harness).await;
    // Its connections know the new base.
    let store = crate::harness::open_with(&harness.database, |options| StoreOptions { sweeps: false, ..options }).await;
    let later = store.acting_as(agent.identity.clone());
    let young = later.create(note("Young"), None).await.unwrap().id;
    let is_there = async |admin: &mut PgConnection| {
        let found: Option<String> =
            sqlx::query_scalar("SELECT to_regclass($1)::text").bind(&range).fetch_one(admin).await.unwrap();
        found.is_some()
    };

    store.prune().await.unwrap();
    assert!(is_there(&mut admin).await, "nobody recorded how long events are kept");
    let versions = "SELECT count(*) FROM breadcrumb_versions WHERE breadcrumb_id = $1";
    let left: i64 = sqlx::query_scalar(versions).bind(gone).fetch_one(&mut admin).await.unwrap();
    assert_eq!(left, 0, "what a deletion leaves goes before the range");
    harness.database.execute("SELECT record_retention(NULL, NULL, 604800, 604800, false)").await;
    store.prune().await.unwrap();
    assert!(!is_there(&mut admin).await);
    let mut stream = later.subscribe(SubscribeOptions::all(Some(EventNumber(0)))).await.unwrap();
    let Some(Ok(SubscriptionItem::Missed { first })) = stream.next().await else { panic!("no Missed item") };
    assert!(matches!(stream.next().await, Some(Ok(SubscriptionItem::Event(event)))
        if event.breadcrumb_id == young && event.number >= first));
    assert_eq!(later.get(kept).await.unwrap().title, "Kept");
    store.close().await;
    harness.close().await;
}

/// Otherwise the next range would be so wide that it is never closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_a_restore_skipped_do_not_widen_ranges() {
    let harness = StoreHarness::without_sweeps().await;
    harness.database.execute("UPDATE event_ranges SET made_at = made_at - interval '2 hours'").await;
    rcrt_store::continue_event_numbers(&harness.database.admin_url, 1 << 44).await.unwrap();
    harness.database.execute("SELECT extend_event_ranges()").await;
    let ahead: (i64, i64) = sqlx::query_as(
        "SELECT count(*), max(next_number - first_number) FROM event_ranges WHERE first_number > event_number(0)",
    )
    .fetch_one(&mut harness.admin().await)
    .await
    .unwrap();
    assert_eq!(ahead, (2, 1 << 32));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_servers_options_are_recorded() {
    let harness = StoreHarness::without_sweeps().await;
    let url = harness.database.app_url.clone();
    assert_eq!(rcrt_store::recorded_retention(&url).await.unwrap(), None, "a store without sweeps deletes nothing");
    let kept = Retention { calls: None, events: Duration::from_hours(25), ..Retention::default() };
    let open = |prunes| {
        crate::harness::open_with(&harness.database, move |options| StoreOptions { retention: kept, prunes, ..options })
    };
    let runners = open(false).await;
    assert_eq!(rcrt_store::recorded_retention(&url).await.unwrap(), None, "nor does that of a runner");
    let servers = open(true).await;
    let recorded = rcrt_store::recorded_retention(&url).await.unwrap().unwrap();
    assert_eq!((recorded.retention, recorded.archives), (kept, false));
    runners.close().await;
    servers.close().await;
    harness.close().await;
}

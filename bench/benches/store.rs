//! What a call costs in the store: its writes, one by one and in groups, and the delivery of its
//! events. The database does not wait for the disk, so the numbers show the work and not the
//! waiting.
#![allow(clippy::expect_used)] // A failure must stop the bench.

#[path = "support/database.rs"]
mod database;

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use database::open_store;
use futures::StreamExt;
use futures::future::join_all;
use rcrt_breadcrumb::{
    AnsweredTerms, Breadcrumbs, Claim, ClaimRequest, EventNumber, Identity, NewBreadcrumb, Profile, Profiles, Role,
    Tenancy, ToolRequest, ToolResponse,
};
use rcrt_store::Store;
use serde_json::{Map, json};
use tokio::runtime::Runtime;
use uuid::Uuid;

fn request() -> NewBreadcrumb {
    ToolRequest::record("add", json!({"a": 1, "b": 2}), Some(&Uuid::new_v4().to_string()), Some("workspace:bench"))
}

async fn open() -> (Arc<Store>, Arc<dyn Breadcrumbs>) {
    let (store, owner_id) = open_store().await;
    let identity = Identity { owner_id, agent_id: Uuid::now_v7(), roles: Role::ALL.to_vec(), profile: Profile::Main };
    let agent = store.acting_as(identity);
    (store, agent)
}

async fn claim(store: &dyn Breadcrumbs, limit: u32) -> Vec<Claim> {
    let claim = ClaimRequest::new(Uuid::nil(), limit, 60_000);
    store.claim(&claim).await.expect("claims")
}

fn answer(claim: &Claim) -> NewBreadcrumb {
    let request = ToolRequest::from_breadcrumb(&claim.request).expect("a request");
    ToolResponse::new(&request, Ok(json!({"sum": 3})), 1, Map::new(), claim.queued_at).record(&request)
}

/// Runs `many` calls at once, each from its request to its response.
async fn calls(store: &dyn Breadcrumbs, many: u32) {
    let keys: Vec<String> = (0..many).map(|_| Uuid::new_v4().to_string()).collect();
    join_all(keys.iter().map(|key| async { store.create(request(), Some(key)).await.expect("a request") })).await;
    let claims = claim(store, many).await;
    join_all(claims.iter().map(|claim| async {
        store.start(claim.lease, 1).await.expect("a start");
        store.complete(claim.lease, answer(claim)).await.expect("a response");
    }))
    .await;
}

fn whole_calls(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (store, agent) = runtime.block_on(open());
    let mut group = criterion.benchmark_group("store/calls");
    for many in [1, 32] {
        group.throughput(Throughput::Elements(u64::from(many)));
        group.bench_function(BenchmarkId::from_parameter(many), |bencher| {
            bencher.iter(|| runtime.block_on(calls(&*agent, many)));
        });
    }
    group.finish();
    runtime.block_on(store.close());
}

/// Writes a request with the response of a tool that takes no time.
async fn answered(store: &dyn Breadcrumbs) {
    let (request, id, now) = (request(), Uuid::now_v7(), Utc::now());
    let uncommitted = request.clone().into_first_version(id, Uuid::nil(), None, (String::new(), 0), now);
    let response = answer(&Claim::at_write(uncommitted, Profiles::default(), None));
    let terms = AnsweredTerms { id, response, responder: Uuid::nil(), max_attempts: 1 };
    store.create_answered(request, None, terms).await.expect("both are written");
}

/// Calls whose request and response are written together, as for quick tools.
fn answered_calls(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (store, agent) = runtime.block_on(open());
    let mut group = criterion.benchmark_group("store/calls with their responses");
    for many in [1_u64, 32] {
        group.throughput(Throughput::Elements(many));
        group.bench_function(BenchmarkId::from_parameter(many), |bencher| {
            bencher.iter(|| {
                runtime.block_on(join_all((0..many).map(|_| answered(&*agent))));
            });
        });
    }
    group.finish();
    runtime.block_on(store.close());
}

fn creates(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (store, agent) = runtime.block_on(open());
    let mut group = criterion.benchmark_group("store/creates");
    for many in [1_u64, 32] {
        group.throughput(Throughput::Elements(many));
        group.bench_function(BenchmarkId::from_parameter(many), |bencher| {
            bencher.iter_batched(
                || (0..many).map(|_| request()).collect::<Vec<_>>(),
                |records| {
                    let written =
                        runtime.block_on(join_all(records.into_iter().map(|record| agent.create(record, None))));
                    assert!(written.iter().all(Result::is_ok));
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
    runtime.block_on(store.close());
}

/// From the end of a write to its event: live from memory, and read again from the table.
fn events(criterion: &mut Criterion) {
    const RECORDS: usize = 256;
    const STREAMS: usize = 50;
    let runtime = Runtime::new().expect("a runtime");
    let (store, agent) = runtime.block_on(open());
    let mut live = runtime.block_on(agent.events(None)).expect("a subscription");
    let mut group = criterion.benchmark_group("store/events");
    group.throughput(Throughput::Elements(RECORDS as u64));
    group.bench_function("written and received", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                join_all((0..RECORDS).map(|_| agent.create(request(), None))).await;
                for _ in 0..RECORDS {
                    live.next().await.expect("no end").expect("an event");
                }
            });
        });
    });
    drop(live);
    // Each stream is like one dashboard.
    let mut streams =
        runtime.block_on(join_all((0..STREAMS).map(|_| async { agent.events(None).await.expect("a subscription") })));
    group.throughput(Throughput::Elements(STREAMS as u64));
    group.bench_function("written and received by 50 streams", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                agent.create(request(), None).await.expect("written");
                join_all(
                    streams.iter_mut().map(|stream| async { stream.next().await.expect("no end").expect("an event") }),
                )
                .await;
            });
        });
    });
    drop(streams);
    group.throughput(Throughput::Elements(RECORDS as u64));
    // Write enough events, also if only this bench runs.
    runtime.block_on(join_all((0..RECORDS).map(|_| agent.create(request(), None))));
    group.bench_function("read again", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let mut again = agent.events(Some(EventNumber(0))).await.expect("a subscription");
                for _ in 0..RECORDS {
                    again.next().await.expect("no end").expect("an event");
                }
            });
        });
    });
    group.finish();
    runtime.block_on(store.close());
}

fn short() -> Criterion {
    Criterion::default().sample_size(20).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4))
}

criterion_group! {
    name = benches;
    config = short();
    targets = whole_calls, answered_calls, creates, events
}
criterion_main!(benches);

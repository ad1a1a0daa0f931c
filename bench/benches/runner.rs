//! What the runner itself costs for a call: everything between a claim and its response, and the
//! parts of that. The store and the tool take no time.

#![allow(clippy::expect_used)] // A failure must stop the bench.

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rcrt_breadcrumb::{Breadcrumb, NewBreadcrumb, Records, ToolDefinition, ToolFailure, ToolRequest, schema_names};
use rcrt_executors::{Executor, Executors, ToolCall, ToolOutput};
use rcrt_runner::{Runner, RunnerOptions};
use rcrt_validate::Schema;
use serde_json::{Map, json};
use support::{MemoryStore, as_map, input};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Returns its input.
struct Echo;

#[async_trait]
impl Executor for Echo {
    async fn load(&self, _: &ToolDefinition, _: Uuid, _: Uuid, _: i64) -> Result<(), ToolFailure> {
        Ok(())
    }
    async fn execute(&self, call: ToolCall, _: CancellationToken) -> ToolOutput {
        ToolOutput::new(Ok(call.input), Map::new())
    }
    fn forget(&self, _: Uuid, _: i64) {}
}

fn tool() -> NewBreadcrumb {
    let context = json!({
        "name": "echo", "description": "for a bench", "implementation": {"type": "bench"},
        "definition": {"examples": [{"description": "one", "input": {}}]},
    });
    NewBreadcrumb {
        title: "echo".into(),
        context: as_map(context),
        tags: vec!["tool".into()],
        schema_name: Some(schema_names::TOOL_V1.into()),
        ..NewBreadcrumb::default()
    }
}

/// Makes one call, which must succeed.
async fn answered(store: &MemoryStore, request: NewBreadcrumb) {
    let response = store.call(request).await.expect("a response");
    assert_eq!(response.context["status"], "success", "{:?}", response.context);
}

fn calls(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let store = Arc::new(MemoryStore::default());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    runtime.block_on(async {
        store.create(tool(), None).await.expect("the tool is written");
        let executors = Executors::new().with_native("bench", Arc::new(Echo));
        let runner = Runner::new(store.clone(), executors, RunnerOptions::default());
        tasks.spawn(runner.run(stop.clone()));
        // The first call waits until the tool is known.
        answered(&store, ToolRequest::record("echo", json!({}), None, None)).await;
    });
    let mut group = criterion.benchmark_group("a call through the runner");
    for (name, bytes) in [("100 B", 100), ("1 KB", 1_000), ("100 KB", 100_000)] {
        let request = ToolRequest::record("echo", input(bytes), None, None);
        group.bench_function(BenchmarkId::new("one at a time", name), |bencher| {
            bencher.to_async(&runtime).iter(|| answered(&store, request.clone()));
        });
    }
    let request = ToolRequest::record("echo", input(100), None, None);
    group.throughput(Throughput::Elements(32));
    group.bench_function("32 at once", |bencher| {
        bencher
            .to_async(&runtime)
            .iter(|| futures::future::join_all((0..32).map(|_| answered(&store, request.clone()))));
    });
    group.finish();
    stop.cancel();
    runtime.block_on(async { while tasks.join_next().await.is_some() {} });
}

fn parts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parts of a call");
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": {
        "type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["name", "count"]}}}});
    let schema = Schema::compile(&schema).expect("a schema");
    for (name, bytes) in [("1 KB", 1_000), ("1 MB", 1_000_000)] {
        let value = input(bytes);
        group.bench_function(BenchmarkId::new("size estimate of a check", name), |bencher| {
            bencher.iter(|| schema.is_quick(&value));
        });
        group.bench_function(BenchmarkId::new("check against the schema", name), |bencher| {
            bencher.iter(|| assert!(schema.check(&value).is_empty()));
        });
        let record = ToolRequest::record("echo", value, None, None);
        group.bench_function(BenchmarkId::new("validate a record", name), |bencher| {
            bencher.iter(|| record.check().expect("a valid record"));
        });
        group.bench_function(BenchmarkId::new("size and checksum of a context", name), |bencher| {
            bencher.iter(|| Breadcrumb::measure(&record.context));
        });
    }
    group.finish();
}

criterion_group!(benches, calls, parts);
criterion_main!(benches);

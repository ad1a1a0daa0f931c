//! What a call in the sandbox costs, from the frame in to the frame out: with a reused isolate,
//! clean in a shared process, with a fresh process that was ready, and with a script that is long
//! enough for a code cache. Also: a worker for a tenant that has none, the frames themselves, and
//! compiling TypeScript. This program is its own worker.
#![allow(clippy::expect_used)] // A failure must stop the bench.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::BytesMut;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use rcrt_breadcrumb::{Isolation, Limits};
use rcrt_sandbox::protocol::{Frame, FrameCodec, Kind, SOCKET_FD};
use rcrt_sandbox::{
    ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, Invocation, OpError, RequestContext, Sandbox,
    SandboxOptions, Script, Task, WorkerCommand,
};
use rcrt_typescript::Dialect;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::codec::{Decoder, Encoder};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The argument that makes this program a worker.
const WORKER: &str = "sandbox-worker";
const ADD: &str = "export async function execute(input) { return { sum: input.a + input.b } }";
/// Long enough for a worker to make its next isolate, also on a loaded machine.
const REST: Duration = Duration::from_millis(15);

struct NoHostOps;

#[async_trait]
impl HostOps for NoHostOps {
    async fn fetch(&self, _: FetchRequest, _: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("PermissionDenied", "this bench has no network"))
    }

    async fn api(&self, _: ApiCall) -> Result<Value, OpError> {
        Ok(Value::Null)
    }
}

fn invocation(javascript: String, isolation: Isolation) -> Invocation {
    Invocation {
        task: Task::Call,
        owner_id: Uuid::from_u128(1),
        script: Arc::new(Script::new("add.js".into(), javascript, None)),
        input: json!({"a": 1, "b": 2}),
        request: RequestContext { id: "bench".into(), ..RequestContext::default() },
        secrets: BTreeMap::new(),
        limits: Limits::default(),
        isolation,
        hrtime: false,
        seed: None,
    }
}

/// A script with this many bytes of code beside the tool's own, like the output of a bundler.
fn bundle(bytes: usize) -> String {
    let mut code = String::new();
    for n in 0.. {
        if code.len() >= bytes {
            break;
        }
        code.push_str("function part");
        code.push_str(&n.to_string());
        code.push_str(
            "(x) { const out = []; for (let i = 0; i < x; i++) out.push({ i, text: `${i}` }); return out }\n",
        );
    }
    code + ADD
}

async fn call(sandbox: &Sandbox, call: &Invocation) {
    let outcome = sandbox.run(call.clone(), Arc::new(NoHostOps), CancellationToken::new()).await;
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
}

/// The total time of `calls` calls, each to an idle worker.
async fn at_low_load(sandbox: &Sandbox, what: &Invocation, calls: u64) -> Duration {
    let mut took = Duration::ZERO;
    for _ in 0..calls {
        tokio::time::sleep(REST).await;
        let begun = Instant::now();
        call(sandbox, what).await;
        took += begun.elapsed();
    }
    took
}

fn calls(criterion: &mut Criterion) {
    let (runtime, program) = (Runtime::new().expect("a runtime"), std::env::current_exe().expect("its own path"));
    let worker = WorkerCommand { program, args: vec![WORKER.into()] };
    let started = runtime.block_on(Sandbox::start(SandboxOptions::new(worker)));
    let sandbox = match started {
        Ok(sandbox) => sandbox,
        Err(error) => panic!("the sandbox does not start: {error}"),
    };
    let mut group = criterion.benchmark_group("a call in the sandbox");
    group.sample_size(10);
    let kept = invocation(ADD.into(), Isolation::Tool);
    group.bench_function("reused isolate, back to back", |bencher| {
        bencher.to_async(&runtime).iter(|| call(&sandbox, &kept));
    });
    let clean = invocation(ADD.into(), Isolation::Call);
    group.bench_function("clean call, back to back", |bencher| {
        bencher.to_async(&runtime).iter(|| call(&sandbox, &clean));
    });
    let scripts = [("short script", ADD.to_owned()), ("script of 200 kB", bundle(200_000))];
    for (isolation, how) in
        [(Isolation::Tool, "reused isolate"), (Isolation::Call, "clean call"), (Isolation::Process, "fresh process")]
    {
        for (what, javascript) in &scripts {
            let invocation = invocation(javascript.clone(), isolation);
            group.bench_function(format!("{how}, at low load, {what}"), |bencher| {
                bencher.to_async(&runtime).iter_custom(|calls| at_low_load(&sandbox, &invocation, calls));
            });
        }
    }
    // Each for another tenant, after the spare workers are used up.
    let mut tenants = 2_u128..;
    group.bench_function("a worker for another tenant", |bencher| {
        bencher.to_async(&runtime).iter(|| {
            let owner_id = Uuid::from_u128(tenants.next().expect("no end"));
            let invocation = Invocation { owner_id, ..invocation(ADD.into(), Isolation::Call) };
            let sandbox = &sandbox;
            async move { call(sandbox, &invocation).await }
        });
    });
    group.finish();
    runtime.block_on(sandbox.close());
}

fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a frame");
    for (name, bytes) in [("100 B", 100), ("100 KB", 100_000)] {
        let frame = Frame::new(Kind::Call, 1, 0, vec![b' '; bytes]);
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::new("written and read", name), |bencher| {
            bencher.iter(|| {
                let mut buffer = BytesMut::new();
                FrameCodec.encode(frame.clone(), &mut buffer).expect("it fits");
                let read = FrameCodec.decode(&mut buffer).expect("a frame").expect("all of it");
                assert_eq!(read.payload.len(), bytes);
            });
        });
    }
    group.finish();
}

fn scripts(criterion: &mut Criterion) {
    let tool = "export async function execute(input: { a: number; b: number }): Promise<{ sum: number }> {\n  \
                return { sum: input.a + input.b };\n}\n";
    let mut group = criterion.benchmark_group("TypeScript to a script");
    for (name, source) in [("a short tool", tool.to_owned()), ("a bundle of 200 kB", bundle(200_000))] {
        group.throughput(Throughput::Bytes(source.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| rcrt_typescript::compile(&source, "tool.ts", Dialect::TypeScript).expect("it compiles"));
        });
    }
    group.finish();
}

criterion_group!(benches, calls, frames, scripts);

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(WORKER) {
        return rcrt_isolate::worker_main(SOCKET_FD);
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
    ExitCode::SUCCESS
}

//! One sandbox for all tests, and short ways to run code in it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{Isolation, Limits};
use rcrt_sandbox::{
    ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, Invocation, OpError, RequestContext, RunOutcome,
    Sandbox, SandboxOptions, Script, Task, WorkerCommand,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a test waits for something that must happen. Long, so that no test fails on a busy
/// machine.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// The same, as the time limit of a call that must end by itself.
pub const PATIENCE_MS: u64 = 120_000;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| RUNTIME.block_on(start(|_| {})));

pub fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// The sandbox that all tests share.
pub fn shared() -> &'static Sandbox {
    LazyLock::force(&SANDBOX)
}

/// Names a copy of the worker's program, for a part of a test that runs as a user who cannot read
/// the build's own.
pub const COPIED_WORKER: &str = "RCRT_TEST_WORKER";

/// The name of the zygote process, from which workers are forked.
pub const ZYGOTE: &str = "sandbox-zygote";

pub fn worker() -> WorkerCommand {
    let copied = std::env::var_os(COPIED_WORKER).map(PathBuf::from);
    let program = copied.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_sandbox-worker")));
    WorkerCommand { program, args: Vec::new() }
}

/// Starts a separate sandbox.
pub async fn start(change: impl FnOnce(&mut SandboxOptions)) -> Sandbox {
    let mut options = SandboxOptions::new(worker());
    change(&mut options);
    Sandbox::start(options).await.expect("the sandbox starts")
}

pub fn script(javascript: &str) -> Arc<Script> {
    Arc::new(Script::new("tool.js".into(), javascript.into(), None))
}

pub fn invocation(javascript: &str, input: Value) -> Invocation {
    Invocation {
        task: Task::Call,
        owner_id: Uuid::from_u128(1),
        script: script(javascript),
        input,
        request: RequestContext { id: "r1".into(), ..RequestContext::default() },
        secrets: BTreeMap::new(),
        limits: Limits { timeout_ms: PATIENCE_MS, ..Limits::default() },
        isolation: Isolation::Call,
        hrtime: false,
        seed: None,
    }
}

/// A host for tools that need no ops.
pub struct NoHostOps;

#[async_trait]
impl HostOps for NoHostOps {
    async fn fetch(&self, request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("PermissionDenied", format!("{} is not reachable", request.url)))
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        Err(OpError::new("Unavailable", format!("{call:?}")))
    }
}

pub async fn run_in(sandbox: &Sandbox, invocation: Invocation) -> RunOutcome {
    sandbox.run(invocation, Arc::new(NoHostOps), CancellationToken::new()).await
}

/// Runs `export async function execute(input, context) { <body> }` in the shared sandbox.
pub fn execute(body: &str, input: Value) -> RunOutcome {
    block_on(run_in(shared(), invocation(&function(body), input)))
}

pub fn function(body: &str) -> String {
    format!("export async function execute(input, context) {{ {body} }}")
}

/// The value that `body` returns.
pub fn value(body: &str) -> Value {
    execute(body, Value::Null).result.unwrap_or_else(|failure| panic!("{body}: {failure} {:?}", failure.details))
}

/// A host whose only op notifies that it was called, and replies after `open` is notified.
#[derive(Default)]
pub struct Gate {
    pub reached: Notify,
    pub open: Notify,
}

#[async_trait]
impl HostOps for Gate {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("TypeError", "no network"))
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        self.reached.notify_one();
        self.open.notified().await;
        Ok(json!("open"))
    }
}

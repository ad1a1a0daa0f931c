//! The sandbox alone, as the runner uses it, with the workers that the installed program starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{Isolation, Limits};
use rcrt_load::Target;
use rcrt_sandbox::{
    ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, Invocation, OpError, RequestContext, Sandbox,
    SandboxOptions, Script, Task, WorkerCommand,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::instance::program;

/// The hidden command that makes the program a worker.
const WORKER: &str = "sandbox-worker";
/// The tool of every comparison, types stripped.
pub const ADD: &str = "export async function execute(input) { return { sum: input.a + input.b }; }";

pub fn is_worker(command_line: &str) -> bool {
    command_line.contains(WORKER)
}

pub fn options(max_workers: usize) -> anyhow::Result<SandboxOptions> {
    let worker = WorkerCommand { program: program("rcrt")?, args: vec![WORKER.into()] };
    Ok(SandboxOptions { max_workers, ..SandboxOptions::new(worker) })
}

pub async fn start(max_workers: usize) -> anyhow::Result<Arc<Sandbox>> {
    Ok(Arc::new(Sandbox::start(options(max_workers)?).await?))
}

pub fn invocation(javascript: &str, isolation: Isolation) -> Invocation {
    let script = Script::new("add.ts".into(), javascript.into(), None);
    Invocation {
        task: Task::Call,
        owner_id: Uuid::from_u128(1),
        script: Arc::new(script),
        input: json!({"a": 1, "b": 2}),
        request: RequestContext { id: "bench".into(), ..RequestContext::default() },
        secrets: BTreeMap::new(),
        limits: Limits::default(),
        isolation,
        hrtime: false,
        seed: None,
    }
}

/// Makes the same call again and again.
pub struct SandboxCalls {
    pub sandbox: Arc<Sandbox>,
    pub invocation: Invocation,
}

#[async_trait]
impl Target for SandboxCalls {
    async fn call(&self, _number: u64) -> Result<(), String> {
        run(&self.sandbox, self.invocation.clone()).await
    }
}

/// Runs one call.
pub async fn run(sandbox: &Sandbox, invocation: Invocation) -> Result<(), String> {
    let outcome = sandbox.run(invocation, Arc::new(Nowhere), CancellationToken::new()).await;
    outcome.result.map(|_| ()).map_err(|failure| failure.to_string())
}

/// A host without network and store.
struct Nowhere;

#[async_trait]
impl HostOps for Nowhere {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("PermissionDenied", "this bench has no network"))
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        Err(OpError::new("PermissionDenied", "this bench has no store"))
    }
}

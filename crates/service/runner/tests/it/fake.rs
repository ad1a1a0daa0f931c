//! An executor whose behaviour a test sets for each tool name.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use rcrt_breadcrumb::{ErrorCode, Implementation, ToolDefinition, ToolFailure};
use rcrt_executors::{Executor, Executors, ToolCall, ToolOutput};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

type Behaviour =
    Arc<dyn Fn(ToolCall, CancellationToken) -> BoxFuture<'static, Result<Value, ToolFailure>> + Send + Sync>;

#[derive(Default)]
pub struct Fake {
    behaviours: Mutex<HashMap<String, Behaviour>>,
    /// Requests that began to run, in order.
    pub begun: Mutex<Vec<Uuid>>,
    pub progress: watch::Sender<RunCounts>,
    /// The tools that were loaded, in the order in which loading began.
    pub loads: watch::Sender<Vec<String>>,
    /// While it is set, only the tools that it names are loaded; the others wait.
    pub only_loads: Mutex<Option<String>>,
    pub more_loads: Notify,
    /// The missing settings, by tool.
    pub missing_requirements: Mutex<HashMap<String, Vec<String>>>,
    /// Tools whose calls can begin before their requests are written.
    pub supports_speculation: Mutex<HashSet<String>>,
    /// Tools that keep state in memory between calls.
    pub keeps: Mutex<HashSet<String>>,
    /// How often `forget` was called, by tool record.
    pub forgotten: watch::Sender<HashMap<Uuid, usize>>,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct RunCounts {
    pub begun: usize,
    pub running: HashMap<String, usize>,
    /// The maximum number of concurrent runs, by tool and in total.
    pub most: HashMap<String, usize>,
    pub most_in_all: usize,
}

impl Fake {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets a tool's behaviour. The default returns its input and version.
    pub fn does<F>(&self, tool: &str, behaviour: impl Fn(ToolCall, CancellationToken) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
    {
        let behaviour: Behaviour = Arc::new(move |call, cancelled| Box::pin(behaviour(call, cancelled)));
        self.behaviours.lock().unwrap().insert(tool.to_owned(), behaviour);
    }

    /// The tool's calls wait for a permit of the semaphore, or until they are cancelled.
    pub fn waits(&self, tool: &str) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        let shared = gate.clone();
        self.does(tool, move |_, cancelled| {
            let gate = shared.clone();
            async move {
                tokio::select! {
                    permit = gate.acquire() => { permit.unwrap().forget(); Ok(json!("done")) }
                    () = cancelled.cancelled() => Err(ToolFailure::new(ErrorCode::Cancelled, "stopped")),
                }
            }
        });
        gate
    }

    pub fn executors(self: &Arc<Self>) -> Executors {
        let kinds = ["builtin", "http", "mcp"];
        kinds
            .into_iter()
            .fold(Executors::new().with_code(self.clone()), |all, kind| all.with_native(kind, self.clone()))
    }

    /// From now on every tool is loaded.
    pub fn load_all(&self) {
        *self.only_loads.lock().unwrap() = None;
        self.more_loads.notify_waiters();
    }

    pub async fn until(&self, holds: impl FnMut(&RunCounts) -> bool) {
        let mut progress = self.progress.subscribe();
        let _ =
            tokio::time::timeout(crate::fixture::PATIENCE, progress.wait_for(holds)).await.expect("progress in time");
    }
}

/// A running call, counted until it finishes or is dropped.
struct Running<'f> {
    progress: &'f watch::Sender<RunCounts>,
    name: &'f str,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.progress.send_modify(|progress| *progress.running.get_mut(self.name).unwrap() -= 1);
    }
}

#[async_trait]
impl Executor for Fake {
    async fn load(&self, definition: &ToolDefinition, _: Uuid, _: Uuid, _: i64) -> Result<(), ToolFailure> {
        self.loads.send_modify(|loads| loads.push(definition.name.clone()));
        loop {
            let more = self.more_loads.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            if self.only_loads.lock().unwrap().as_ref().is_none_or(|only| *only == definition.name) {
                return Ok(());
            }
            more.await;
        }
    }

    async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput {
        let name = call.definition.name.clone();
        self.begun.lock().unwrap().push(call.request.id);
        self.progress.send_modify(|progress| {
            progress.begun += 1;
            *progress.running.entry(name.clone()).or_default() += 1;
            let now = progress.running[&name];
            let most = progress.most.entry(name.clone()).or_default();
            *most = now.max(*most);
            progress.most_in_all = progress.most_in_all.max(progress.running.values().sum());
        });
        let _running = Running { progress: &self.progress, name: &name };
        let behaviour = self.behaviours.lock().unwrap().get(&name).cloned();
        let result = match behaviour {
            Some(behaviour) => behaviour(call, cancelled).await,
            None => Ok(json!({"input": call.input, "version": call.tool_version})),
        };
        let metadata = Map::from_iter([("from_executor".to_owned(), json!(true))]);
        ToolOutput::new(result, metadata)
    }

    fn is_io_bound(&self, definition: &ToolDefinition) -> bool {
        matches!(&definition.implementation, Implementation::Native(native) if native.kind == "http")
    }

    fn missing_requirements(&self, definition: &ToolDefinition) -> Vec<String> {
        self.missing_requirements.lock().unwrap().get(&definition.name).cloned().unwrap_or_default()
    }

    fn supports_speculation(&self, definition: &ToolDefinition) -> bool {
        self.supports_speculation.lock().unwrap().contains(&definition.name)
    }

    fn optional_secrets(&self, definition: &ToolDefinition) -> Vec<String> {
        let optional = if definition.name == "choosy" { vec!["EXTRA_KEY".to_owned()] } else { Vec::new() };
        optional.into_iter().filter(|name| !definition.required_secrets.contains(name)).collect()
    }

    fn keeps_state(&self, definition: &ToolDefinition) -> bool {
        self.keeps.lock().unwrap().contains(&definition.name)
    }

    fn forget(&self, tool_id: Uuid, _: i64) {
        self.forgotten.send_modify(|forgotten| *forgotten.entry(tool_id).or_default() += 1);
    }
}

/// The event that a call got; null if it got none.
pub fn event_of(call: &ToolCall) -> Value {
    json!(call.request.trigger_event)
}

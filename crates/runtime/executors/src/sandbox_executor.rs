//! Runs `tool.code.v1`: compiles each version once, and passes the calls to the sandbox with their
//! host ops.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rcrt_breadcrumb::{ErrorCode, Implementation, Isolation, Language, Limits, ToolCode, ToolDefinition, ToolFailure};
use rcrt_egress::{Egress, NetRules};
use rcrt_sandbox::{ConsoleLine, Invocation, RequestContext, Sandbox, Script, Task};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::load_check;
use crate::{CallHostOps, Executor, ToolCall, ToolOutput};

/// Compiled versions in the cache; the least recently used one is evicted first.
const MAX_SCRIPTS: usize = 1000;
/// Code of this many bytes is loaded for each version, which makes the engine's cache of it.
const WORTH_A_CACHE: usize = 8 * 1024;

pub struct SandboxExecutor {
    sandbox: Arc<Sandbox>,
    egress: Arc<Egress>,
    scripts: Mutex<Scripts>,
    loaded: LoadedCode,
    rcrt_compat: bool,
}

impl SandboxExecutor {
    pub fn new(sandbox: Arc<Sandbox>, egress: Arc<Egress>) -> Self {
        Self { sandbox, egress, scripts: Mutex::default(), loaded: LoadedCode::default(), rcrt_compat: false }
    }

    /// See [`CallHostOps::with_rcrt_compat`].
    #[must_use]
    pub fn with_rcrt_compat(self, rcrt_compat: bool) -> Self {
        Self { rcrt_compat, ..self }
    }

    async fn script(
        &self,
        definition: &ToolDefinition,
        version: Version,
    ) -> Result<(Arc<Script>, ToolCode), ToolFailure> {
        let Implementation::Code(code) = &definition.implementation else {
            return Err(no_code());
        };
        if let Some(script) = self.scripts.lock().get(version) {
            return Ok((script, code.clone()));
        }
        let script = compile_code(definition.name.clone(), code.clone()).await?;
        self.scripts.lock().put(version, script.clone());
        Ok((script, code.clone()))
    }
}

#[async_trait]
impl Executor for SandboxExecutor {
    async fn load(
        &self,
        definition: &ToolDefinition,
        owner_id: Uuid,
        tool_id: Uuid,
        tool_version: i64,
    ) -> Result<(), ToolFailure> {
        read_rules(definition)?;
        let (script, _) = self.script(definition, (tool_id, tool_version)).await?;
        // What `create_tool` has just loaded to run its examples need not be loaded again.
        let loads = self.loaded.hash(owner_id, &script.javascript, &definition.limits);
        if script.javascript.len() >= WORTH_A_CACHE || !self.loaded.has(loads) {
            load_check::check(&self.sandbox, owner_id, script, definition.limits).await?;
            self.loaded.remember(loads);
        }
        Ok(())
    }

    async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput {
        let prepared = async {
            let (script, code) = self.script(&call.definition, (call.tool_id, call.tool_version)).await?;
            let world = CallHostOps::new(self.egress.clone(), &call).map_err(|problem| bad_net(&problem))?;
            Ok::<_, ToolFailure>((script, code, Arc::new(world.with_rcrt_compat(self.rcrt_compat))))
        };
        let (script, code, world) = match prepared.await {
            Ok(prepared) => prepared,
            Err(failure) => return ToolOutput::new(Err(failure), Map::new()),
        };
        let invocation = Invocation {
            task: Task::Call,
            owner_id: call.owner_id,
            script,
            input: call.input,
            request: RequestContext {
                id: call.request.request_id,
                workspace: call.request.workspace,
                agent_id: call.request.agent_id.map(|id| id.to_string()),
                trigger_event: call.request.trigger_event,
            },
            secrets: named(call.secrets.shown(), &call.definition.required_secrets),
            limits: call.limits,
            isolation: code.isolation,
            hrtime: call.definition.permissions.hrtime,
            seed: None,
        };
        let outcome = self.sandbox.run(invocation, world, cancelled).await;
        let metadata = console(&outcome.console, outcome.console_truncated);
        ToolOutput::new(outcome.result, metadata).cleared(call.secrets).await
    }

    /// Code can act only through the sandbox's ops, and each op waits for the gate (`CallHostOps`).
    fn supports_speculation(&self, definition: &ToolDefinition) -> bool {
        matches!(definition.implementation, Implementation::Code(_))
    }

    fn keeps_state(&self, definition: &ToolDefinition) -> bool {
        keeps_state(definition)
    }

    fn forget(&self, tool_id: Uuid, tool_version: i64) {
        self.scripts.lock().kept.remove(&(tool_id, tool_version));
    }
}

/// Compiles a tool's code. The error has each problem with its line.
pub async fn compile_tool(definition: Arc<ToolDefinition>) -> Result<Arc<Script>, ToolFailure> {
    match &definition.implementation {
        Implementation::Code(code) => compile_code(definition.name.clone(), code.clone()).await,
        Implementation::Native(_) => Err(no_code()),
    }
}

fn no_code() -> ToolFailure {
    ToolFailure::new(ErrorCode::ExecutionFailed, "the tool has no code for the sandbox to run")
}

/// Up to 1 MB of source, so it is compiled on a separate thread.
async fn compile_code(name: String, code: ToolCode) -> Result<Arc<Script>, ToolFailure> {
    let compiled = tokio::task::spawn_blocking(move || compile(&name, &code)).await;
    let failed = |error| ToolFailure::new(ErrorCode::ExecutionFailed, format!("the compiler failed: {error}"));
    Ok(Arc::new(compiled.map_err(failed)??))
}

fn keeps_state(definition: &ToolDefinition) -> bool {
    matches!(&definition.implementation, Implementation::Code(code) if code.isolation == Isolation::Tool)
}

/// `context.secrets` has the secrets that the record names. `getSecret` reads others that were
/// granted.
fn named(mut secrets: BTreeMap<String, String>, names: &[String]) -> BTreeMap<String, String> {
    secrets.retain(|name, _| names.contains(name));
    secrets
}

fn read_rules(definition: &ToolDefinition) -> Result<NetRules, ToolFailure> {
    NetRules::read(&definition.permissions.net).map_err(|problem| bad_net(&problem))
}

fn bad_net(problem: &str) -> ToolFailure {
    let error = json!({"field": "permissions.net", "message": problem});
    ToolFailure::new(ErrorCode::ExecutionFailed, format!("permissions.net: {problem}"))
        .with_details(json!({"errors": [error]}))
}

fn compile(name: &str, code: &ToolCode) -> Result<Script, ToolFailure> {
    let (dialect, extension) = match code.language {
        Language::Typescript => (rcrt_typescript::Dialect::TypeScript, "ts"),
        Language::Javascript => (rcrt_typescript::Dialect::JavaScript, "js"),
    };
    let file_name = format!("{name}.{extension}");
    match rcrt_typescript::compile(&code.source, &file_name, dialect) {
        Ok(compiled) => {
            let script = Script::new(file_name, compiled.javascript, Some(compiled.source_map));
            if compiled.changes_builtins {
                script.sharing.refuse(&script.file_name);
            }
            Ok(script)
        }
        Err(errors) => {
            let first = errors.first().map(ToString::to_string).unwrap_or_default();
            let errors: Vec<Value> = errors
                .into_iter()
                .map(|e| json!({"field": "code.source", "message": e.message, "line": e.line, "column": e.column}))
                .collect();
            Err(ToolFailure::new(ErrorCode::ExecutionFailed, format!("{file_name} cannot be compiled: {first}"))
                .with_details(json!({"errors": errors})))
        }
    }
}

fn console(lines: &[ConsoleLine], truncated: bool) -> Map<String, Value> {
    let mut metadata = Map::new();
    if !lines.is_empty() {
        metadata.insert("console".into(), json!(lines));
    }
    if truncated {
        metadata.insert("console_truncated".into(), true.into());
    }
    metadata
}

/// Code that was loaded without an error, by a hash that differs in each process.
#[derive(Default)]
struct LoadedCode {
    hashing: RandomState,
    hashes: Mutex<HashSet<u64>>,
}

impl LoadedCode {
    fn hash(&self, owner_id: Uuid, javascript: &str, limits: &Limits) -> u64 {
        self.hashing.hash_one((owner_id, javascript, format!("{limits:?}")))
    }

    fn has(&self, hash: u64) -> bool {
        self.hashes.lock().contains(&hash)
    }

    fn remember(&self, hash: u64) {
        let mut hashes = self.hashes.lock();
        if hashes.len() >= MAX_SCRIPTS {
            hashes.clear();
        }
        hashes.insert(hash);
    }
}

type Version = (Uuid, i64);

#[derive(Default)]
struct Scripts {
    kept: HashMap<Version, (Arc<Script>, u64)>,
    /// Grows with each use, to find the least recently used script.
    clock: u64,
}

impl Scripts {
    fn get(&mut self, version: Version) -> Option<Arc<Script>> {
        self.clock += 1;
        let (script, used) = self.kept.get_mut(&version)?;
        *used = self.clock;
        Some(script.clone())
    }

    fn put(&mut self, version: Version, script: Arc<Script>) {
        self.clock += 1;
        if self.kept.len() >= MAX_SCRIPTS
            && let Some(oldest) = self.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(version, _)| *version)
        {
            self.kept.remove(&oldest);
        }
        self.kept.insert(version, (script, self.clock));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rcrt_breadcrumb::schema_names;

    use super::*;

    #[test]
    fn only_isolation_per_tool_keeps_state() {
        for (isolation, keeps) in
            [(json!(null), false), (json!("call"), false), (json!("process"), false), (json!("tool"), true)]
        {
            let mut context = json!({"name": "one", "code": {"language": "javascript", "source": ""}});
            if !isolation.is_null() {
                context["isolation"] = isolation.clone();
            }
            let context = context.as_object().unwrap();
            let definition = ToolDefinition::read(schema_names::TOOL_CODE, context, None, None).unwrap();
            assert_eq!(keeps_state(&definition), keeps, "{isolation}");
        }
    }
}

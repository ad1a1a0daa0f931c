//! A tenant with the tools, called like a runner calls them: large results are chunked.

use rcrt_breadcrumb::{ErrorCode, Profiles, ToolFailure};
use rcrt_executors::{BuiltinExecutor, Executor, ToolCall};
use rcrt_large_results::{EntryKey, Namespace, Settings, Shortened, WorkingMemory, shorten};
use rcrt_test_tenant::{Tenant, seeded};
use rcrt_validate::Schema;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub struct Fixture {
    pub tenant: Tenant,
    pub settings: Settings,
    executor: BuiltinExecutor,
}

impl Fixture {
    pub async fn new() -> Self {
        let settings = Settings::default();
        let executor = BuiltinExecutor::new().with(rcrt_memory::tools(settings.clone()));
        Self { tenant: Tenant::new().await, settings, executor }
    }

    /// A call of the session `s1`.
    pub fn prepared(&self, tool: &str, input: Value) -> ToolCall {
        let mut call = self.tenant.call(seeded(tool), input);
        call.request.tool = tool.into();
        call.request.session = Some("s1".into());
        call
    }

    /// Like a runner: input and output are validated against the seed's schemas, then the result is
    /// shortened.
    pub async fn execute(&self, call: ToolCall) -> Result<(Value, Map<String, Value>), ToolFailure> {
        let definition = call.definition.clone();
        let input = Schema::compile(&definition.input_schema).unwrap();
        assert_eq!(input.check(&call.input), [], "{} {}", definition.name, call.input);
        let request = call.request.clone();
        let ended = self.executor.execute(call, CancellationToken::new()).await;
        let output = ended.result?;
        assert_eq!(Schema::compile(&definition.output_schema).unwrap().check(&output), [], "{}", definition.name);
        let handed_over = shorten(output, &self.settings, &request, &self.memory()).await;
        let mut metadata = ended.metadata;
        metadata.extend(handed_over.metadata);
        Ok((handed_over.output, metadata))
    }

    /// Without validation.
    pub async fn unchecked(&self, call: ToolCall) -> Result<Value, ToolFailure> {
        self.executor.execute(call, CancellationToken::new()).await.result
    }

    pub async fn call(&self, tool: &str, input: Value) -> Result<Value, ToolFailure> {
        self.execute(self.prepared(tool, input)).await.map(|(output, _)| output)
    }

    /// What a caller of the session `s1` gets for this output of a tool.
    pub async fn hand_over(&self, tool: &str, output: Value) -> Shortened {
        let mut call = self.prepared("list_tool_guides", Value::Null);
        call.request.tool = tool.into();
        shorten(output, &self.settings, &call.request, &self.memory()).await
    }

    /// Stores a large result and returns its key.
    pub async fn keep(&self, tool: &str, output: Value) -> String {
        let handed_over = self.hand_over(tool, output).await;
        handed_over.metadata["large_result"]["key"].as_str().unwrap().to_owned()
    }

    pub fn memory(&self) -> WorkingMemory {
        WorkingMemory::new(
            self.tenant.breadcrumbs.clone(),
            rcrt_executors::TriggerChain::default(),
            Profiles::default(),
            None,
        )
    }
}

pub fn key(path: &str) -> EntryKey {
    EntryKey::read(path, &Namespace::session("s1")).unwrap()
}

/// Asserts that it failed with this code and that the message contains `says`.
pub fn refused<T: std::fmt::Debug>(result: Result<T, ToolFailure>, code: ErrorCode, says: &str) -> ToolFailure {
    let failure = result.expect_err("it was let through");
    assert_eq!(failure.code, code, "{}", failure.message);
    assert!(failure.message.contains(says), "{:?} does not say {says:?}", failure.message);
    failure
}

/// The value as text, with times and ids that differ between runs masked.
pub fn steady(value: &Value) -> String {
    let mut value = value.clone();
    mask(&mut value);
    format!("{}\n", value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned))
}

fn mask(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(members) => {
            for (name, member) in members {
                if name.ends_with("_at") {
                    assert!(chrono::DateTime::parse_from_rfc3339(member.as_str().unwrap()).is_ok(), "{member}");
                    *member = "2026-01-01T00:00:00Z".into();
                } else {
                    mask(member);
                }
            }
        }
        Value::String(text) => *text = without_ids(text),
        _ => {}
    }
}

/// Masks the digits of `-<12 hex digits>`.
fn without_ids(text: &str) -> String {
    let mut steady = String::new();
    for (index, part) in text.split('-').enumerate() {
        let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        if index > 0 {
            steady.push('-');
        }
        steady.push_str(if end == 12 { "0123456789ab" } else { &part[..end] });
        steady.push_str(&part[end..]);
    }
    steady
}

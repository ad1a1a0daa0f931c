//! The tools of one test, and shortcuts to call them.

use std::any::Any;
use std::sync::Arc;

use rcrt_breadcrumb::{ErrorCode, Limits, ToolFailure};
use rcrt_executors::{BuiltinExecutor, Executor, NativeTool, ToolCall, ToolOutput};
use rcrt_test_tenant::Tenant;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub const BASH: &str = "bash";
pub const PYTHON: &str = "execute_python_script";

pub struct Programs {
    pub executor: BuiltinExecutor,
    tenant: Tenant,
    /// Where the programs run.
    _place: Box<dyn Any + Send + Sync>,
}

impl Programs {
    /// `place` is kept until the test ends.
    pub async fn new(tools: Vec<Arc<dyn NativeTool>>, place: impl Any + Send + Sync) -> Self {
        let (executor, tenant) = (BuiltinExecutor::new().with(tools), Box::pin(Tenant::new()).await);
        Self { executor, tenant, _place: Box::new(place) }
    }

    pub fn call(&self, tool: &str, input: Value) -> ToolCall {
        self.tenant.call(rcrt_test_tenant::seeded(tool), input)
    }

    pub async fn execute(&self, call: ToolCall) -> ToolOutput {
        self.executor.execute(call, CancellationToken::new()).await
    }

    pub async fn result(&self, tool: &str, input: Value) -> Result<Value, ToolFailure> {
        self.execute(self.call(tool, input)).await.result
    }

    /// The output of a command that must exit, with any exit code.
    pub async fn tried(&self, command: &str) -> Value {
        let result = self.result(BASH, json!({"command": command})).await;
        result.unwrap_or_else(|failure| panic!("{command}: {failure} {:?}", failure.details))
    }

    /// The standard output of a command that must succeed.
    pub async fn bash(&self, command: &str) -> String {
        let output = self.tried(command).await;
        assert_eq!(output["exit_code"], 0, "{command}: {output}");
        output["stdout"].as_str().unwrap().to_owned()
    }

    pub async fn python(&self, script: &str) -> Result<Value, ToolFailure> {
        self.result(PYTHON, json!({"script": script})).await
    }

    /// The standard output of a script that must succeed.
    pub async fn printed(&self, script: &str) -> String {
        let result = self.python(script).await;
        let output = result.unwrap_or_else(|failure| panic!("{script}: {failure} {:?}", failure.details));
        output.as_str().unwrap().to_owned()
    }

    /// The failure of a call whose time limit ends it after it has printed something. On a busy
    /// machine the time can end before that, so the call is repeated.
    pub async fn timed_out_after_output(&self, call: impl Fn() -> ToolCall) -> ToolFailure {
        for _ in 0..60 {
            let failure = failed(self.execute(call()).await.result, ErrorCode::Timeout);
            if failure.details.as_ref().is_some_and(|details| details["stdout"] != "") {
                return failure;
            }
        }
        panic!("it prints nothing within its time limit");
    }
}

#[must_use]
pub fn limited(mut call: ToolCall, change: impl FnOnce(&mut Limits)) -> ToolCall {
    change(&mut call.limits);
    call
}

#[track_caller]
pub fn failed(result: Result<Value, ToolFailure>, code: ErrorCode) -> ToolFailure {
    let failure = result.expect_err("it must fail");
    assert_eq!(failure.code, code, "{failure} {:?}", failure.details);
    failure
}

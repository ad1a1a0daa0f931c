//! `bash`: one command in the working folder.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::isolation::{Isolation, Program, Source};
use crate::{arguments, exit_status, output_truncation};

pub const NAME: &str = "bash";
/// The options before the command.
pub const OPTIONS: [&str; 4] = ["--noprofile", "--norc", "-c", "--"];
const TIME: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    timeout_seconds: Option<f64>,
}

pub struct Bash(pub Arc<dyn Isolation>);

#[async_trait]
impl NativeTool for Bash {
    fn name(&self) -> &'static str {
        NAME
    }

    fn isolation(&self) -> Option<&'static str> {
        Some(self.0.name())
    }

    async fn ready(&self) {
        self.0.ready().await;
    }

    fn missing_requirements(&self) -> Vec<String> {
        self.0.missing_requirements(NAME)
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = read_input(call)?;
        arguments::one_argument("command", &input.command)?;
        let time = arguments::time(input.timeout_seconds, TIME, &call.limits)?;
        let program = Program::new(Source::Command(input.command), true, time);
        let finished = self.0.run(program, call, metadata).await?;
        let exit_code = exit_status::exit_code(&finished, &call.limits, time)?;
        let answer =
            |[stdout, stderr]: [String; 2]| json!({"exit_code": exit_code, "stdout": stdout, "stderr": stderr});
        let streams = [&finished.stdout, &finished.stderr];
        let Some(most) = output_truncation::taken_at_once(&call.request) else {
            return Ok(answer(streams.map(exit_status::text)));
        };
        let room = most.saturating_sub(answer([String::new(), String::new()]).to_string().len());
        Ok(answer(output_truncation::texts(streams, room)))
    }
}

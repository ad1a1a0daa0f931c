//! `bash`: one command in the working folder.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::{NativeTool, ToolCall};
use rcrt_jail::command::FilesystemView;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::program_runner::ProgramRunner;
use crate::{arguments, exit_status, output_truncation};

pub const NAME: &str = "bash";
const TIME: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    timeout_seconds: Option<f64>,
}

pub struct Bash {
    program_runner: ProgramRunner,
    /// Its path in the jail, or why it is missing.
    program: Result<PathBuf, String>,
}

impl Bash {
    pub fn new(program_runner: ProgramRunner) -> Self {
        let found = FilesystemView::of_programs(false).program("bash");
        let program = found.map_err(|error| format!("bash is not installed on this machine: {error}"));
        Self { program_runner, program }
    }
}

#[async_trait]
impl NativeTool for Bash {
    fn name(&self) -> &'static str {
        NAME
    }

    fn missing_requirements(&self) -> Vec<String> {
        self.program_runner.missing_requirements().or_else(|| self.program.clone().err()).into_iter().collect()
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = arguments::read(&call.input)?;
        arguments::one_argument("command", &input.command)?;
        let time = arguments::time(input.timeout_seconds, TIME, &call.limits)?;
        let mut order = self.program_runner.order(&call.limits, time).await?;
        order.program = self.program.clone().map_err(|why| ToolFailure::new(ErrorCode::ExecutionFailed, why))?;
        let options = ["--noprofile", "--norc", "-c", "--"];
        order.arguments = options.into_iter().map(str::to_owned).chain([input.command]).collect();
        let finished = self.program_runner.run(order).await?;
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

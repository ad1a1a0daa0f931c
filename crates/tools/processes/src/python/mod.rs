//! `execute_python_script`: runs a script in an empty folder or in the working folder, with
//! packages if it asks for them.

mod cleanup;
mod disk_quota;
pub mod environments;
pub mod installing;
pub mod interpreter;
pub mod packages;
mod pip_settings;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::isolation::{Isolation, Program, Source};
use crate::{arguments, exit_status, output_truncation};
use packages::PackageSet;

pub const NAME: &str = "execute_python_script";
const TIME: Duration = Duration::from_secs(30);
/// The longest script, in bytes.
const LONGEST: usize = 1024 * 1024;
/// The input is available under both names that scripts use.
pub const INPUT: [&str; 2] = ["RCRT_INPUT", "ROCKBOT_INPUT"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    script: String,
    #[serde(default)]
    #[serde(rename = "input_data")]
    data: Value,
    timeout_seconds: Option<f64>,
    #[serde(default)]
    pip_packages: Vec<String>,
    /// Run in the working folder, where files remain.
    #[serde(default)]
    keep_files: bool,
}

pub struct ExecutePythonScript(pub Arc<dyn Isolation>);

#[async_trait]
impl NativeTool for ExecutePythonScript {
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
        if input.script.len() > LONGEST {
            return Err(arguments::wrong("script", format!("is longer than {LONGEST} bytes")));
        }
        let data = given(input.data)?;
        let packages = PackageSet::read(&input.pip_packages)?;
        let time = arguments::time(input.timeout_seconds, TIME, &call.limits)?;
        let mut program = Program::new(Source::Python { script: input.script, packages }, input.keep_files, time);
        let folder = program.folder();
        program.extend([
            // Modules in the script's folder can be imported, and no compiled files are written
            // there.
            ("PYTHONPATH", folder),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            // Output before a script is terminated is reported.
            ("PYTHONUNBUFFERED", "1"),
            ("PYTHONUTF8", "1"),
        ]);
        if let Some(data) = &data {
            program.extend(INPUT.map(|name| (name, data.as_str())));
        }
        let finished = self.0.run(program, call, metadata).await?;
        match exit_status::exit_code(&finished, &call.limits, time)? {
            0 => Ok(match output_truncation::taken_at_once(&call.request) {
                Some(most) => output_truncation::text(&finished.stdout, most).into(),
                None => exit_status::text(&finished.stdout).into(),
            }),
            code => Err(failed(code, &finished)),
        }
    }
}

/// Adds the version of Python to a response's metadata, and what its reader should know if it is
/// another one than the expected one.
pub fn tell_version(version: &str, metadata: &mut Map<String, Value>) {
    metadata.insert("python".into(), version.into());
    let (major, minor) = interpreter::EXPECTED;
    if !version.starts_with(&format!("{major}.{minor}.")) {
        let notice = format!("scripts run with Python {version} here, because Python {major}.{minor} was not found");
        metadata.insert("notice".into(), notice.into());
    }
}

/// The input in the script's environment: a string unchanged, anything else as JSON.
fn given(data: Value) -> Result<Option<String>, ToolFailure> {
    let text = match data {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        other => other.to_string(),
    };
    arguments::one_argument("input_data", &text)?;
    Ok(Some(text))
}

/// Standard error contains the reason.
fn failed(code: i32, finished: &rcrt_jail::command::Finished) -> ToolFailure {
    let words = exit_status::text(&finished.stderr);
    let output = match words.trim() {
        "" => "and wrote nothing to standard error".to_owned(),
        words => format!("and wrote:\n{}", exit_status::last(words, 2_000)),
    };
    let message = format!("the script ended with exit code {code} {output}");
    let details = exit_status::with_output(json!({"exit_code": code}), finished);
    ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_documents_the_defaults() {
        let definition = rcrt_test_tenant::seeded(NAME);
        let fields = &definition.input_schema["properties"];
        assert_eq!(fields["timeout_seconds"]["default"], TIME.as_secs());
        assert_eq!(fields["keep_files"]["default"], false);
        let limits = definition.limits;
        assert_eq!((TIME.as_secs(), limits.memory_mb, limits.cpu_percent), (30, 256, 50));
    }
}

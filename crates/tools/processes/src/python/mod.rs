//! `execute_python_script`: runs a script in an empty folder or in the working folder, with
//! packages if it asks for them.

mod cleanup;
mod disk_quota;
mod environments;
mod installing;
mod interpreter;
mod packages;
mod pip_settings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::disk::DiskBounds;
use crate::program_runner::{FOLDER, ProgramRunner};
use crate::{arguments, exit_status, output_truncation};
use environments::Environments;
use interpreter::Interpreter;
use packages::PackageSet;

pub const NAME: &str = "execute_python_script";
const TIME: Duration = Duration::from_secs(30);
/// A scratch folder: empty at the start, removed at the end.
const SCRATCH: &str = "/tmp";
/// The longest script, in bytes.
const LONGEST: usize = 1024 * 1024;
/// The path of the script in error messages.
const SCRIPT: &str = "/run/script.py";
/// The input is available under both names that scripts use.
const INPUT: [&str; 2] = ["RCRT_INPUT", "ROCKBOT_INPUT"];

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

pub struct ExecutePythonScript {
    program_runner: ProgramRunner,
    interpreter: Result<Interpreter, String>,
    environments: Environments,
}

impl ExecutePythonScript {
    pub async fn new(program_runner: ProgramRunner, environments: PathBuf, bounds: DiskBounds) -> Self {
        let interpreter = match program_runner.missing_requirements() {
            // Without a jail it cannot be tried.
            Some(reason) => Err(reason),
            None => Interpreter::find(&program_runner.jail).await,
        };
        Self { program_runner, interpreter, environments: Environments::new(environments, bounds) }
    }
}

#[async_trait]
impl NativeTool for ExecutePythonScript {
    fn name(&self) -> &'static str {
        NAME
    }

    fn missing_requirements(&self) -> Vec<String> {
        self.interpreter.as_ref().err().cloned().into_iter().collect()
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = arguments::read(&call.input)?;
        if input.script.len() > LONGEST {
            return Err(arguments::wrong("script", format!("is longer than {LONGEST} bytes")));
        }
        let data = given(input.data)?;
        let packages = PackageSet::read(&input.pip_packages)?;
        let time = arguments::time(input.timeout_seconds, TIME, &call.limits)?;
        let interpreter =
            self.interpreter.as_ref().map_err(|why| ToolFailure::new(ErrorCode::ExecutionFailed, why.as_str()))?;
        let mut order = self.program_runner.order(&call.limits, time).await?;
        let folder = if input.keep_files { FOLDER } else { SCRATCH };
        if !input.keep_files {
            order.view.writable.clear();
            order.folder = SCRATCH.into();
            order.environment.insert("PWD".to_owned(), SCRATCH.to_owned());
        }
        metadata.insert("python".into(), interpreter.version.as_str().into());
        if let Some(notice) = interpreter.notice() {
            metadata.insert("notice".into(), notice.into());
        }
        interpreter.show(&mut order.view);
        order.program = interpreter.program.clone();
        let environment = match packages {
            None => None,
            Some(packages) => {
                let found = self.environments.get(&packages, interpreter, &self.program_runner.jail, call).await?;
                metadata.insert("packages".into(), json!({"set": packages.names(), "installed_now": found.is_new}));
                Some(found)
            }
        };
        if let Some(environment) = &environment {
            order.view.read(&environment.folder, Path::new(environments::FOLDER));
            order.program = environments::program();
        }
        order.view.files.push((SCRIPT.into(), input.script));
        order.arguments = vec![SCRIPT.into()];
        let own = [
            // Modules in the script's folder can be imported, and no compiled files are written
            // there.
            ("PYTHONPATH", folder),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            // Output before a script is terminated is reported.
            ("PYTHONUNBUFFERED", "1"),
            ("PYTHONUTF8", "1"),
        ];
        order.environment.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        if let Some(data) = data {
            order.environment.extend(INPUT.map(|name| (name.to_owned(), data.clone())));
        }
        let finished = self.program_runner.run(order).await?;
        match exit_status::exit_code(&finished, &call.limits, time)? {
            0 => Ok(match output_truncation::taken_at_once(&call.request) {
                Some(most) => output_truncation::text(&finished.stdout, most).into(),
                None => exit_status::text(&finished.stdout).into(),
            }),
            code => Err(failed(code, &finished)),
        }
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

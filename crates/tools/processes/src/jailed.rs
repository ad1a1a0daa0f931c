//! Programs in jails on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::ToolCall;
use rcrt_jail::command::{CommandSpec, FilesystemView, Finished, Jail};
use serde_json::{Map, Value, json};

use crate::isolation::{Isolation, Program, SCRIPT, Source};
use crate::program_runner::ProgramRunner;
use crate::python::environments::{self, Environments};
use crate::python::interpreter::Interpreter;
use crate::python::packages::PackageSet;
use crate::{Settings, bash, python};

/// The name of this isolation in records of tools.
pub const NAME: &str = "jail";

pub struct Jailed {
    of_bash: ProgramRunner,
    of_python: ProgramRunner,
    /// The path of bash in the jail, or why it is missing.
    bash: Result<PathBuf, String>,
    interpreter: Result<Interpreter, String>,
    environments: Environments,
}

impl Jailed {
    pub async fn new(jail: &Arc<Jail>, settings: Settings) -> Self {
        let of_bash = ProgramRunner::new(jail, &settings, bash::NAME);
        let of_python = ProgramRunner::new(jail, &settings, python::NAME);
        let found = FilesystemView::of_programs(false).program("bash");
        let bash = found.map_err(|error| format!("bash is not installed on this machine: {error}"));
        let interpreter = match of_python.missing_requirements() {
            // Without a jail it cannot be tried.
            Some(reason) => Err(reason),
            None => Interpreter::find(jail).await,
        };
        let environments = Environments::new(settings.environments, settings.disk);
        Self { of_bash, of_python, bash, interpreter, environments }
    }

    async fn run_bash(&self, command: String, program: Program, call: &ToolCall) -> Result<Finished, ToolFailure> {
        let mut order = self.of_bash.order(&call.limits, program.time).await?;
        order.program = self.bash.clone().map_err(|why| ToolFailure::new(ErrorCode::ExecutionFailed, why))?;
        order.arguments = bash::OPTIONS.into_iter().map(str::to_owned).chain([command]).collect();
        order.environment = program.environment;
        self.of_bash.run(order).await
    }

    async fn run_python(
        &self,
        (script, packages): (String, Option<PackageSet>),
        program: Program,
        call: &ToolCall,
        metadata: &mut Map<String, Value>,
    ) -> Result<Finished, ToolFailure> {
        let interpreter =
            self.interpreter.as_ref().map_err(|why| ToolFailure::new(ErrorCode::ExecutionFailed, why.as_str()))?;
        let mut order: CommandSpec = self.of_python.order(&call.limits, program.time).await?;
        if !program.keeps_files {
            order.view.writable.clear();
        }
        order.folder = program.folder().into();
        python::tell_version(&interpreter.version, metadata);
        interpreter.show(&mut order.view);
        order.program = interpreter.program.clone();
        let environment = match packages {
            None => None,
            Some(packages) => {
                let found = self.environments.get(&packages, interpreter, &self.of_python.jail, call).await?;
                metadata.insert("packages".into(), json!({"set": packages.names(), "installed_now": found.is_new}));
                Some(found)
            }
        };
        if let Some(environment) = &environment {
            order.view.read(&environment.folder, Path::new(environments::FOLDER));
            order.program = environments::program();
        }
        order.view.files.push((SCRIPT.into(), script));
        order.arguments = vec![SCRIPT.into()];
        order.environment = program.environment;
        self.of_python.run(order).await
    }
}

#[async_trait]
impl Isolation for Jailed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn missing_requirements(&self, tool: &str) -> Vec<String> {
        let missing = if tool == python::NAME {
            self.interpreter.as_ref().err().cloned()
        } else {
            self.of_bash.missing_requirements().or_else(|| self.bash.clone().err())
        };
        missing.into_iter().collect()
    }

    async fn run(
        &self,
        mut program: Program,
        call: &ToolCall,
        metadata: &mut Map<String, Value>,
    ) -> Result<Finished, ToolFailure> {
        match std::mem::replace(&mut program.source, Source::Command(String::new())) {
            Source::Command(command) => self.run_bash(command, program, call).await,
            Source::Python { script, packages } => self.run_python((script, packages), program, call, metadata).await,
        }
    }
}

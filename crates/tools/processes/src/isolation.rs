//! Where the programs of these tools run: in jails on this machine, or elsewhere, such as in pods
//! of a cluster. The tools read inputs and make results in the same way for all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::ToolCall;
use rcrt_jail::command::{Finished, PATH};
use serde_json::{Map, Value};

use crate::PackageSet;
use crate::program_runner::FOLDER;

/// The path of a script in its error messages.
pub const SCRIPT: &str = "/run/script.py";
/// A scratch folder: empty at the start, removed at the end.
pub const SCRATCH: &str = "/tmp";

/// One program of one call.
pub struct Program {
    pub source: Source,
    /// All its variables.
    pub environment: BTreeMap<String, String>,
    /// It starts in the working folder, whose files stay, and not in an empty one.
    pub keeps_files: bool,
    /// The time limit, from when the program starts.
    pub time: Duration,
}

pub enum Source {
    /// A bash command.
    Command(String),
    Python {
        script: String,
        packages: Option<PackageSet>,
    },
}

impl Program {
    /// With the variables that every program has, and nothing from the runner's own environment.
    pub fn new(source: Source, keeps_files: bool, time: Duration) -> Self {
        let mut program = Self { source, environment: BTreeMap::new(), keeps_files, time };
        program.extend([
            ("PATH", PATH),
            ("HOME", SCRATCH),
            ("TMPDIR", SCRATCH),
            ("PWD", program.folder()),
            ("USER", "agent"),
            ("LOGNAME", "agent"),
            ("SHELL", "/bin/bash"),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
        ]);
        program
    }

    /// The folder in which it starts.
    pub fn folder(&self) -> &'static str {
        if self.keeps_files { FOLDER } else { SCRATCH }
    }

    pub fn extend<'a>(&mut self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}

/// A place where programs run, each separated from everything else.
#[async_trait]
pub trait Isolation: Send + Sync + 'static {
    /// Its name, as a tool's record requires it: `jail` or `pod`.
    fn name(&self) -> &'static str;

    /// Completes when it is known what is missing.
    async fn ready(&self) {}

    /// What is missing before programs of this tool can run. Each entry is a sentence that says how
    /// to provide it.
    fn missing_requirements(&self, tool: &str) -> Vec<String>;

    /// Runs a program within the call's limits, and ends it if the future is dropped. `metadata`
    /// goes into the response's metadata.
    async fn run(
        &self,
        program: Program,
        call: &ToolCall,
        metadata: &mut Map<String, Value>,
    ) -> Result<Finished, ToolFailure>;
}

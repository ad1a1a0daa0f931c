//! A tenant with a working folder and the tools, called like a runner calls them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::{BuiltinExecutor, Executor, ToolCall, ToolOutput};
use rcrt_files::Settings;
use rcrt_test_tenant::{Tenant, seeded};
use rcrt_validate::Schema;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub struct Fixture {
    tenant: Tenant,
    outer: TempDir,
    executor: Arc<BuiltinExecutor>,
}

impl Fixture {
    /// The working folder is `work` in a temporary folder, next to a secret file.
    pub async fn new() -> Self {
        Self::limited(0, 0).await
    }

    /// `min_free` bytes must stay free on the disk, and the folder holds at most `most_bytes`.
    pub async fn limited(min_free: u64, most_bytes: u64) -> Self {
        let outer = TempDir::new().unwrap();
        std::fs::write(outer.path().join("secret.txt"), "the secret").unwrap();
        let (folder, in_jail) = (outer.path().join("work"), Some("/jailed/work".into()));
        let settings = Settings { folder, in_jail, min_free, most_bytes };
        let executor = Arc::new(BuiltinExecutor::new().with(rcrt_files::tools(&settings)));
        Self { tenant: Box::pin(Tenant::new()).await, outer, executor }
    }

    pub fn outer(&self) -> &Path {
        self.outer.path()
    }

    /// An absolute path in the working folder, whose parent folders are created.
    pub fn at(&self, path: &str) -> PathBuf {
        let path = self.outer.path().join("work").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(path);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap()
    }

    /// The names in the working folder.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.outer.path().join("work")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub fn prepared(&self, tool: &str, input: Value) -> ToolCall {
        self.tenant.call(seeded(tool), input)
    }

    pub async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput {
        self.executor.execute(call, cancelled).await
    }

    /// Like a runner: input and output are validated against the seed's schemas.
    pub async fn call(&self, tool: &str, input: Value) -> Result<(Value, Value), ToolFailure> {
        self.answer(tool, self.prepared(tool, input)).await
    }

    /// The same for a prepared call.
    pub async fn answer(&self, tool: &str, call: ToolCall) -> Result<(Value, Value), ToolFailure> {
        let definition = seeded(tool);
        let input = &call.input;
        assert_eq!(Schema::compile(&definition.input_schema).unwrap().check(input), [], "{tool} {input}");
        let ended = self.execute(call, CancellationToken::new()).await;
        if let Ok(output) = &ended.result {
            assert_eq!(Schema::compile(&definition.output_schema).unwrap().check(output), [], "{tool}");
        }
        ended.result.map(|output| (output, Value::Object(ended.metadata)))
    }

    pub async fn read(&self, input: Value) -> Result<String, ToolFailure> {
        self.call("read_file", input).await.map(|(output, _)| output.as_str().unwrap().to_owned())
    }

    pub async fn read_all(&self, path: &str) -> Result<String, ToolFailure> {
        self.read(json!({ "path": path })).await
    }

    pub async fn write(&self, path: &str, content: &str) -> Result<Value, ToolFailure> {
        self.call("write_file", json!({ "path": path, "content": content })).await.map(|(output, _)| output)
    }

    pub async fn append(&self, path: &str, content: &str) -> Result<Value, ToolFailure> {
        self.call("append_file", json!({ "path": path, "content": content })).await.map(|(output, _)| output)
    }
}

/// Asserts that it failed with this code and that the message contains `says`.
pub fn refused<T: std::fmt::Debug>(result: Result<T, ToolFailure>, code: ErrorCode, says: &str) -> ToolFailure {
    let failure = result.expect_err("it was let through");
    assert_eq!(failure.code, code, "{}", failure.message);
    assert!(failure.message.contains(says), "{:?} does not say {says:?}", failure.message);
    failure
}

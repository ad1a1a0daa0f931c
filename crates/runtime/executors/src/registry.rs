//! Which executor runs which kind of tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use rcrt_breadcrumb::{ErrorCode, Implementation, ToolFailure};

use crate::Executor;

/// The executors of one runner: one for `tool.code.v1`, one for each `implementation.type` of a
/// `tool.v1`.
#[derive(Default)]
pub struct Executors {
    code: Option<Arc<dyn Executor>>,
    native: BTreeMap<String, Arc<dyn Executor>>,
}

impl Executors {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_code(mut self, executor: Arc<dyn Executor>) -> Self {
        self.code = Some(executor);
        self
    }

    #[must_use]
    pub fn with_native(mut self, kind: &str, executor: Arc<dyn Executor>) -> Self {
        self.native.insert(kind.to_owned(), executor);
        self
    }

    /// The executor, or `ExecutionFailed` if this runner has none for the tool.
    pub fn of(&self, implementation: &Implementation) -> Result<&Arc<dyn Executor>, ToolFailure> {
        match implementation {
            Implementation::Code(_) => self.code.as_ref().ok_or_else(|| {
                ToolFailure::new(ErrorCode::ExecutionFailed, "this runner has no sandbox; it cannot run tool.code.v1")
            }),
            Implementation::Native(native) => self.native.get(&native.kind).ok_or_else(|| {
                let kinds: Vec<&str> = self.native.keys().map(String::as_str).collect();
                let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
                let message =
                    format!("there is no executor for implementation.type {:?}; this runner has: {kinds}", native.kind);
                ToolFailure::new(ErrorCode::ExecutionFailed, message)
            }),
        }
    }
}

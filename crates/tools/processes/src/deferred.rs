//! A tool whose requirements are still being checked. That takes a second if a Python has to be
//! tried. A runner that starts does not wait for it; a call of the tool does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::{NativeTool, ToolCall};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::{Settings, bash, jailed, python, tools};

/// How long a runner that checks the tool waits, less than its own time limit: a tool is not broken
/// because a loaded machine tries its Python slowly.
const PATIENCE: Duration = Duration::from_secs(20);

type Tools = Vec<Arc<dyn NativeTool>>;

struct DeferredTool {
    name: &'static str,
    found: watch::Receiver<Option<Tools>>,
    /// The check is aborted when the last of the tools is dropped.
    _finding: Arc<AbortOnDropHandle<()>>,
}

/// Like [`tools`], without waiting for the checks.
pub fn deferred_tools(settings: Settings) -> Tools {
    let (tell, found) = watch::channel(None);
    let finding = tokio::spawn(async move {
        tell.send_replace(Some(tools(settings).await));
    });
    let finding = Arc::new(AbortOnDropHandle::new(finding));
    let deferred = |name| DeferredTool { name, found: found.clone(), _finding: finding.clone() };
    [bash::NAME, python::NAME].map(|name| -> Arc<dyn NativeTool> { Arc::new(deferred(name)) }).into()
}

impl DeferredTool {
    /// An error means that the check ended without a result; a call reports it.
    async fn found(&self) {
        let _ = self.found.clone().wait_for(Option::is_some).await;
    }

    fn now(&self) -> Option<Arc<dyn NativeTool>> {
        self.found.borrow().as_ref().and_then(|tools| tools.iter().find(|tool| tool.name() == self.name).cloned())
    }
}

#[async_trait]
impl NativeTool for DeferredTool {
    fn name(&self) -> &'static str {
        self.name
    }

    fn isolation(&self) -> Option<&'static str> {
        Some(jailed::NAME)
    }

    async fn ready(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.found()).await;
    }

    fn missing_requirements(&self) -> Vec<String> {
        self.now().map(|tool| tool.missing_requirements()).unwrap_or_default()
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        // The call's own time limit applies here.
        self.found().await;
        match self.now() {
            Some(tool) => tool.run(call, metadata).await,
            None => {
                let message = "cannot determine whether programs can run here";
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, message))
            }
        }
    }
}

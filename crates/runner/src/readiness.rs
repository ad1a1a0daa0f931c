//! Which tools can be offered: their executors are ready, and their secrets are there and granted. Secrets have no
//! events, and neither has a program that is installed; so all of it is looked at again now and then.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{Breadcrumbs, SecretInfo, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::backoff::persist;
use crate::lacks::Lacks;
use crate::registry::Registry;
use crate::tool::Tool;
use crate::tool_errors::ToolErrors;

pub(crate) struct Readiness {
    store: Arc<dyn Breadcrumbs>,
    registry: Arc<Registry>,
    errors: Arc<ToolErrors>,
    soon: Notify,
}

impl Readiness {
    pub fn new(store: Arc<dyn Breadcrumbs>, registry: Arc<Registry>, errors: Arc<ToolErrors>) -> Arc<Self> {
        Arc::new(Self { store, registry, errors, soon: Notify::new() })
    }

    /// A call found that something is not as the registry has it: look at all tools soon.
    pub fn look(&self) {
        self.soon.notify_one();
    }

    /// What the tool lacks now.
    pub async fn of(&self, tool: &Tool) -> Lacks {
        if tool.executor.required_secrets(&tool.definition).is_empty() {
            return Lacks::of(tool, &[]);
        }
        match self.secrets().await {
            Ok(known) => Lacks::of(tool, &known),
            Err(lacks) => lacks,
        }
    }

    /// What the tool lacks now, for a call of it; the registry learns it too.
    pub async fn recheck(&self, tool: &Arc<Tool>) -> Lacks {
        let lacks = self.of(tool).await;
        self.learn(vec![(tool.clone(), lacks.clone())]);
        lacks
    }

    /// Looks again now and then, until stopped.
    pub async fn run(&self, every: Duration, stop: CancellationToken) {
        let work = async {
            loop {
                tokio::select! {
                    () = self.soon.notified() => {}
                    () = tokio::time::sleep(every) => {}
                }
                self.look_at_all().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    async fn look_at_all(&self) {
        let tools = self.registry.working();
        let needs_secrets = |tool: &Arc<Tool>| !tool.executor.required_secrets(&tool.definition).is_empty();
        let known = if tools.iter().any(needs_secrets) { self.secrets().await } else { Ok(Vec::new()) };
        let lacks = tools.into_iter().map(|tool| {
            let lacks = match &known {
                Err(lacks) if needs_secrets(&tool) => lacks.clone(),
                Err(_) => Lacks::of(&tool, &[]),
                Ok(known) => Lacks::of(&tool, known),
            };
            (tool, lacks)
        });
        self.learn(lacks.collect());
    }

    fn learn(&self, lacks: Vec<(Arc<Tool>, Lacks)>) {
        for id in self.registry.set_lacks(lacks).reports {
            self.errors.look_at(id);
        }
    }

    async fn secrets(&self) -> Result<Vec<SecretInfo>, Lacks> {
        persist("list secrets", || self.store.secrets()).await.map_err(|error| match error {
            StoreError::Forbidden(_) | StoreError::Unauthorized(_) => {
                Lacks::sentence("the runner's agent may not use secrets: it needs the role runner")
            }
            error => {
                tracing::error!(%error, "the secrets cannot be listed");
                Lacks::sentence("the tenant's secrets cannot be read now; the runner's log says why")
            }
        })
    }
}

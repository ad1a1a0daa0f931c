//! Which tools can be offered: their executors are ready, and their secrets are there and granted. Secrets have no
//! events, and neither has a program that is installed; so all of it is looked at again now and then.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{Breadcrumbs, SecretInfo, StoreError};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::persist;
use crate::lacks::Lacks;
use crate::registry::Registry;
use crate::tool::Candidate;

pub(crate) struct Readiness {
    store: Arc<dyn Breadcrumbs>,
    registry: Arc<Registry>,
    soon: Notify,
    /// What was listed last, and when.
    listed: Mutex<Option<(Instant, Arc<Vec<SecretInfo>>)>>,
}

/// How old a list of secrets may be for tools that are looked at one after the other.
const LATELY: Duration = Duration::from_secs(1);

impl Readiness {
    pub fn new(store: Arc<dyn Breadcrumbs>, registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self { store, registry, soon: Notify::new(), listed: Mutex::new(None) })
    }

    /// A call found that something is not as the registry has it: look at all tools soon.
    pub fn look(&self) {
        self.soon.notify_one();
    }

    /// What the tool lacks now.
    pub async fn of(&self, tool: &Candidate) -> Lacks {
        if tool.executor.required_secrets(&tool.definition).is_empty() {
            return Lacks::of(tool, &[]);
        }
        match self.secrets().await {
            Ok(known) => Lacks::of(tool, &known),
            Err(lacks) => lacks,
        }
    }

    /// What the tool lacked a moment ago; for when many tools are looked at. A call looks again.
    pub async fn lately(&self, tool: &Candidate) -> Lacks {
        if tool.executor.required_secrets(&tool.definition).is_empty() {
            return Lacks::of(tool, &[]);
        }
        let mut listed = self.listed.lock().await;
        if let Some((when, known)) = &*listed
            && when.elapsed() < LATELY
        {
            return Lacks::of(tool, known);
        }
        match self.secrets().await {
            Ok(known) => {
                let lacks = Lacks::of(tool, &known);
                *listed = Some((Instant::now(), Arc::new(known)));
                lacks
            }
            Err(lacks) => lacks,
        }
    }

    /// What the tool lacks now, for a call of it; the registry learns it too.
    pub async fn recheck(&self, tool: &Arc<Candidate>) -> Lacks {
        let lacks = self.of(tool).await;
        self.registry.set_lacks(vec![(tool.clone(), lacks.clone())]);
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
        let needs_secrets = |tool: &Arc<Candidate>| !tool.executor.required_secrets(&tool.definition).is_empty();
        let known = if tools.iter().any(needs_secrets) { self.secrets().await } else { Ok(Vec::new()) };
        let lacks = tools.into_iter().map(|tool| {
            let lacks = match &known {
                Err(lacks) if needs_secrets(&tool) => lacks.clone(),
                Err(_) => Lacks::of(&tool, &[]),
                Ok(known) => Lacks::of(&tool, known),
            };
            (tool, lacks)
        });
        self.registry.set_lacks(lacks.collect());
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

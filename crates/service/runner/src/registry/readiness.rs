//! Which tools can be offered: their executors are ready, and their secrets exist and are granted.
//! The replies to this runner's reports say when secrets and grants changed. Settings and installed
//! programs are checked every second, and everything is checked again periodically.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{SecretInfo, Secrets, StoreError, ToolSource};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::with_retries;
use crate::registry::Registry;
use crate::registry::missing_requirements::MissingRequirements;
use crate::registry::tool::Candidate;

pub(crate) struct Readiness {
    store: Arc<dyn Secrets>,
    registry: Arc<Registry>,
    soon: Notify,
    /// The last list of secrets, and when it was read.
    listed: Mutex<Option<(Instant, Arc<Vec<SecretInfo>>)>>,
}

/// How often settings and programs are checked.
pub(crate) const SETTINGS: Duration = Duration::from_millis(800);
/// The maximum age of the list of secrets in `check_cached`.
const SECRETS_MAX_AGE: Duration = Duration::from_secs(1);

impl Readiness {
    pub fn new(store: Arc<dyn Secrets>, registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self { store, registry, soon: Notify::new(), listed: Mutex::new(None) })
    }

    /// Secrets or grants changed, or a call found that the registry is out of date: check all tools
    /// soon.
    pub fn check_soon(&self) {
        self.soon.notify_one();
    }

    /// What the tool lacks now.
    pub async fn of(&self, tool: &Candidate) -> MissingRequirements {
        if tool.executor.required_secrets(&tool.definition).is_empty() {
            return MissingRequirements::of(tool, &[]);
        }
        match self.secrets().await {
            Ok(known) => MissingRequirements::of(tool, &known),
            Err(missing) => missing,
        }
    }

    /// As `of`, with a list of secrets that is up to a second old: for checks of many tools. A call
    /// checks again.
    pub async fn check_cached(&self, tool: &Candidate) -> MissingRequirements {
        if tool.executor.required_secrets(&tool.definition).is_empty() {
            return MissingRequirements::of(tool, &[]);
        }
        let mut listed = self.listed.lock().await;
        if let Some((when, known)) = &*listed
            && when.elapsed() < SECRETS_MAX_AGE
        {
            return MissingRequirements::of(tool, known);
        }
        match self.secrets().await {
            Ok(known) => {
                let missing = MissingRequirements::of(tool, &known);
                *listed = Some((Instant::now(), Arc::new(known)));
                missing
            }
            Err(missing) => missing,
        }
    }

    /// What the tool lacks now, for a call of it. Also updates the registry.
    pub async fn recheck(&self, tool: &Arc<Candidate>) -> MissingRequirements {
        let missing = self.of(tool).await;
        self.registry.set_missing(vec![(tool.clone(), missing.clone())]);
        missing
    }

    /// Checks all tools periodically, until stopped.
    pub async fn run(&self, every: Duration, stop: CancellationToken) {
        let work = async {
            let mut looked = Instant::now();
            loop {
                let is_asked = tokio::time::timeout(SETTINGS.min(every), self.soon.notified()).await.is_ok();
                if is_asked || looked.elapsed() >= every {
                    self.check_all().await;
                    looked = Instant::now();
                } else {
                    self.check_settings();
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    /// Checks the native tools without secrets, which takes no request.
    fn check_settings(&self) {
        let is_native = |tool: &Arc<Candidate>| tool.source() == ToolSource::Native;
        let needs_none = |tool: &Arc<Candidate>| tool.executor.required_secrets(&tool.definition).is_empty();
        let tools = self.registry.working().into_iter().filter(|tool| is_native(tool) && needs_none(tool));
        let missing = tools.map(|tool| {
            let missing = MissingRequirements::of(&tool, &[]);
            (tool, missing)
        });
        self.registry.set_missing(missing.collect());
    }

    async fn check_all(&self) {
        let tools = self.registry.working();
        let needs_secrets = |tool: &Arc<Candidate>| !tool.executor.required_secrets(&tool.definition).is_empty();
        let known = if tools.iter().any(needs_secrets) { self.secrets().await } else { Ok(Vec::new()) };
        let missing = tools.into_iter().map(|tool| {
            let missing = match &known {
                Err(missing) if needs_secrets(&tool) => missing.clone(),
                Err(_) => MissingRequirements::of(&tool, &[]),
                Ok(known) => MissingRequirements::of(&tool, known),
            };
            (tool, missing)
        });
        self.registry.set_missing(missing.collect());
    }

    async fn secrets(&self) -> Result<Vec<SecretInfo>, MissingRequirements> {
        with_retries("list secrets", || self.store.secrets()).await.map_err(|error| match error {
            StoreError::Forbidden(_) | StoreError::Unauthorized(_) => {
                MissingRequirements::sentence("the runner's agent cannot use secrets; it needs the role runner")
            }
            error => {
                tracing::error!(%error, "the secrets cannot be listed");
                MissingRequirements::sentence("the tenant's secrets cannot be read now; the runner's log says why")
            }
        })
    }
}

//! Puts the parts of one runner together, in the order in which they must start and stop.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use rcrt_breadcrumb::{Breadcrumbs, EventNumber, StoreError};
use rcrt_executors::Executors;
use rcrt_validate::Budget;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::with_retries;
use crate::coordination::leases::Leases;
use crate::coordination::peer_runners::PeerRunners;
use crate::coordination::queue_hints::QueueHints;
use crate::coordination::reporter::Reporter;
use crate::coordination::slot_pool::SlotPool;
use crate::coordination::slots::Slots;
use crate::dispatch::calls::Calls;
use crate::dispatch::claim_loop::ClaimLoop;
use crate::dispatch::claim_pacing::ClaimPacer;
use crate::dispatch::local::LocalRegistration;
use crate::event_follower::EventFollower;
use crate::execution::call::CallRunner;
use crate::execution::response_writer::ResponseWriter;
use crate::execution::telemetry;
use crate::execution::tool_access::ToolAccess;
use crate::execution::tool_finder::ToolDirectory;
use crate::options::RunnerOptions;
use crate::publishing::catalog_publisher::CatalogPublisher;
use crate::publishing::shadow_reports::ShadowReports;
use crate::registry::Registry;
use crate::registry::bootstrap::{BootstrapHints, Bootstrapping};
use crate::registry::deprecated_use::DeprecatedUse;
use crate::registry::pinned_versions::PinnedVersions;
use crate::registry::readiness::Readiness;
use crate::registry::tool_errors::ToolErrors;
use crate::registry::tool_loader::ToolLoader;
use crate::registry::tool_preparation::{SCHEMA_BYTES, ToolPreparer};
use crate::subscriptions::Subscriptions;

/// The maximum number of events that wait to be matched with subscriptions. If it is reached, the
/// event stream waits.
const MAX_TRIGGERS: usize = 256;
/// The maximum number of responses being written, for each slot. They need no worker, but memory.
const RESPONSE_WRITES_PER_SLOT: usize = 4;

/// Why a runner failed.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The agent lacks the runner's rights, or the store is broken.
    #[error("the runner cannot work with this store: {0}")]
    Store(#[from] StoreError),
    #[error("a part of the runner failed: {0}")]
    Part(String),
}

/// A runner for one tenant.
pub struct Runner {
    store: Arc<dyn Breadcrumbs>,
    executors: Arc<Executors>,
    options: RunnerOptions,
    local: Option<LocalRegistration>,
}

impl Runner {
    /// Runners of one tenant must act as the same agent: triggers and bootstraps happen once across
    /// all runners, by that agent's idempotency keys.
    pub fn new(store: Arc<dyn Breadcrumbs>, executors: impl Into<Arc<Executors>>, options: RunnerOptions) -> Self {
        telemetry::describe();
        Self { store, executors: executors.into(), options, local: None }
    }

    /// Also takes calls as their requests are created through the [`LocalDispatch`] of this
    /// process.
    ///
    /// [`LocalDispatch`]: crate::LocalDispatch
    #[must_use]
    pub fn with_local_dispatch(self, local: LocalRegistration) -> Self {
        Self { local: Some(local), ..self }
    }

    /// Runs until stopped, then lets running calls finish within the drain time. Waits for a store
    /// that cannot be reached. Boxed, so that all of it is compiled in this crate and not again in
    /// the binary.
    pub fn run(self, shutdown: CancellationToken) -> BoxFuture<'static, Result<(), RunnerError>> {
        Box::pin(self.until(shutdown))
    }

    async fn until(self, shutdown: CancellationToken) -> Result<(), RunnerError> {
        // Stops what must outlive the calls: heartbeats, and the events that report cancellation.
        let end = CancellationToken::new();
        // Stops what starts new work; also cancelled when a part of the runner fails.
        let stop = shutdown.child_token();
        telemetry::show_runner(self.options.runner_id);
        let parts = Parts::new(&self, &stop);
        let mut tasks = JoinSet::new();
        let outcome = parts.run(&mut tasks, &stop, &end).await;
        stop.cancel();
        end.cancel();
        let mut outcome = outcome;
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                outcome = outcome.and(Err(RunnerError::Part(error.to_string())));
            }
        }
        outcome
    }
}

struct Parts {
    store: Arc<dyn Breadcrumbs>,
    options: RunnerOptions,
    registry: Arc<Registry>,
    errors: Arc<ToolErrors>,
    readiness: Arc<Readiness>,
    loading: Arc<ToolLoader>,
    leases: Arc<Leases>,
    hints: Arc<QueueHints>,
    peers: Arc<PeerRunners>,
    slots: Arc<Slots>,
    reporter: Arc<Reporter>,
    call_runner: Arc<CallRunner>,
    local: Option<LocalRegistration>,
}

impl Parts {
    fn new(runner: &Runner, stop: &CancellationToken) -> Self {
        let (store, options) = (runner.store.clone(), runner.options.clone());
        let registry = Registry::new();
        let errors = ToolErrors::new(store.clone(), registry.clone());
        let readiness = Readiness::new(store.clone(), registry.clone());
        let preparer = Arc::new(ToolPreparer {
            executors: runner.executors.clone(),
            system_authors: options.system_authors.clone(),
            allowed_private: options.allowed_private.clone().into(),
            rcrt_compat: options.rcrt_compat,
            schemas: Budget::new(SCHEMA_BYTES),
        });
        let loading = ToolLoader::new(
            store.clone(),
            registry.clone(),
            errors.clone(),
            readiness.clone(),
            preparer.clone(),
            options.max_loads,
        );
        let leases = Leases::new(store.clone(), options.lease_ms());
        let hints = Arc::new(QueueHints::default());
        let peers = PeerRunners::new(
            store.clone(),
            registry.clone(),
            hints.clone(),
            options.runner_id,
            options.protections.clone(),
        );
        let most_waiting = options.max_waiting;
        let slots = Slots::new(
            registry.clone(),
            SlotPool::new(options.max_calls, options.max_calls_per_tool),
            SlotPool::new(most_waiting, RunnerOptions::share_of_one_tool(most_waiting)),
            RunnerOptions::max_parked(options.max_calls),
        );
        let reporter = Reporter::new(
            store.clone(),
            loading.clone(),
            peers.clone(),
            readiness.clone(),
            slots.clone(),
            stop.clone(),
            &options,
        );
        let call_runner = Arc::new(CallRunner {
            store: store.clone(),
            tool_access: ToolAccess {
                registry: registry.clone(),
                loading: loading.clone(),
                readiness: readiness.clone(),
                peers: peers.clone(),
                pinned: PinnedVersions::new(store.clone(), registry.clone(), preparer),
                deprecated: DeprecatedUse::default(),
            },
            directory: ToolDirectory::new(
                store.clone(),
                registry.clone(),
                loading.clone(),
                peers.clone(),
                options.meaning_weight,
            ),
            leases: leases.clone(),
            response_hints: Arc::default(),
            responses: ResponseWriter { store: store.clone(), runner_id: options.runner_id, hints: hints.clone() },
            shadows: ShadowReports::new(store.clone()),
            options: options.clone(),
            stop: stop.clone(),
            drained: CancellationToken::new(),
        });
        Self {
            store,
            options,
            registry,
            errors,
            readiness,
            loading,
            leases,
            hints,
            peers,
            slots,
            reporter,
            call_runner,
            local: runner.local.clone().filter(|_| runner.options.takes_all_tools()),
        }
    }

    async fn run(
        self,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
        end: &CancellationToken,
    ) -> Result<(), RunnerError> {
        tasks.spawn(self.loading.clone().run(end.clone()));
        // Read the number before the lists: what is written between the two arrives as an event and
        // is not missed.
        let latest = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            latest = with_retries("read the newest event's number", || self.store.latest_event()) => latest?,
        };
        // Before the first claim: from here on, the write of a tool waits for this runner.
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            begun = self.reporter.begin(latest) => begun?,
        }
        tracing::info!(runner_id = %self.options.runner_id, "the runner is ready");
        self.spawn_followers(tasks, latest, stop, end);
        self.spawn_checks(tasks, stop, end);
        // Calls do not wait for the list of all tools: the tools that they need are read first.
        let mut listing = pin!(self.list());
        let mut claim_loop = pin!(self.claim_loop().run(stop));
        // Before the stop, a part whose task panicked stops the runner.
        let mut is_listed = false;
        let failed = loop {
            tokio::select! {
                () = &mut claim_loop => return Ok(()),
                listed = &mut listing, if !is_listed => match listed {
                    Ok(()) => is_listed = true,
                    Err(error) => break RunnerError::Store(error),
                },
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended {
                        break RunnerError::Part(error.to_string());
                    }
                }
            }
        };
        stop.cancel();
        claim_loop.await;
        Err(failed)
    }

    /// Starts the parts that follow events, and those that publish what the events change.
    fn spawn_followers(
        &self,
        tasks: &mut JoinSet<()>,
        latest: EventNumber,
        stop: &CancellationToken,
        end: &CancellationToken,
    ) {
        let (triggers, events) = mpsc::channel(MAX_TRIGGERS);
        let bootstrap = Arc::new(BootstrapHints::default());
        let publisher = CatalogPublisher::new(
            self.store.clone(),
            self.registry.clone(),
            self.peers.clone(),
            self.options.rcrt_compat,
        );
        let follower = EventFollower {
            store: self.store.clone(),
            registry: self.registry.clone(),
            loading: self.loading.clone(),
            leases: self.leases.clone(),
            hints: self.hints.clone(),
            bootstrap: bootstrap.clone(),
            publisher: publisher.clone(),
            peers: self.peers.clone(),
            reporter: self.reporter.clone(),
            responses: self.call_runner.response_hints.clone(),
            triggers,
        };
        tasks.spawn(follower.run(latest, end.clone()));
        if !self.options.takes_all_tools() {
            return;
        }
        let subscriptions =
            Subscriptions { store: self.store.clone(), registry: self.registry.clone(), loading: self.loading.clone() };
        tasks.spawn(subscriptions.run(events, stop.clone()));
        let bootstrapping = Bootstrapping {
            store: self.store.clone(),
            registry: self.registry.clone(),
            hints: bootstrap,
            pause: self.options.continuous_pause,
            known: HashMap::new(),
        };
        // These parts publish something about all tools, so they start when all are known.
        let (loading, publish) = (self.loading.clone(), stop.clone());
        once(tasks, stop, async move { loading.mostly_validated().await }, async move { publisher.run(publish).await });
        let loading = self.loading.clone();
        once(tasks, stop, async move { loading.mostly_validated().await }, bootstrapping.run(stop.clone()));
    }

    /// Starts the parts that work at intervals.
    fn spawn_checks(&self, tasks: &mut JoinSet<()>, stop: &CancellationToken, end: &CancellationToken) {
        let (leases, beat) = (self.leases.clone(), end.clone());
        tasks.spawn(async move { leases.run(beat).await });
        let (shadows, write) = (self.call_runner.shadows.clone(), end.clone());
        tasks.spawn(async move { shadows.run(write).await });
        let (reporter, report) = (self.reporter.clone(), end.clone());
        tasks.spawn(async move { reporter.run(report).await });
        let (readiness, every, look_again) = (self.readiness.clone(), self.options.readiness, stop.clone());
        tasks.spawn(async move { readiness.run(every, look_again).await });
        let (loading, every, reconcile) = (self.loading.clone(), self.options.reconcile, stop.clone());
        tasks.spawn(async move { loading.keep_reconciled(every, reconcile).await });
        // These write something about all tools, so they start when all are known.
        if self.options.takes_all_tools() {
            let (loading, errors, write) = (self.loading.clone(), self.errors.clone(), stop.clone());
            once(tasks, stop, async move { loading.listed().await }, async move { errors.run(write).await });
        }
        let (loading, peers, announce) = (self.loading.clone(), self.peers.clone(), stop.clone());
        once(tasks, stop, async move { loading.mostly_validated().await }, async move { peers.run(announce).await });
    }

    fn claim_loop(&self) -> ClaimLoop {
        let calls = Arc::new(Calls {
            call_runner: self.call_runner.clone(),
            hints: self.hints.clone(),
            slots: self.slots.clone(),
            max_response_writes: RESPONSE_WRITES_PER_SLOT * self.options.max_calls.max(1),
            tasks: TaskTracker::new(),
            waiting: Arc::default(),
            ended: Notify::new(),
            dropped: CancellationToken::new(),
        });
        ClaimLoop {
            calls,
            pacer: ClaimPacer::new(self.options.max_calls),
            poll: self.options.poll,
            drain: self.options.drain,
            local: self.local.clone(),
        }
    }

    async fn list(&self) -> Result<(), StoreError> {
        self.loading.begin().await?;
        tracing::debug!(tools = self.registry.ids().len(), "all tools are read");
        Ok(())
    }
}

/// Starts a part after a condition is met.
fn once(
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
    passed: impl Future<Output = ()> + Send + 'static,
    part: impl Future<Output = ()> + Send + 'static,
) {
    let stop = stop.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = passed => part.await,
        }
    });
}

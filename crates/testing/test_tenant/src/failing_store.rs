//! A store that fails or waits where a test says so, and otherwise is the real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, Breadcrumbs,
    BreadcrumbsDecorator, Created, Lease, LeaseState, NewBreadcrumb, ReportReply, RunnerReport, StoreError,
    SubscribeOptions, SubscriptionStream, schema_names,
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use uuid::Uuid;

/// Where the user of the store is stopped for good: just before or just after its nth write (create
/// or update), counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Before(usize),
    After(usize),
}

/// Holds back operations of one kind while a test keeps it closed.
pub struct Gate {
    open: Arc<Semaphore>,
    reached: Notify,
}

impl Gate {
    fn new() -> Self {
        Self { open: Arc::new(Semaphore::new(1)), reached: Notify::new() }
    }

    /// Closed until the result is dropped.
    pub async fn close(&self) -> OwnedSemaphorePermit {
        self.open.clone().acquire_owned().await.unwrap()
    }

    /// Waits until an operation is at the gate.
    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    async fn pass(&self) {
        self.reached.notify_one();
        drop(self.close().await);
    }
}

pub struct FailingStore {
    store: Arc<dyn Breadcrumbs>,
    pub heartbeats_fail: AtomicBool,
    /// How many heartbeats were sent.
    pub heartbeats: watch::Sender<u32>,
    /// How many of the next responses are lost before they are written.
    pub completes_fail: AtomicU32,
    /// How many of the next creates and updates fail. Every second one is written nevertheless.
    pub writes_fail: AtomicUsize,
    /// Lists with conditions on the context fail.
    pub lists_fail: AtomicBool,
    /// Notified when such a list failed.
    pub list_failed: Notify,
    /// The event stream ends with an error after each event.
    pub events_break: AtomicBool,
    pub events: Arc<Gate>,
    pub histories: Gate,
    pub gets: Gate,
    pub tool_error_lists: Gate,
    /// How many lists of tool errors were returned.
    pub tool_errors_listed: watch::Sender<usize>,
    pub runner_lists: Gate,
    /// Holds back the results of creating a runner's record, which is written.
    pub runners_created: Gate,
    /// Holds back the reports of runners.
    pub reports: Gate,
    /// How many reports of runners were answered.
    pub reported: watch::Sender<usize>,
    /// How many starts of calls were requested.
    pub starts: watch::Sender<u32>,
    stop: Option<Stop>,
    stopped: Notify,
    writes: AtomicUsize,
}

impl FailingStore {
    pub fn new(store: Arc<dyn Breadcrumbs>) -> Arc<Self> {
        Self::build(store, None)
    }

    pub fn stopping(store: Arc<dyn Breadcrumbs>, stop: Stop) -> Arc<Self> {
        Self::build(store, Some(stop))
    }

    fn build(store: Arc<dyn Breadcrumbs>, stop: Option<Stop>) -> Arc<Self> {
        Arc::new(Self {
            store,
            heartbeats_fail: AtomicBool::default(),
            heartbeats: watch::Sender::default(),
            completes_fail: AtomicU32::default(),
            writes_fail: AtomicUsize::default(),
            lists_fail: AtomicBool::default(),
            list_failed: Notify::default(),
            events_break: AtomicBool::default(),
            events: Arc::new(Gate::new()),
            histories: Gate::new(),
            gets: Gate::new(),
            tool_error_lists: Gate::new(),
            tool_errors_listed: watch::Sender::default(),
            runner_lists: Gate::new(),
            runners_created: Gate::new(),
            reports: Gate::new(),
            reported: watch::Sender::default(),
            starts: watch::Sender::default(),
            stop,
            stopped: Notify::default(),
            writes: AtomicUsize::default(),
        })
    }

    /// Waits until the user of the store is stopped.
    pub async fn stopped(&self) {
        self.stopped.notified().await;
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let one_less = |left: usize| left.checked_sub(1);
        if let Ok(left) = self.writes_fail.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            if left % 2 == 0 {
                write.await?;
            }
            return Err(unavailable());
        }
        let number = self.writes.fetch_add(1, Ordering::SeqCst);
        self.stop_at(Stop::Before(number)).await;
        let written = write.await;
        self.stop_at(Stop::After(number)).await;
        written
    }

    async fn stop_at(&self, stop: Stop) {
        if self.stop == Some(stop) {
            self.stopped.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("on purpose".into())
}

#[async_trait]
impl BreadcrumbsDecorator for FailingStore {
    fn inner(&self) -> &dyn Breadcrumbs {
        &*self.store
    }

    async fn create(&self, record: NewBreadcrumb, key: Option<&str>) -> Result<Created, StoreError> {
        let is_runner = record.schema_name.as_deref() == Some(schema_names::TOOL_RUNNER);
        let created = self.write(self.store.create(record, key)).await;
        if is_runner {
            self.runners_created.pass().await;
        }
        created
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        self.write(self.store.update(id, version, changes)).await
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        self.gets.pass().await;
        self.store.get(id).await
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        self.histories.pass().await;
        self.store.history(id).await
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        if !query.selector.context_match.is_empty() && self.lists_fail.load(Ordering::SeqCst) {
            self.list_failed.notify_one();
            return Err(unavailable());
        }
        let is_of = |name| query.selector.schema_name.as_deref() == Some(name);
        if is_of(schema_names::TOOL_RUNNER) {
            self.runner_lists.pass().await;
        }
        if is_of(schema_names::TOOL_ERROR) {
            self.tool_error_lists.pass().await;
        }
        let listed = self.store.list(query).await;
        if is_of(schema_names::TOOL_ERROR) {
            self.tool_errors_listed.send_modify(|listed| *listed += 1);
        }
        listed
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        let followed = self.store.subscribe(options).await?;
        if self.events_break.load(Ordering::SeqCst) {
            return Ok(followed.take(1).chain(futures::stream::iter([Err(unavailable())])).boxed());
        }
        let gate = self.events.clone();
        let held = move |event| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                event
            }
        };
        Ok(followed.then(held).boxed())
    }

    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError> {
        self.starts.send_modify(|starts| *starts += 1);
        self.store.start(lease, max_attempts).await
    }

    async fn report_runner(&self, report: &RunnerReport) -> Result<ReportReply, StoreError> {
        self.reports.pass().await;
        let reply = self.store.report_runner(report).await;
        self.reported.send_modify(|reported| *reported += 1);
        reply
    }

    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<LeaseState>, StoreError> {
        if self.heartbeats_fail.load(Ordering::SeqCst) {
            return Err(unavailable());
        }
        let held = self.store.heartbeat(leases, lease_ms).await;
        self.heartbeats.send_modify(|sent| *sent += 1);
        held
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        let one_less = |left: u32| left.checked_sub(1);
        if self.completes_fail.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Err(unavailable());
        }
        self.store.complete(lease, response).await
    }
}

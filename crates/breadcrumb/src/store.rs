//! The trait [`Breadcrumbs`]: one tenant's store as one agent sees it.

use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    AclChange, AclEntry, Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion,
    BreadcrumbView, Call, Claim, ClaimRequest, Created, EgressEntry, EgressQuery, EgressRecord, EventNumber,
    EventStream, Found, HeldLease, Lease, LocalRunner, LocalRunnerGuard, NewBreadcrumb, NewSecret, Release, Search,
    SecretChanges, SecretInfo, Selector, SelectorSubscription, SubscribeOptions, SubscriptionStream, Violations, event,
};

/// Why the store did not do what was asked. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Also for what belongs to another tenant.
    #[error("no {what} with id {id}")]
    NotFound { what: &'static str, id: Uuid },
    #[error("the record is at version {actual}, not at {expected}; read it again and repeat the change")]
    VersionConflict { expected: i64, actual: i64 },
    #[error("{0}")]
    Invalid(Violations),
    #[error("this Idempotency-Key was used before with another body")]
    IdempotencyMismatch,
    /// The lease ended, was taken over, or the call is finished: stop working on it.
    #[error("the lease on request {request} is lost")]
    LeaseLost { request: Uuid },
    /// No token, or one that is expired or forged.
    #[error("{0}")]
    Unauthorized(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("the input is too large: at most {limit} bytes are taken")]
    TooLarge { limit: usize },
    /// Events that were to come next are not kept any more; from this number on nothing is missing.
    #[error("events were missed, because they are kept for some days only; follow on from number {first}")]
    EventsMissed { first: EventNumber },
    /// The tenant keeps as much as it may. `quota`: `records` or `bytes`.
    #[error(
        "the tenant's quota of {limit} {quota} is used up ({used} are kept); delete what is not needed, or ask the operator \
         for more. Old versions and deleted records count towards bytes for a while"
    )]
    QuotaExceeded { quota: String, limit: u64, used: u64 },
    /// The database has no room left.
    #[error("the store is out of disk space; nothing was written")]
    Full,
    /// Not now: the database or the server cannot be reached. A retry can help.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// A fault of ours. The text is for the log, not for callers.
    #[error("internal error: {0}")]
    Internal(String),
}

impl StoreError {
    /// Whether the same call may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Full)
    }
}

impl From<Violations> for StoreError {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

/// Sees the record as it is and as it would be, and gives what is to be written instead, or refuses.
pub type ChangeCheck<'c> = dyn Fn(&Breadcrumb, NewBreadcrumb) -> Result<NewBreadcrumb, StoreError> + Send + Sync + 'c;

/// A tenant's records, calls, events and secrets, as one agent sees them, and what others have opened to it. What it may
/// not see is [`StoreError::NotFound`]. Every method is safe to drop midway: what it
/// does happens whole or not at all.
#[async_trait]
pub trait Breadcrumbs: Send + Sync + 'static {
    // --- records ---

    /// Writes a record, its place in the queue if it is a `tool.request.v1`, and its event, in one transaction. The
    /// same `idempotency_key` (1 to 255 characters, remembered for 24 hours per agent) with the same record gets the
    /// first answer again, with another record [`StoreError::IdempotencyMismatch`].
    async fn create(&self, record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError>;

    /// The record with everything. Expired and deleted records are [`StoreError::NotFound`].
    ///
    /// Of a record that ends by its reads (`ttl_type` usage or hybrid) this counts one, and the last one still gets it:
    /// unless who reads is the runtime itself, an agent with the role runner that is no curator. Lists, searches, events
    /// and the history count none.
    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError>;

    /// The short view, transformed for models where the record or its schema's definition says how. Counts as a read,
    /// like [`Self::get`]. This is what `read_context` opens, and of other tenants' records being public, too.
    async fn view(&self, id: Uuid) -> Result<BreadcrumbView, StoreError> {
        Ok(self.get(id).await?.into())
    }

    /// All versions, newest first, the present one included.
    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError>;

    /// Changes the record that is at `version`.
    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError>;

    /// [`Self::update`], with a last word on what the record becomes: it is asked in the transaction that changes the
    /// record. For layers over a store of this process; one that is reached over a network has none.
    async fn update_checked(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: &ChangeCheck<'_>,
    ) -> Result<Breadcrumb, StoreError> {
        let _ = (id, version, changes, check);
        Err(StoreError::Internal("this store asks nobody about a change".into()))
    }

    /// Deletes the record; with a version, only if it is at that one. A request that waits or runs is cancelled too.
    /// [`StoreError::Forbidden`] where only a curator may change the record.
    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError>;

    /// Newest change first.
    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError>;

    /// Best match first: by words, by meaning, or both. Without a mode it never fails for want of an embedder: it then searches by
    /// words, and says so. [`StoreError::Unavailable`] where the mode is `vector` and the model is not ready.
    async fn search(&self, search: &Search) -> Result<Found, StoreError>;

    // --- rights ---

    /// The grants on one record or on all, newest first: a curator's those of the tenant, anybody else's those on
    /// records of its own making.
    async fn grants(&self, _record: Option<Uuid>) -> Result<Vec<AclEntry>, StoreError> {
        Err(no_rights())
    }

    /// Opens a record of the tenant to an agent or to a whole tenant, and gives the grant's id: one for each grantee,
    /// to which more actions are added. Allowed to curators and to the agent that created the record; to curators only
    /// where the record is a `tool.response.v1`. Otherwise [`StoreError::Forbidden`].
    async fn grant(&self, _change: &AclChange) -> Result<Uuid, StoreError> {
        Err(no_rights())
    }

    /// Takes actions back, and gives how many grants that changed: none, or one. Event streams that are open end to tell
    /// of the record within two seconds.
    async fn revoke(&self, _change: &AclChange) -> Result<u64, StoreError> {
        Err(no_rights())
    }

    /// The same tenant's store for what a runner does in another agent's name: with the runner's rights to write, limited
    /// to the records that the agent may see. Requests and private records that are created so are the agent's own.
    /// [`StoreError::Forbidden`] for everybody but runners.
    fn acting_for(&self, _agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        Err(no_rights())
    }

    // --- events ---

    /// The number of the newest event that a subscriber could have seen; 0 when there is none.
    async fn latest_event(&self) -> Result<EventNumber, StoreError>;

    /// Each event that the agent may hear of and wants to, once, in order, then each new one as it commits: of the tenant's
    /// records but those that are private to others, and of records that were opened to it (`subscribe`). And what it must
    /// know of those that it does not get. [`StoreError::Invalid`] for a filter that means nothing, and for a number
    /// beyond every event. Dropping the stream ends the subscription.
    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError>;

    /// Every event after this number that the agent may hear of, whatever its selectors say. `None` starts with the next. A
    /// number that lies too far back ends it with [`StoreError::EventsMissed`].
    async fn events(&self, after: Option<EventNumber>) -> Result<EventStream, StoreError> {
        Ok(event::events_of(self.subscribe(SubscribeOptions::all(after)).await?))
    }

    // --- the agent's selectors ---

    /// From now on the agent's streams carry what one of its selectors means. [`StoreError::Invalid`] when it has
    /// [`MAX_SELECTORS`](crate::MAX_SELECTORS) already.
    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError>;

    /// The oldest first.
    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError>;

    /// Puts another selector in its place, for the streams that are open too.
    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError>;

    /// Without any selector the agent's streams carry everything again.
    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError>;

    // --- calls ---

    /// Returns when a call was queued through this process since this was last waited for on this value (the first time
    /// at once), so that a runner in the same process need not wait for the event. It is a hint, given right after the
    /// commit: the call may be another's by then, and a call that is queued elsewhere, or put back, gives none. Never
    /// returns where that cannot be known.
    async fn call_queued(&self) {
        std::future::pending::<()>().await;
    }

    /// From now on a runner of the tenant in this process is asked about each request that is written through it, and takes
    /// those that it wants: such a call never waits in the queue. Where that cannot be, nobody asks.
    fn register_local_runner(&self, runner: Arc<dyn LocalRunner>) -> LocalRunnerGuard {
        LocalRunnerGuard::unregistered(runner)
    }

    /// Takes up to `limit` waiting calls for a runner, oldest first.
    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Marks a claimed call as running; from here on it is not silently run again. `max_attempts` is the tool's.
    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError>;

    /// Extends leases by `lease_ms` from now and tells how each stands, in the order given.
    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<HeldLease>, StoreError>;

    /// Writes the response and finishes the call, in one transaction. Gives the response's id.
    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError>;

    /// Gives a call back to the queue.
    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError>;

    /// Where the request stands.
    async fn call(&self, request: Uuid) -> Result<Call, StoreError>;

    /// Stops a request: one that waits is answered `Cancelled` at once, for one that is claimed or running the runner
    /// is told (the request's record changes: `context.cancel_requested` is true). Cancelling a finished one changes
    /// nothing.
    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError>;

    // --- secrets ---

    /// [`StoreError::Invalid`] on `name` when the tenant has a secret of that name.
    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError>;

    /// By name, each with its grants.
    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError>;

    /// Changes what is named: the value, the hosts, whether tools may read it. The grants stay.
    async fn update_secret(&self, id: Uuid, changes: SecretChanges) -> Result<SecretInfo, StoreError>;

    async fn delete_secret(&self, id: Uuid) -> Result<(), StoreError>;

    /// Lets a tool's record use the secret, for as long as that record exists. The same grant again changes nothing.
    /// [`StoreError::NotFound`] when one of the two is not there, [`StoreError::Invalid`] on `tool_id` when the record
    /// is no tool. From then on only a curator may change or delete the record: who writes a tool's code says what
    /// becomes of the secret.
    async fn grant_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError>;

    /// Ends a grant: for every decryption from now on. [`StoreError::NotFound`] when there is none.
    async fn revoke_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError>;

    /// The value. Who asked, when, why and for which tool's record is written to the audit log in the same
    /// transaction, in which the grant is looked at too: without one [`StoreError::Forbidden`]. Only a curator may ask
    /// for no tool.
    async fn decrypt_secret(&self, id: Uuid, reason: &str, for_tool: Option<Uuid>) -> Result<String, StoreError>;

    // --- the egress log ---

    /// Adds up to [`crate::MAX_EGRESS_ENTRIES`] records to the tenant's egress log. For runners.
    async fn log_egress(&self, _records: Vec<EgressRecord>) -> Result<(), StoreError> {
        Err(no_egress_log())
    }

    /// Entries of the tenant's egress log, newest first. For curators.
    async fn egress_log(&self, _query: &EgressQuery) -> Result<Vec<EgressEntry>, StoreError> {
        Err(no_egress_log())
    }
}

fn no_egress_log() -> StoreError {
    StoreError::Internal("this store keeps no egress log".into())
}

/// What a store answers that keeps no rights.
fn no_rights() -> StoreError {
    StoreError::Internal("this store keeps no grants".into())
}

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

/// Why an operation failed. After an error, nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Also returned for what belongs to another tenant or is not visible to the agent.
    #[error("no {what} with id {id}")]
    NotFound { what: &'static str, id: Uuid },
    #[error("the record is at version {actual}, not at {expected}; read it again and repeat the change")]
    VersionConflict { expected: i64, actual: i64 },
    #[error("{0}")]
    Invalid(Violations),
    #[error("this Idempotency-Key was used before with another body")]
    IdempotencyMismatch,
    /// The lease expired or was taken over, or the call is finished. Stop working on it.
    #[error("the lease on request {request} is lost")]
    LeaseLost { request: Uuid },
    /// The token is missing, expired or forged.
    #[error("{0}")]
    Unauthorized(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("the input is too large: at most {limit} bytes are accepted")]
    TooLarge { limit: usize },
    /// The next events are no longer stored. From number `first` on, none is missing.
    #[error("events were missed, because events are stored for some days only; continue from number {first}")]
    EventsMissed { first: EventNumber },
    /// The tenant's quota is used up. `quota` is `records` or `bytes`.
    #[error(
        "the tenant's quota of {limit} {quota} is used up ({used} are stored); delete what is not needed, or ask the operator \
         for more. Old versions and deleted records count towards bytes for a while"
    )]
    QuotaExceeded { quota: String, limit: u64, used: u64 },
    /// The database is out of disk space.
    #[error("the store is out of disk space; nothing was written")]
    Full,
    /// The database or the server cannot be reached. A retry can help.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// A bug or an unexpected failure. The text is for the log, not for callers.
    #[error("internal error: {0}")]
    Internal(String),
}

impl StoreError {
    /// Whether the same operation can succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Full)
    }
}

impl From<Violations> for StoreError {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

/// Inspects a change before it is written. It receives the current record and the record as it
/// would become, and returns what to write, or an error that refuses the change.
pub type ChangeCheck<'c> = dyn Fn(&Breadcrumb, NewBreadcrumb) -> Result<NewBreadcrumb, StoreError> + Send + Sync + 'c;

/// One tenant's store as one agent sees it: records, calls, events and secrets, and records of
/// other tenants that are shared with the agent.
///
/// - What the agent cannot see is [`StoreError::NotFound`].
/// - Every method is atomic and cancel safe. If its future is dropped, the operation happened
///   completely or not at all.
#[async_trait]
pub trait Breadcrumbs: Send + Sync + 'static {
    // --- records ---

    /// Writes a record and its event in one transaction. A `tool.request.v1` is also queued as a
    /// call.
    ///
    /// `idempotency_key` has 1 to 255 characters and is remembered for 24 hours per agent. A repeat
    /// with the same key and the same record returns the first result. The same key with another
    /// record is [`StoreError::IdempotencyMismatch`].
    async fn create(&self, record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError>;

    /// Returns the full record. Expired and deleted records are [`StoreError::NotFound`].
    ///
    /// If the record's `ttl_type` is `usage` or `hybrid`, this counts one read. The last permitted
    /// read still returns the record. Reads by the runtime itself are not counted: by an agent that
    /// has the role `runner` and not `curator`. Lists, searches, events and the history count no
    /// reads.
    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError>;

    /// Returns the short view. It is transformed for models if the record or the definition of its
    /// schema name says how. Counts as a read, like [`Self::get`].
    ///
    /// This is the view that a `read_context` grant opens, and the view of public records of other
    /// tenants.
    async fn view(&self, id: Uuid) -> Result<BreadcrumbView, StoreError> {
        Ok(self.get(id).await?.into())
    }

    /// Returns all versions, newest first, including the current one.
    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError>;

    /// Changes a record. If it is not at `version`, the result is [`StoreError::VersionConflict`].
    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError>;

    /// Like [`Self::update`], but calls `check` in the transaction that changes the record. This is
    /// for layers over a store in the same process. A store that is reached over a network cannot
    /// do it and returns [`StoreError::Internal`].
    async fn update_checked(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: &ChangeCheck<'_>,
    ) -> Result<Breadcrumb, StoreError> {
        let _ = (id, version, changes, check);
        Err(StoreError::Internal("this store cannot check a change before it is written".into()))
    }

    /// Deletes a record. With `version`, deletes it only if it is at that version. Deleting a
    /// request also cancels its unfinished call.
    ///
    /// [`StoreError::Forbidden`] if only a curator can change the record.
    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError>;

    /// Lists the records that match the query, newest change first.
    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError>;

    /// Searches by words, by meaning, or both. The best match comes first.
    ///
    /// Without a mode, a missing embedder is not an error: the search uses words only, and
    /// [`Found::fallback`] says so. With mode `vector`, [`StoreError::Unavailable`] means that the
    /// model is not ready.
    async fn search(&self, search: &Search) -> Result<Found, StoreError>;

    // --- rights ---

    /// Lists the grants on one record or on all records, newest first. A curator sees all grants of
    /// the tenant. Other agents see the grants on records that they created.
    async fn grants(&self, _record: Option<Uuid>) -> Result<Vec<AclEntry>, StoreError> {
        Err(no_rights())
    }

    /// Opens a record of the tenant to an agent or to a whole tenant, and returns the grant's id.
    /// Each grantee has one grant per record; further actions are added to it.
    ///
    /// Curators and the agent that created the record can do this. For a `tool.response.v1`, only
    /// curators can. Others get [`StoreError::Forbidden`].
    async fn grant(&self, _change: &AclChange) -> Result<Uuid, StoreError> {
        Err(no_rights())
    }

    /// Revokes actions. Returns how many grants changed: 0 or 1. Open event streams stop sending
    /// events of the record within two seconds.
    async fn revoke(&self, _change: &AclChange) -> Result<u64, StoreError> {
        Err(no_rights())
    }

    /// Returns the same store for work that a runner does on behalf of `agent`. It has the runner's
    /// rights to write, limited to the records that the agent can see. Requests and private records
    /// that are created through it belong to the agent.
    ///
    /// [`StoreError::Forbidden`] for every caller that is not a runner.
    fn acting_for(&self, _agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        Err(no_rights())
    }

    // --- events ---

    /// Returns the number of the newest event that a subscriber could have seen, or 0 if there is
    /// none.
    async fn latest_event(&self) -> Result<EventNumber, StoreError>;

    /// Subscribes to events. The stream yields each past event after `options.after` once, in
    /// order, then each new one when it commits. It covers the tenant's records except those that
    /// are private to other agents, and records that are shared with the agent by a `subscribe`
    /// grant. For events that the subscriber does not receive, it yields what is needed to resume
    /// ([`SubscriptionItem`](crate::SubscriptionItem)).
    ///
    /// [`StoreError::Invalid`] for an invalid filter, and for a number beyond the newest event.
    /// Dropping the stream ends the subscription.
    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError>;

    /// Returns every event after this number that the agent can see, whatever its selectors say.
    /// `None` starts with the next event. If events after the number are no longer stored, the
    /// stream ends with [`StoreError::EventsMissed`].
    async fn events(&self, after: Option<EventNumber>) -> Result<EventStream, StoreError> {
        Ok(event::events_of(self.subscribe(SubscribeOptions::all(after)).await?))
    }

    // --- the agent's selectors ---

    /// Adds a selector. From now on the agent's streams carry only events that match one of its
    /// selectors. [`StoreError::Invalid`] if the agent already has
    /// [`MAX_SELECTORS`](crate::MAX_SELECTORS).
    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError>;

    /// Lists the agent's selectors, oldest first.
    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError>;

    /// Replaces a selector. This applies to open streams too.
    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError>;

    /// Deletes a selector. After the last one is deleted, the agent's streams carry all events
    /// again.
    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError>;

    // --- calls ---

    /// Waits until a call is queued through this process, so that a runner in the same process need
    /// not wait for the event. The first wait on a value returns at once; each later one returns
    /// when a call was queued after the previous wait.
    ///
    /// This is a hint, sent right after the commit. Another runner may already have claimed the
    /// call. A call that is queued by another process, or returned to the queue, sends no hint. If
    /// the store cannot send hints, this never returns.
    async fn call_queued(&self) {
        std::future::pending::<()>().await;
    }

    /// Registers a runner in this process. The store asks it about each request of the tenant that
    /// is written through this process. A call that the runner accepts never waits in the queue. A
    /// store that cannot do this never asks.
    fn register_local_runner(&self, runner: Arc<dyn LocalRunner>) -> LocalRunnerGuard {
        LocalRunnerGuard::unregistered(runner)
    }

    /// Claims up to `limit` queued calls for a runner, oldest first.
    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Marks a claimed call as running. From then on, the call is repeated only if attempts are
    /// left: `max_attempts` is the tool's limit.
    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError>;

    /// Extends leases so that they last `lease_ms` from now. Returns the status of each lease, in
    /// the order given.
    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<HeldLease>, StoreError>;

    /// Writes the response and finishes the call, in one transaction. Returns the id of the
    /// response record.
    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError>;

    /// Returns a call to the queue.
    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError>;

    /// Returns the state of a request's call.
    async fn call(&self, request: Uuid) -> Result<Call, StoreError>;

    /// Cancels a request. A queued call gets the response `Cancelled` at once. If the call is
    /// claimed or running, its runner is notified through the request's record, where
    /// `context.cancel_requested` becomes true. Cancelling a finished call changes nothing.
    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError>;

    // --- secrets ---

    /// Creates a secret. [`StoreError::Invalid`] on `name` if the tenant already has a secret with
    /// that name.
    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError>;

    /// Lists the secrets, sorted by name, each with its grants.
    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError>;

    /// Changes the fields that are present: the value, the hosts, or whether tools can read the
    /// value. The grants remain.
    async fn update_secret(&self, id: Uuid, changes: SecretChanges) -> Result<SecretInfo, StoreError>;

    async fn delete_secret(&self, id: Uuid) -> Result<(), StoreError>;

    /// Lets a tool's record use the secret for as long as that record exists. Repeating a grant
    /// changes nothing. From then on only a curator can change or delete the record, because the
    /// author of a tool's code decides how the secret is used.
    ///
    /// [`StoreError::NotFound`] if the secret or the record does not exist. [`StoreError::Invalid`]
    /// on `tool_id` if the record is not a tool.
    async fn grant_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError>;

    /// Revokes a grant, for every decryption from now on. [`StoreError::NotFound`] if there is no
    /// such grant.
    async fn revoke_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError>;

    /// Returns the value of a secret. The same transaction checks the grant and writes an audit
    /// entry: who decrypted it, when, why and for which tool's record.
    ///
    /// Without a grant the result is [`StoreError::Forbidden`]. Only a curator can leave out
    /// `for_tool`.
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
    StoreError::Internal("this store has no egress log".into())
}

fn no_rights() -> StoreError {
    StoreError::Internal("this store has no grants".into())
}

//! The trait [`Records`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, BreadcrumbView, Created,
    NewBreadcrumb, Search, SearchResults, StoreError,
};

/// Inspects a change before it is written. It receives the current record and the record as it
/// would become, and returns what to write, or an error that refuses the change.
pub type ChangeCheck<'c> = dyn Fn(&Breadcrumb, NewBreadcrumb) -> Result<NewBreadcrumb, StoreError> + Send + Sync + 'c;

/// Records: create, read, change, delete, list, search.
#[async_trait]
pub trait Records: Send + Sync + 'static {
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

    /// Returns the record's version, without counting a read. `is_full`: for an agent that can read
    /// all of the record, and not only its view.
    async fn version(&self, id: Uuid, _is_full: bool) -> Result<i64, StoreError> {
        let newest = self.history(id).await?.into_iter().next();
        Ok(newest.ok_or(StoreError::NotFound { what: "breadcrumb", id })?.version)
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
    /// [`StoreError::Forbidden`] if only others can change the record: a tool only its author or a
    /// curator, a tool with secrets only a curator.
    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError>;

    /// Lists the records that match the query, newest change first.
    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError>;

    /// Searches by words, by meaning, or both. The best match comes first.
    ///
    /// Without a mode, a missing embedder is not an error: the search uses words only, and
    /// [`SearchResults::fallback`] says so. With mode `vector`, [`StoreError::Unavailable`] means
    /// that the model is not ready.
    async fn search(&self, search: &Search) -> Result<SearchResults, StoreError>;
}

//! The trait [`Secrets`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{NewSecret, SecretChanges, SecretInfo, StoreError};

/// Secrets and their grants to tools.
#[async_trait]
pub trait Secrets: Send + Sync + 'static {
    /// Creates a secret. [`StoreError::Invalid`] on `name` if the tenant already has a secret with
    /// that name.
    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError>;

    /// Lists the secrets, sorted by name, each with its grants.
    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError>;

    /// Changes the fields that are present: the value, the hosts, or whether tools can read the
    /// value. The grants remain. If the secret is not at the version that is named, the result is
    /// [`StoreError::VersionConflict`].
    ///
    /// Only a curator can leave out `tool_id`. With it the value is renewed for a tool, as its
    /// runner does; without a grant the result is [`StoreError::Forbidden`].
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
}

//! The trait [`Secrets`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{NewSecret, SecretChanges, SecretInfo, StoreError};

/// Secrets and their grants to tools. By default a store has none.
#[async_trait]
pub trait Secrets: Send + Sync + 'static {
    /// Creates a secret. [`StoreError::Invalid`] on `name` if the tenant already has a secret with
    /// that name.
    async fn create_secret(&self, _secret: NewSecret) -> Result<SecretInfo, StoreError> {
        Err(no_secrets())
    }

    /// Lists the secrets, sorted by name, each with its grants.
    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError> {
        Ok(Vec::new())
    }

    /// Changes the fields that are present: the value, the hosts, or whether tools can read the
    /// value. The grants remain. If the secret is not at the version that is named, the result is
    /// [`StoreError::VersionConflict`].
    ///
    /// Only a curator can leave out `tool_id`. With it the value is renewed for a tool, as its
    /// runner does; without a grant the result is [`StoreError::Forbidden`].
    async fn update_secret(&self, _id: Uuid, _changes: SecretChanges) -> Result<SecretInfo, StoreError> {
        Err(no_secrets())
    }

    async fn delete_secret(&self, _id: Uuid) -> Result<(), StoreError> {
        Err(no_secrets())
    }

    /// Lets a tool's record use the secret for as long as that record exists. Repeating a grant
    /// changes nothing. From then on only a curator can change or delete the record, because the
    /// author of a tool's code decides how the secret is used.
    ///
    /// [`StoreError::NotFound`] if the secret or the record does not exist. [`StoreError::Invalid`]
    /// on `tool_id` if the record is not a tool.
    async fn grant_secret(&self, _id: Uuid, _tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        Err(no_secrets())
    }

    /// Revokes a grant, for every decryption from now on. [`StoreError::NotFound`] if there is no
    /// such grant.
    async fn revoke_secret(&self, _id: Uuid, _tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        Err(no_secrets())
    }

    /// Returns the value of a secret. The same transaction checks the grant and writes an audit
    /// entry: who decrypted it, when, why and for which tool's record.
    ///
    /// Without a grant the result is [`StoreError::Forbidden`]. Only a curator can leave out
    /// `for_tool`.
    async fn decrypt_secret(&self, _id: Uuid, _reason: &str, _for_tool: Option<Uuid>) -> Result<String, StoreError> {
        Err(no_secrets())
    }
}

fn no_secrets() -> StoreError {
    StoreError::Internal("this store has no secrets".into())
}

//! Secrets and their grants to tools.

use async_trait::async_trait;
use rcrt_breadcrumb::{NewSecret, SecretChanges, SecretInfo, Secrets, StoreError};
use uuid::Uuid;

use super::TenantStore;
use crate::database::failure::retrying;
use crate::secrets;

#[async_trait]
impl Secrets for TenantStore {
    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError> {
        secret.check()?;
        let hosts = rcrt_breadcrumb::secret_hosts(&secret.hosts)?;
        Ok(secrets::create(self.begin().await?, self.actor.agent, &self.store.cipher, &secret, &hosts).await?)
    }

    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError> {
        Ok(secrets::list(&mut self.begin().await?).await?)
    }

    async fn update_secret(&self, id: Uuid, changes: SecretChanges) -> Result<SecretInfo, StoreError> {
        changes.check()?;
        if changes.tool_id.is_none() && !self.actor.is_curator {
            let why =
                "only a curator can change a secret without a tool; name the record of the tool that renews its value";
            return Err(StoreError::Forbidden(why.into()));
        }
        let hosts = changes.hosts.as_deref().map(rcrt_breadcrumb::secret_hosts).transpose()?;
        let (tx, cipher) = (self.begin().await?, &self.store.cipher);
        Ok(secrets::update(tx, self.actor.agent, cipher, id, &changes, hosts.as_deref()).await?)
    }

    async fn delete_secret(&self, id: Uuid) -> Result<(), StoreError> {
        Ok(secrets::delete(self.begin().await?, self.actor.agent, id).await?)
    }

    async fn grant_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        retrying!(async { secrets::grant(self.begin().await?, self.actor.agent, id, tool_id).await })
    }

    async fn revoke_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        Ok(secrets::revoke(self.begin().await?, self.actor.agent, id, tool_id).await?)
    }

    async fn decrypt_secret(&self, id: Uuid, reason: &str, for_tool: Option<Uuid>) -> Result<String, StoreError> {
        secrets::check_reason(reason)?;
        if for_tool.is_none() && !self.actor.is_curator {
            let why = "only a curator can decrypt a secret without a tool; name the record of the tool that needs it";
            return Err(StoreError::Forbidden(why.into()));
        }
        let (tx, cipher) = (self.begin().await?, &self.store.cipher);
        Ok(secrets::decrypt(tx, self.actor.agent, cipher, id, reason, for_tool).await?)
    }
}

//! The server's operations beyond the trait: agents, tokens, health.

use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, NewAgent, NewAgentKey, Profile, PublishRule, Role, StoreError, TenantInfo,
    TenantQuotas, TenantUsage, TokenInfo, TokenQuery,
};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Client,
    request::{Request, RetryPolicy},
};

/// The identity of an agent, its key, and what its token should contain.
#[derive(Serialize)]
pub struct TokenRequest {
    pub owner_id: Uuid,
    pub agent_id: Uuid,
    pub agent_key: String,
    /// A subset of the agent's roles; all of them when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<Role>>,
    /// The agent's own when absent. An agent of the profile main can ask for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The validity in seconds; an hour when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_sec: Option<u64>,
}

#[derive(Deserialize)]
pub struct Token {
    pub token: String,
    /// The id by which the token can be revoked.
    pub id: Uuid,
    pub owner_id: Uuid,
    pub agent_id: Uuid,
    pub roles: Vec<Role>,
    #[serde(default)]
    pub profile: Profile,
    /// Seconds since 1970.
    pub exp: u64,
    /// Seconds from the response on.
    pub expires_in: u64,
}

/// A ticket for one sign-in to the dashboard.
#[derive(Debug, Deserialize)]
pub struct SignInTicket {
    pub ticket: String,
    /// Seconds in which it must be used.
    pub expires_in: u64,
}

#[derive(Debug, Deserialize)]
pub struct Health {
    pub status: String,
    pub version: String,
}

/// A tenant, with its quotas and their use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantDetails {
    #[serde(flatten)]
    pub tenant: TenantInfo,
    pub usage: TenantUsage,
}

/// Settings of a tenant. What is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TenantSettings {
    pub name: String,
    /// All quotas: a quota that is `None` becomes the server's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotas: Option<TenantQuotas>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish: Option<PublishRule>,
}

/// The response of a route that has no other. A different server does not send it.
#[derive(Deserialize)]
pub(crate) struct Acknowledged {
    #[serde(rename = "ok", alias = "requeued")]
    _ok: bool,
}

impl Client {
    /// Asks the server whether it and its database are healthy.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let request = Request::new(Method::GET, &["health"], RetryPolicy::IfNotProcessed);
        Ok(self.send(Request { anonymous: true, ..request }).await?)
    }

    /// A token for the agent that the key belongs to; [`StoreError::Unauthorized`] if it is not the
    /// agent's key.
    pub async fn request_token(&self, request: &TokenRequest) -> Result<Token, StoreError> {
        let sent = Request::new(Method::POST, &["auth", "token"], RetryPolicy::Idempotent).json(request)?;
        Ok(self.send(Request { anonymous: true, ..sent }).await?)
    }

    /// A ticket that signs a browser in once, with the rights of this client's token.
    pub async fn sign_in_ticket(&self) -> Result<SignInTicket, StoreError> {
        Ok(self.send(Request::new(Method::POST, &["auth", "ticket"], RetryPolicy::Idempotent)).await?)
    }

    /// Creates an agent in the caller's tenant and returns its key. Requires a curator.
    pub async fn create_agent(&self, agent: NewAgent) -> Result<NewAgentKey, StoreError> {
        Ok(self.send(Request::new(Method::POST, &["agents"], RetryPolicy::IfNotProcessed).json(&agent)?).await?)
    }

    /// Creates the agent with this id in the caller's tenant, or changes it. Returns the key of a
    /// new agent. Requires a curator.
    pub async fn put_agent(&self, id: Uuid, agent: &AgentRegistration) -> Result<Option<String>, StoreError> {
        #[derive(Deserialize)]
        struct Registered {
            agent_key: Option<String>,
        }
        let id = id.to_string();
        let path = ["agents", &id];
        // A repetition could not return the key again.
        let registered: Registered =
            self.send(Request::new(Method::POST, &path, RetryPolicy::IfNotProcessed).json(agent)?).await?;
        Ok(registered.agent_key)
    }

    /// All tenants, for an operator's token; else the caller's own.
    pub async fn tenants(&self) -> Result<Vec<TenantInfo>, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["tenants"], RetryPolicy::Idempotent)).await?)
    }

    /// Creates the tenant with this id, in this cell, or renames it. Returns the first agent of a
    /// new tenant, with its key. Requires an operator's token; a curator can rename its own tenant.
    pub async fn put_tenant(
        &self,
        id: Uuid,
        name: &str,
        cell: Option<&str>,
    ) -> Result<Option<NewAgentKey>, StoreError> {
        #[derive(Deserialize)]
        struct PutTenant {
            first_agent: Option<NewAgentKey>,
        }
        let id = id.to_string();
        let path = ["tenants", &id];
        let mut body = serde_json::json!({"name": name});
        if let Some(cell) = cell {
            body["cell"] = cell.into();
        }
        let done: PutTenant =
            self.send(Request::new(Method::PUT, &path, RetryPolicy::IfNotProcessed).json(&body)?).await?;
        Ok(done.first_agent)
    }

    /// The tenant with its quotas and their use.
    pub async fn tenant(&self, id: Uuid) -> Result<TenantDetails, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["tenants", &id.to_string()], RetryPolicy::Idempotent)).await?)
    }

    /// Changes what is set of the tenant's settings. Quotas require an operator's token.
    pub async fn set_tenant(&self, id: Uuid, settings: &TenantSettings) -> Result<(), StoreError> {
        let id = id.to_string();
        let path = ["tenants", &id];
        let request = Request::new(Method::PUT, &path, RetryPolicy::Idempotent).json(settings)?;
        self.send::<Acknowledged>(request).await?;
        Ok(())
    }

    /// Deletes the tenant with all its data. Requires an operator's token.
    pub async fn delete_tenant(&self, id: Uuid) -> Result<(), StoreError> {
        self.delete_at(&["tenants", &id.to_string()], None).await
    }

    pub async fn agents(&self) -> Result<Vec<AgentInfo>, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["agents"], RetryPolicy::Idempotent)).await?)
    }

    pub async fn agent(&self, id: Uuid) -> Result<AgentInfo, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["agents", &id.to_string()], RetryPolicy::Idempotent)).await?)
    }

    /// Gives the agent a new key, and returns it. The old one is invalid from then on. Requires a
    /// curator.
    pub async fn rotate_agent_key(&self, id: Uuid) -> Result<NewAgentKey, StoreError> {
        let id = id.to_string();
        let path = ["agents", &id, "rotate-key"];
        // A repetition could not return the first key.
        Ok(self.send(Request::new(Method::POST, &path, RetryPolicy::IfNotProcessed)).await?)
    }

    /// Tokens that have not expired, newest first: of all agents for a curator, else the caller's
    /// own.
    pub async fn tokens(&self, query: &TokenQuery) -> Result<Vec<TokenInfo>, StoreError> {
        #[derive(Deserialize)]
        struct Page {
            tokens: Vec<TokenInfo>,
        }
        let request = Request::new(Method::GET, &["auth", "tokens"], RetryPolicy::Idempotent).selecting(query)?;
        Ok(self.send::<Page>(request).await?.tokens)
    }

    pub async fn delete_agent(&self, id: Uuid) -> Result<(), StoreError> {
        self.delete_at(&["agents", &id.to_string()], None).await
    }

    /// Deletes the resource at a path. If a repetition finds nothing, the first request deleted it.
    pub(crate) async fn delete_at(&self, path: &[&str], version: Option<i64>) -> Result<(), StoreError> {
        let mut request = Request::new(Method::DELETE, path, RetryPolicy::Idempotent);
        if let Some(version) = version {
            request = request.header("if-match", &format!("\"{version}\""))?;
        }
        match self.send::<Acknowledged>(request).await {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.maybe_processed && matches!(refusal.error, StoreError::NotFound { .. }) => Ok(()),
            Err(refusal) => Err(refusal.error),
        }
    }
}

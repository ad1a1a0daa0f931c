//! At the shutdown: the running calls whose callers wait on an event stream.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use rcrt_breadcrumb::{CallQuery, CallState, Identity, MAX_CALLS, Profile, Role, StoreError};
use uuid::Uuid;

use crate::ServerState;

/// How often the calls are looked at.
const INTERVAL: Duration = Duration::from_millis(250);

impl ServerState {
    /// Waits until no agent with an open event stream has a running call. Without a limit; drop the
    /// future to stop.
    pub async fn streamed_calls_ended(&self) {
        join_all(self.streams.tenants().into_iter().map(|owner_id| self.ended_in(owner_id))).await;
    }

    async fn ended_in(&self, owner_id: Uuid) {
        loop {
            let agents = self.streams.agents(owner_id);
            match self.has_running_call(owner_id, &agents).await {
                Ok(true) => tokio::time::sleep(INTERVAL).await,
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, "the running calls are not known, so the shutdown does not wait for them");
                    return;
                }
            }
        }
    }

    /// Looks at no more than [`MAX_CALLS`] calls of each state.
    async fn has_running_call(&self, owner_id: Uuid, agents: &HashSet<Uuid>) -> Result<bool, StoreError> {
        if agents.is_empty() {
            return Ok(false);
        }
        // No agent: a runner sees all calls of its tenant.
        let (agent_id, roles, profile) = (Uuid::nil(), vec![Role::Runner], Profile::Main);
        let store = self.tenancy.acting_as(Identity { owner_id, agent_id, roles, profile });
        // Claimed before running: otherwise a call that starts between the lists is in neither.
        for state in [CallState::Claimed, CallState::Running] {
            let query = CallQuery { state: Some(state), limit: MAX_CALLS, ..CallQuery::default() };
            let page = store.list_calls(&query).await?;
            if page.calls.iter().any(|call| call.agent_id.is_some_and(|agent| agents.contains(&agent))) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

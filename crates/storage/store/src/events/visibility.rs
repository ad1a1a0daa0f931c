//! Who can see an event. The feed carries what the decision needs, so that it takes no query per
//! event.

use std::time::{Duration, Instant};

use rcrt_breadcrumb::{RequestKind, schema_names};
use uuid::Uuid;

use crate::rights::actor::Actor;

/// A grant that was read longer ago is checked again before an event is delivered under it. A
/// subscriber that is behind can see events for this long after the grant was revoked.
const GRANT_RECHECK_AFTER: Duration = Duration::from_secs(1);

/// The creator of the event's record, and who else can see it.
#[derive(Debug, Clone)]
pub(super) struct EventVisibility {
    pub(super) scope: VisibilityScope,
    pub(super) created_by: Option<Uuid>,
    /// Agents with access, and tenants whose agents all have access.
    pub(super) readers: Vec<Uuid>,
    pub(super) read_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VisibilityScope {
    /// All agents of the tenant.
    Team,
    Private,
    /// Another tenant's record.
    OtherTenant,
}

/// The subscriber, and what it can see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubscriberRights {
    pub(super) tenant: Uuid,
    agent: Uuid,
    sees_all: bool,
    /// A runner acts on what it receives, and only in its own tenant.
    sees_other_tenants: bool,
    /// Only events of its own requests, and of their logs, progress and responses.
    only_own_calls: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventAccess {
    Allowed,
    /// Only if the grant still exists.
    IfStillGranted,
    /// Only if the agent wrote the request that the record answers.
    IfRequester,
    Denied,
}

impl SubscriberRights {
    pub(crate) fn new(tenant: Uuid, actor: Actor, sees_all: bool) -> Self {
        let (agent, only_own_calls) = (actor.on_behalf_of, actor.reads_only_own_calls);
        Self { tenant, agent, sees_all, sees_other_tenants: !actor.is_plain_runner(), only_own_calls }
    }

    /// The access of an agent that is only a caller. A response names no requester, so the store is
    /// asked.
    fn access_to_own_call(&self, schema_name: Option<&str>, visibility: &EventVisibility) -> EventAccess {
        match schema_name {
            _ if visibility.scope == VisibilityScope::OtherTenant => EventAccess::Denied,
            Some(schema_names::TOOL_REQUEST | schema_names::TOOL_LOG | schema_names::TOOL_PROGRESS)
                if visibility.created_by == Some(self.agent) =>
            {
                EventAccess::Allowed
            }
            name if RequestKind::is_response(name) => EventAccess::IfRequester,
            _ => EventAccess::Denied,
        }
    }

    pub(super) fn access_to(&self, schema_name: Option<&str>, visibility: &EventVisibility) -> EventAccess {
        if self.only_own_calls {
            return self.access_to_own_call(schema_name, visibility);
        }
        let by_itself = match visibility.scope {
            VisibilityScope::Team => true,
            VisibilityScope::Private => self.sees_all || visibility.created_by == Some(self.agent),
            VisibilityScope::OtherTenant if !self.sees_other_tenants => return EventAccess::Denied,
            VisibilityScope::OtherTenant => false,
        };
        if by_itself {
            EventAccess::Allowed
        } else if !visibility.readers.iter().any(|reader| *reader == self.agent || *reader == self.tenant) {
            EventAccess::Denied
        } else if visibility.read_at.elapsed() < GRANT_RECHECK_AFTER {
            EventAccess::Allowed
        } else {
            EventAccess::IfStillGranted
        }
    }

    pub(super) fn agent(&self) -> Uuid {
        self.agent
    }

    pub(super) fn sees_all(&self) -> bool {
        self.sees_all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rcrt_breadcrumb::{Identity, Profile, Role};

    use super::*;

    fn rights(agent: u128, roles: &[Role]) -> SubscriberRights {
        let (tenant, agent) = (Uuid::from_u128(1), Uuid::from_u128(agent));
        let identity = Identity { owner_id: tenant, agent_id: agent, roles: roles.to_vec(), profile: Profile::Main };
        let actor = Actor::of(&identity);
        SubscriberRights::new(tenant, actor, actor.sees_all())
    }

    #[test]
    fn a_grant_read_long_ago_is_checked_again() {
        let agent = rights(7, &[Role::Subscriber]);
        let long_ago = Instant::now().checked_sub(GRANT_RECHECK_AFTER).unwrap();
        let visibility = |readers: &[u128], read_at| EventVisibility {
            scope: VisibilityScope::Private,
            created_by: Some(Uuid::from_u128(9)),
            readers: readers.iter().copied().map(Uuid::from_u128).collect(),
            read_at,
        };
        assert_eq!(agent.access_to(None, &visibility(&[], Instant::now())), EventAccess::Denied);
        assert_eq!(agent.access_to(None, &visibility(&[8], Instant::now())), EventAccess::Denied);
        for reader in [7, 1] {
            assert_eq!(agent.access_to(None, &visibility(&[reader], Instant::now())), EventAccess::Allowed);
            assert_eq!(agent.access_to(None, &visibility(&[reader], long_ago)), EventAccess::IfStillGranted);
        }
        // Its own records, and records that all agents can see, need no grant.
        assert_eq!(rights(9, &[]).access_to(None, &visibility(&[], long_ago)), EventAccess::Allowed);
        assert_eq!(rights(5, &[Role::Curator]).access_to(None, &visibility(&[], long_ago)), EventAccess::Allowed);
    }

    #[test]
    fn a_runner_receives_only_its_own_tenants_events() {
        let of_other_tenant = EventVisibility {
            scope: VisibilityScope::OtherTenant,
            created_by: None,
            readers: vec![Uuid::from_u128(1)],
            read_at: Instant::now(),
        };
        assert_eq!(rights(7, &[Role::Runner]).access_to(None, &of_other_tenant), EventAccess::Denied);
        assert_eq!(rights(7, &[Role::Subscriber]).access_to(None, &of_other_tenant), EventAccess::Allowed);
        assert_eq!(rights(7, &Role::ALL).access_to(None, &of_other_tenant), EventAccess::Allowed);
    }
}

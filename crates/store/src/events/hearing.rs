//! Who may hear of an event. The feed carries it with all that takes, so that nobody asks the database for each.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::author::Author;

/// A grant that was seen longer ago than this is looked up again before an event is given out by it: so long a
/// subscriber that is behind may hear of what was closed to it.
const GRANT_HOLDS: Duration = Duration::from_secs(1);

/// Whose the event's record is, and who else may hear.
#[derive(Debug, Clone)]
pub(super) struct Hearing {
    pub(super) scope: Scope,
    pub(super) created_by: Option<Uuid>,
    /// Agents, and tenants of which all agents were let in.
    pub(super) readers: Vec<Uuid>,
    pub(super) read_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All agents of the tenant.
    Team,
    Private,
    /// Another tenant's record.
    Abroad,
}

/// Who listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listener {
    pub(super) tenant: Uuid,
    agent: Uuid,
    sees_all: bool,
    /// A runner acts upon what it hears, and only on its own tenant's.
    hears_abroad: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Hears,
    /// If the grant still stands.
    HeardByGrant,
    Nothing,
}

impl Listener {
    pub(crate) fn new(tenant: Uuid, author: Author, sees_all: bool) -> Self {
        Self { tenant, agent: author.voice, sees_all, hears_abroad: !author.is_mere_runner() }
    }

    pub(super) fn hears(&self, hearing: &Hearing) -> Verdict {
        let by_itself = match hearing.scope {
            Scope::Team => true,
            Scope::Private => self.sees_all || hearing.created_by == Some(self.agent),
            Scope::Abroad if !self.hears_abroad => return Verdict::Nothing,
            Scope::Abroad => false,
        };
        if by_itself {
            Verdict::Hears
        } else if !hearing.readers.iter().any(|reader| *reader == self.agent || *reader == self.tenant) {
            Verdict::Nothing
        } else if hearing.read_at.elapsed() < GRANT_HOLDS {
            Verdict::Hears
        } else {
            Verdict::HeardByGrant
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

    use breadcrumb::{Identity, Profile, Role};

    use super::*;

    fn listener(agent: u128, roles: &[Role]) -> Listener {
        let (tenant, agent) = (Uuid::from_u128(1), Uuid::from_u128(agent));
        let identity = Identity { owner_id: tenant, agent_id: agent, roles: roles.to_vec(), profile: Profile::Main };
        let author = Author::of(&identity);
        Listener::new(tenant, author, author.sees_all())
    }

    #[test]
    fn a_grant_seen_long_ago_is_asked_for_again() {
        let agent = listener(7, &[Role::Subscriber]);
        let long_ago = Instant::now().checked_sub(GRANT_HOLDS).unwrap();
        let hearing = |readers: &[u128], read_at| Hearing {
            scope: Scope::Private,
            created_by: Some(Uuid::from_u128(9)),
            readers: readers.iter().copied().map(Uuid::from_u128).collect(),
            read_at,
        };
        assert_eq!(agent.hears(&hearing(&[], Instant::now())), Verdict::Nothing);
        assert_eq!(agent.hears(&hearing(&[8], Instant::now())), Verdict::Nothing);
        for reader in [7, 1] {
            assert_eq!(agent.hears(&hearing(&[reader], Instant::now())), Verdict::Hears);
            assert_eq!(agent.hears(&hearing(&[reader], long_ago)), Verdict::HeardByGrant);
        }
        // What is its own, or told to all, needs no grant.
        assert_eq!(listener(9, &[]).hears(&hearing(&[], long_ago)), Verdict::Hears);
        assert_eq!(listener(5, &[Role::Curator]).hears(&hearing(&[], long_ago)), Verdict::Hears);
    }

    #[test]
    fn a_runner_hears_its_own_tenant_alone() {
        let abroad = Hearing {
            scope: Scope::Abroad,
            created_by: None,
            readers: vec![Uuid::from_u128(1)],
            read_at: Instant::now(),
        };
        assert_eq!(listener(7, &[Role::Runner]).hears(&abroad), Verdict::Nothing);
        assert_eq!(listener(7, &[Role::Subscriber]).hears(&abroad), Verdict::Hears);
        assert_eq!(listener(7, &Role::ALL).hears(&abroad), Verdict::Hears);
    }
}

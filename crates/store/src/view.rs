//! Whose eyes a transaction has: what the policies of row-level security go by.

use uuid::Uuid;

/// What a transaction sees of one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) owner_id: Uuid,
    pub(crate) eyes: Eyes,
    pub(crate) wish: Wish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eyes {
    /// Sees all of the tenant: curators, runners, the store's own work.
    All,
    /// An agent of the tenant.
    Agent(Uuid),
    /// An agent of another tenant.
    Guest { agent: Uuid, tenant: Uuid },
}

/// What the transaction is for, where it takes a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    View,
    Read,
    Update,
    Delete,
}

impl Wish {
    /// The granted actions that open a record for it.
    pub(crate) fn actions(self) -> &'static [&'static str] {
        match self {
            Self::View => &["read_context", "read_full"],
            Self::Read => &["read_full"],
            Self::Update => &["update"],
            Self::Delete => &["delete"],
        }
    }
}

impl View {
    /// Of the store's own work.
    pub(crate) fn all(owner_id: Uuid) -> Self {
        Self { owner_id, eyes: Eyes::All, wish: Wish::Read }
    }

    /// The statements that give a transaction these eyes. All settings are named: there may be those of a transaction
    /// whose begin was given up.
    pub(crate) fn settings(&self) -> String {
        // Uuids are hexadecimal digits and hyphens, and the rest is ours: nothing can break out of the quotes.
        let (agent, guest) = match self.eyes {
            Eyes::All => ("*".to_owned(), String::new()),
            Eyes::Agent(agent) => (agent.to_string(), String::new()),
            Eyes::Guest { agent, tenant } => (agent.to_string(), tenant.to_string()),
        };
        let actions = self.wish.actions().join(",");
        format!(
            "SET LOCAL rcrt.tenant = '{}'; SET LOCAL rcrt.agent = '{agent}'; SET LOCAL rcrt.guest = '{guest}'; \
             SET LOCAL rcrt.actions = '{{{actions}}}'",
            self.owner_id
        )
    }
}

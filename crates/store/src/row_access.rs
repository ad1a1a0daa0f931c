//! The principal of a transaction and the permission that it needs: the inputs of the row-level
//! security policies.

use uuid::Uuid;

/// What a transaction sees of one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowAccess {
    pub(crate) owner_id: Uuid,
    pub(crate) principal: Principal,
    pub(crate) permission: RequiredPermission,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Principal {
    /// Sees all of the tenant: curators, runners, the store's own work.
    Unrestricted,
    /// An agent of the tenant.
    Agent(Uuid),
    /// An agent of another tenant.
    Guest { agent: Uuid, tenant: Uuid },
}

/// What the transaction is for, where it takes a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredPermission {
    View,
    Read,
    Update,
    Delete,
}

impl RequiredPermission {
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

impl RowAccess {
    /// Of the store's own work.
    pub(crate) fn unrestricted(owner_id: Uuid) -> Self {
        Self { owner_id, principal: Principal::Unrestricted, permission: RequiredPermission::Read }
    }

    /// The statements that give a transaction this access. All settings are set: values of a
    /// transaction whose begin was given up may be left.
    pub(crate) fn settings(&self) -> String {
        // Uuids are hexadecimal digits and hyphens, and the rest is ours: nothing can break out of the quotes.
        let (agent, guest) = match self.principal {
            Principal::Unrestricted => ("*".to_owned(), String::new()),
            Principal::Agent(agent) => (agent.to_string(), String::new()),
            Principal::Guest { agent, tenant } => (agent.to_string(), tenant.to_string()),
        };
        let actions = self.permission.actions().join(",");
        format!(
            "SET LOCAL rcrt.tenant = '{}'; SET LOCAL rcrt.agent = '{agent}'; SET LOCAL rcrt.guest = '{guest}'; \
             SET LOCAL rcrt.actions = '{{{actions}}}'",
            self.owner_id
        )
    }
}

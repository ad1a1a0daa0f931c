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
    /// Sees all records of the tenant: curators, runners, the store's own work.
    Unrestricted,
    /// An agent of the tenant.
    Agent(Uuid),
    /// An agent that is only a caller: sees its requests and their responses.
    Caller(Uuid),
    /// A tool that runs for such an agent: also sees what was created for that agent.
    ToolOfCaller(Uuid),
    /// An agent of another tenant.
    Guest { agent: Uuid, tenant: Uuid },
}

/// What the transaction does with a record. It decides which grants apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredPermission {
    View,
    Read,
    Update,
    Delete,
}

impl RequiredPermission {
    /// The granted actions that permit it.
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
    /// For the store's own work.
    pub(crate) fn unrestricted(owner_id: Uuid) -> Self {
        Self { owner_id, principal: Principal::Unrestricted, permission: RequiredPermission::Read }
    }

    /// The statements that give a transaction this access. They set every setting, because an
    /// interrupted transaction may have left values.
    pub(crate) fn settings(&self) -> String {
        // UUIDs have only hexadecimal digits and hyphens, and the rest is constant, so the quoting
        // is safe.
        let (agent, guest, own_calls) = match self.principal {
            Principal::Unrestricted => ("*".to_owned(), String::new(), "off"),
            Principal::Agent(agent) => (agent.to_string(), String::new(), "off"),
            Principal::Caller(agent) => (agent.to_string(), String::new(), "on"),
            Principal::ToolOfCaller(agent) => (agent.to_string(), String::new(), "created"),
            Principal::Guest { agent, tenant } => (agent.to_string(), tenant.to_string(), "off"),
        };
        let actions = self.permission.actions().join(",");
        format!(
            "SET LOCAL rcrt.tenant = '{}'; SET LOCAL rcrt.agent = '{agent}'; SET LOCAL rcrt.guest = '{guest}'; \
             SET LOCAL rcrt.own_calls = {own_calls}; SET LOCAL rcrt.actions = '{{{actions}}}'",
            self.owner_id
        )
    }
}

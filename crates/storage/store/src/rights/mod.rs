//! Who can do what: agents and their tokens, grants of records, and the audit log.

pub(crate) mod acl;
pub(crate) mod actor;
pub(crate) mod agents;
pub(crate) mod audit;
pub(crate) mod role_cache;
pub(crate) mod sessions;
pub(crate) mod shares;
pub(crate) mod tokens;

//! Who is calling: tokens, agents, and what each route requires.

pub(crate) mod access;
pub(crate) mod agent_cache;
pub(crate) mod host_policy;
pub(crate) mod revocation;
pub(crate) mod token;
pub(crate) mod token_keys;
pub(crate) mod token_uses;
pub(crate) mod verified_tokens;

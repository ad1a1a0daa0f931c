//! The rows of records: their columns, their words for search, and how many each tenant and each
//! agent's queue can have.

pub(crate) mod queue_limit;
pub(crate) mod quotas;
pub(crate) mod row;
pub(crate) mod search_text;
pub(crate) mod tool_quotas;
mod version;

pub(crate) use self::version::{find, write_version};

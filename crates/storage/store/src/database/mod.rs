//! The database: its connections, a tenant's transactions, and the errors of both.

pub(crate) mod batches;
pub(crate) mod cluster;
pub(crate) mod commit;
pub(crate) mod connections;
pub(crate) mod failure;
pub(crate) mod from_row;
pub(crate) mod migrating;
pub(crate) mod open_error;
mod pool;
mod replica;
pub(crate) mod row_access;
pub(crate) mod transaction;

pub(crate) use self::pool::{ACQUIRE_TIMEOUT, Database, connect_options};

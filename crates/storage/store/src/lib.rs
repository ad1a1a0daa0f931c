//! The store on Postgres: records and their history, the queue of calls, numbered events, tenants,
//! secrets, search and the queue of webhook deliveries.
//!
//! [`Store`] opens the database and implements [`rcrt_breadcrumb::Tenancy`]. For one agent it returns a
//! [`rcrt_breadcrumb::Breadcrumbs`]. Every transaction runs as the role `rcrt_app` under row-level
//! security, in the one tenant that it names when it begins.
//!
//! This crate deliberately does not know HTTP, tools' definitions, or what runs tools. It does not
//! check roles: the server decides who can call what. The caller provides the Postgres.
//!
//! Begin with `tenant_store.rs` (each operation of an agent), `transaction.rs`, `records.rs`, and
//! `calls/mod.rs` (the queue).

mod acl;
mod actor;
mod agents;
mod audit;
mod calls;
mod cluster;
mod connections;
mod context_reads;
mod egress_log;
mod events;
mod expiry;
mod failure;
mod following;
mod from_row;
mod history;
mod housekeeping;
mod idempotency;
mod listing;
mod migrating;
mod open;
mod options;
mod prune;
mod purge;
mod quotas;
mod records;
mod restoring;
mod role_cache;
mod row;
mod row_access;
mod search;
mod secrets;
mod selector_sql;
mod selectors;
mod semantic_search;
mod shares;
mod store;
mod tenancy;
mod tenant_store;
mod tokens;
mod transaction;
mod transfer;
mod webhooks;
mod writing;

pub use audit::AuditEntry;
pub use cluster::{create_app_role, has_restored_owner, server_version};
pub use migrating::{MIGRATOR, migrate};
pub use open::OpenError;
pub use options::{SecretsKey, StoreOptions};
pub use restoring::{
    BackupFacts, RESTORED_OWNER, backup_facts, close_restored_owner, count_events_on, delete_unreadable_secrets,
    empty_for_restore, is_empty,
};
pub use secrets::{Rewrapped, SecretsKeys, rewrap_secrets, secrets_by_key};
pub use semantic_search::{EmbeddingOptions, EmbeddingState};
pub use store::Store;
pub use transfer::{Export, Head, Imported, Line, OldVersion, OnConflict, TransferError, export_records, import_lines};

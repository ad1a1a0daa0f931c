//! The store on Postgres: records and their history, the queue of calls, numbered events, tenants,
//! secrets, search and the queue of webhook deliveries.
//!
//! [`Store`] opens the database and implements [`rcrt_breadcrumb::Tenancy`]. For one agent it
//! returns a [`rcrt_breadcrumb::Breadcrumbs`]. Every transaction runs as the role `rcrt_app` under
//! row-level security, in the one tenant that it names when it begins.
//!
//! This crate deliberately does not know HTTP, tools' definitions, or what runs tools. It does not
//! check roles: the server decides who can call what. The caller provides the Postgres.
//!
//! Begin with `tenant_store.rs` (each operation of an agent) and `store.rs` (the parts). Each part
//! is a folder: `database`, `rights`, `secrets`, `rows`, `events`, `writing`, `calls` (the queue),
//! `records`, `search`, `webhooks`, `transfer`. A folder imports only itself and those before it in
//! this list, which `tests/it/groups.rs` checks.

mod calls;
mod database;
mod events;
mod housekeeping;
mod open;
mod options;
mod records;
mod retention;
mod rights;
mod rows;
mod search;
mod secrets;
mod store;
mod tenancy;
mod tenant_store;
mod transfer;
mod webhooks;
mod writing;

pub use database::cluster::{StoredSize, create_app_role, server_version, stored_sizes};
pub use database::migrating::{MIGRATOR, migrate};
pub use database::open_error::OpenError;
pub use options::{Retention, StoreOptions};
pub use retention::recorded_retention;
pub use search::semantic::{EmbeddingOptions, EmbeddingState};
pub use secrets::{Rewrapped, SecretsKey, SecretsKeys, rewrap_secrets, secrets_by_key};
pub use store::Store;
pub use transfer::restoring::{
    BackupFacts, RESTORED_OWNER, backup_facts, close_restored_owner, continue_event_numbers, delete_unreadable_secrets,
    empty_for_restore, has_restored_owner, is_empty,
};
pub use transfer::{Export, Head, Imported, Line, OldVersion, OnConflict, TransferError, export_records, import_lines};

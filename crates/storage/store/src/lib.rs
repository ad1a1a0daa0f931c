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
//! Begin with `tenant_store` (each operation of an agent) and `store.rs` (the parts). Each part
//! is a folder: `database`, `rights`, `secrets`, `rows`, `events`, `writing`, `calls` (the queue),
//! `records`, `search`, `webhooks`, `transfer`, `tenant_store`. A folder imports only itself and
//! those before it in this list, which `rcrt/tests/it/pages/modules.rs` checks.
//!
//! # Example
//! ```no_run
//! use rcrt_breadcrumb::{Identity, NewBreadcrumb, Profile, Records, Role, Tenancy};
//! use rcrt_store::{SecretsKey, Store, StoreOptions};
//! use uuid::Uuid;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = SecretsKey::from_bytes([7; 32]); // From a file, in a program.
//! let options = StoreOptions::new("postgres://localhost/rcrt", keys);
//! let store = Store::open(options, &|step| tracing::info!("{step}")).await?;
//! let tenant = store.ensure_tenant("default").await?;
//!
//! // One tenant's records, as one agent sees them.
//! let roles = vec![Role::Curator];
//! let agent = Identity { owner_id: tenant.id, agent_id: Uuid::new_v4(), roles, profile: Profile::default() };
//! let records = store.acting_as(agent);
//! let note = NewBreadcrumb { title: "A note".into(), ..NewBreadcrumb::default() };
//! let created = records.create(note, None).await?;
//! assert_eq!(records.get(created.id).await?.title, "A note");
//! store.close().await;
//! # Ok(())
//! # }
//! ```

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

pub use database::cluster::{
    DatabaseActivity, StoredSize, create_app_role, database_activity, server_version, stored_sizes,
};
pub use database::migrating::{MIGRATOR, migrate};
pub use database::open_error::{DatabaseRight, OpenError};
pub use options::{Retention, StoreOptions};
pub use records::context_reads::ContextReadLimits;
pub use retention::{RecordedRetention, recorded_retention};
pub use search::semantic::{EmbeddingOptions, EmbeddingState};
pub use secrets::{
    Rewrapped, SecretsKey, SecretsKeys, UnreadableSecret, rewrap_secrets, secrets_by_key, secrets_under_other_keys,
    used_secrets_keys,
};
pub use store::Store;
pub use tenancy::ONLY_TENANT;
pub use transfer::restoring::{
    BackupFacts, RESTORED_OWNER, backup_facts, close_restored_owner, continue_event_numbers, delete_unreadable_secrets,
    empty_for_restore, has_restored_owner, is_empty,
};
pub use transfer::{
    ArchivedEvent, Export, Head, Imported, Line, OldVersion, OnConflict, TransferError, export_records, import_lines,
};
pub use webhooks::{MOST_WAITING as MOST_WAITING_DELIVERIES, MOST_WAITING_BYTES as MOST_WAITING_DELIVERY_BYTES};

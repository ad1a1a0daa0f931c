//! Exports a tenant's records as lines of JSON, and imports them. For operators: it connects as the
//! tables' owner, without roles and rights.
//!
//! An export is one snapshot. An [`archive`] has what retention deletes. An import writes by id, so
//! an interrupted import can be repeated. An imported request starts no call.

pub(crate) mod archive;
pub(crate) mod restoring;

mod export;
mod import;
mod line;

use rcrt_breadcrumb::StoreError;
use sqlx::PgConnection;
use uuid::Uuid;

pub use export::{Export, export_records};
pub use import::{Imported, OnConflict, import_lines};
pub use line::{ArchivedEvent, Head, Line, OldVersion};

use crate::database::failure::Result;

/// Why an export or an import failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("there is no tenant named {0}")]
    NoTenant(String),
    /// Lines count from 1. Lines before this one may have been written.
    #[error("line {line}: {what}")]
    Line { line: u64, what: String },
    #[error("the last line is missing: the file is incomplete, and the lines before were imported")]
    CutOff,
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for TransferError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(crate::database::failure::Failure::from(error).into())
    }
}

async fn tenant(connection: &mut PgConnection, name: &str) -> Result<Uuid, TransferError> {
    let found = async {
        let id: Option<Uuid> =
            sqlx::query_scalar("SELECT id FROM tenants WHERE name = $1").bind(name).fetch_optional(connection).await?;
        Ok::<_, crate::database::failure::Failure>(id)
    };
    found.await.map_err(StoreError::from)?.ok_or_else(|| TransferError::NoTenant(name.to_owned()))
}

//! A tenant's records as lines of JSON, and back. For operators: it connects as the tables' owner,
//! without roles and rights.
//!
//! An export is of one moment. An import writes by id, so an interrupted import can be repeated. An
//! imported request starts no call: it was answered, or not, at its origin.

mod export;
mod import;
mod line;

use breadcrumb::StoreError;
use sqlx::PgConnection;
use uuid::Uuid;

pub use export::{Export, export_records};
pub use import::{Imported, OnConflict, import_lines};
pub use line::{Head, Line, OldVersion};

use crate::failure::Result;

/// Why lines were not written, or not read.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("there is no tenant named {0}")]
    NoTenant(String),
    /// Lines count from 1. What stood before the line may have been written.
    #[error("line {line}: {what}")]
    Line { line: u64, what: String },
    #[error("it ends without its last line: it was cut off, and what it has was imported")]
    CutOff,
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for TransferError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(crate::failure::Failure::from(error).into())
    }
}

async fn tenant(connection: &mut PgConnection, name: &str) -> Result<Uuid, TransferError> {
    let found = async {
        let id: Option<Uuid> =
            sqlx::query_scalar("SELECT id FROM tenants WHERE name = $1").bind(name).fetch_optional(connection).await?;
        Ok::<_, crate::failure::Failure>(id)
    };
    found.await.map_err(StoreError::from)?.ok_or_else(|| TransferError::NoTenant(name.to_owned()))
}

//! Exports tables as lines: row by row, in one read-only transaction.

use std::io::Write;

use chrono::Utc;
use futures::TryStreamExt as _;
use rcrt_breadcrumb::{Breadcrumb, BreadcrumbVersion, schema_names::TOOL_RUNNER};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::line::{Head, Line, OldVersion};
use super::{TransferError, tenant};
use crate::database::from_row::from_row;
use crate::rows::row::{RecordRow, VersionRow, read_sensitivity, read_visibility, record_columns};

/// What to export.
#[derive(Debug, Clone)]
pub struct Export {
    /// The tenant's name.
    pub tenant: String,
    /// Only records of these schemas. Empty: all records.
    pub schema_names: Vec<String>,
    /// Whether to include old versions.
    pub with_versions: bool,
    /// Whether to include records whose sensitivity is `secret`.
    pub with_secret: bool,
    /// The version of the program, for the first line.
    pub program: String,
}

from_row! {
    struct OldVersionRow {
        breadcrumb_id: Uuid,
        visibility: Option<String>,
        sensitivity: Option<String>,
        created_by: Option<Uuid>,
        ..version: VersionRow,
    }
}

impl From<OldVersionRow> for OldVersion {
    fn from(row: OldVersionRow) -> Self {
        let version = BreadcrumbVersion::from(row.version);
        Self {
            breadcrumb_id: row.breadcrumb_id,
            version: version.version,
            title: version.title,
            context: version.context,
            tags: version.tags,
            schema_name: version.schema_name,
            checksum: version.checksum,
            updated_at: version.updated_at,
            updated_by: version.updated_by,
            visibility: row.visibility.as_deref().map(read_visibility),
            sensitivity: row.sensitivity.as_deref().map(read_sensitivity),
            created_by: row.created_by,
        }
    }
}

/// Writes a tenant's records as lines, from one snapshot, ordered by id. Records of
/// `tool.runner.v1` are left out, because they say which processes are alive now. Holds one record
/// in memory at a time. Returns the numbers of records and old versions. `admin_url`: of the
/// tables' owner.
pub async fn export_records(
    admin_url: &str,
    export: &Export,
    to: &mut (dyn Write + Send),
) -> Result<(u64, u64), TransferError> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let mut tx = connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let owner_id = tenant(&mut tx, &export.tenant).await?;
    let head = Head {
        format: Head::FORMAT,
        program: export.program.clone(),
        tenant: export.tenant.clone(),
        made_at: Utc::now(),
        reserves_curators_tag: true,
    };
    put(to, &Line::Export(head))?;
    let mut records = 0;
    let mut rows = sqlx::query_as::<_, RecordRow>(concat!(
        "SELECT ",
        record_columns!(),
        " FROM breadcrumbs b WHERE b.owner_id = $1 AND (b.ttl IS NULL OR b.ttl > now())
            AND ($2 = '{}' OR b.schema_name = ANY ($2)) AND ($3 OR b.sensitivity <> 'secret')
            AND b.schema_name IS DISTINCT FROM $4 ORDER BY b.id"
    ))
    .bind(owner_id)
    .bind(&export.schema_names)
    .bind(export.with_secret)
    .bind(TOOL_RUNNER)
    .fetch(&mut *tx);
    while let Some(row) = rows.try_next().await? {
        put(to, &Line::Record(Box::new(Breadcrumb::from(row))))?;
        records += 1;
    }
    drop(rows);
    let mut versions = 0;
    if export.with_versions {
        let mut rows = sqlx::query_as::<_, OldVersionRow>(
            "SELECT v.breadcrumb_id, v.version, v.title, v.context, v.tags, v.schema_name, v.checksum, v.updated_at,
                v.updated_by, v.visibility, v.sensitivity, v.created_by
             FROM breadcrumb_versions v JOIN breadcrumbs b ON b.owner_id = v.owner_id AND b.id = v.breadcrumb_id
             WHERE b.owner_id = $1 AND (b.ttl IS NULL OR b.ttl > now())
                AND ($2 = '{}' OR b.schema_name = ANY ($2)) AND ($3 OR 'secret' NOT IN (b.sensitivity, coalesce(v.sensitivity, '')))
                AND b.schema_name IS DISTINCT FROM $4
             ORDER BY v.breadcrumb_id, v.version",
        )
        .bind(owner_id)
        .bind(&export.schema_names)
        .bind(export.with_secret)
        .bind(TOOL_RUNNER)
        .fetch(&mut *tx);
        while let Some(row) = rows.try_next().await? {
            put(to, &Line::Version(Box::new(row.into())))?;
            versions += 1;
        }
    }
    put(to, &Line::End { records, versions })?;
    to.flush()?;
    tx.rollback().await?;
    let _ = connection.close().await;
    Ok((records, versions))
}

fn put(to: &mut (dyn Write + Send), line: &Line) -> Result<(), TransferError> {
    serde_json::to_writer(&mut *to, line).map_err(std::io::Error::from)?;
    Ok(to.write_all(b"\n")?)
}

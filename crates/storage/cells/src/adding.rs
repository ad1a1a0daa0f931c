//! The operator adds cells and lists them.

use std::collections::HashMap;
use std::str::FromStr;

use rcrt_store::MIGRATOR;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use url::Url;
use uuid::Uuid;

use crate::{CellError, HOME, of};

/// A cell as the directory has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellInfo {
    pub name: String,
    /// `None` for the first cell.
    pub url: Option<String>,
    /// The tenants that are in it, by name.
    pub tenants: Vec<String>,
    /// The tenants whose move to it, or whose removal from it, is not finished.
    pub unfinished: Vec<String>,
    /// Whether new tenants begin in it.
    pub is_default: bool,
}

/// Makes the empty database at this URL a cell of the directory in `home_url`. Migrates both. The
/// URLs are of the tables' owner. Repeating it changes nothing.
pub async fn add_cell(
    home_url: &str,
    name: &str,
    url: &str,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), CellError> {
    check_name(name)?;
    if Url::parse(url).is_ok_and(|url| url.password().is_some() || url.query_pairs().any(|(key, _)| key == "password"))
    {
        return Err(CellError::Password);
    }
    let options = PgConnectOptions::from_str(home_url).map_err(of(HOME))?;
    Box::pin(rcrt_store::migrate(&options, &MIGRATOR, progress)).await?;
    let mut home = connect(HOME, home_url).await?;
    let known: Option<String> = sqlx::query_scalar("SELECT url FROM cells WHERE name = $1")
        .bind(name)
        .fetch_optional(&mut home)
        .await
        .map_err(of(HOME))?;
    if known.is_some_and(|known| known != url) {
        return Err(CellError::Exists(name.to_owned()));
    }
    let home_id = home_id(&mut home).await.map_err(of(HOME))?;
    let options = PgConnectOptions::from_str(url).map_err(of(name))?;
    Box::pin(rcrt_store::migrate(&options, &MIGRATOR, progress)).await?;
    let mut cell = connect(name, url).await?;
    identify(&mut cell, name, home_id).await?;
    guard(home_url).await.map_err(of(HOME))?;
    guard(url).await.map_err(of(name))?;
    sqlx::query("INSERT INTO cells (name, url) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
        .bind(name)
        .bind(url)
        .execute(&mut home)
        .await
        .map_err(of(HOME))?;
    Ok(())
}

fn check_name(name: &str) -> Result<(), CellError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_valid = name.starts_with(is_plain)
        && name.len() <= 63
        && name.chars().all(|c| is_plain(c) || c == '-' || c == '_')
        && name != HOME;
    if is_valid { Ok(()) } else { Err(CellError::Name(name.to_owned())) }
}

/// What names the directory; made when the first cell is added.
async fn home_id(home: &mut PgConnection) -> Result<Uuid, sqlx::Error> {
    sqlx::query("INSERT INTO cell_home DEFAULT VALUES ON CONFLICT (is_only) DO NOTHING").execute(&mut *home).await?;
    sqlx::query_scalar("SELECT id FROM cell_home").fetch_one(home).await
}

/// Writes into the new cell whose it is, unless it is in use.
async fn identify(cell: &mut PgConnection, name: &str, home: Uuid) -> Result<(), CellError> {
    let is: Option<(String, Uuid)> =
        sqlx::query_as("SELECT name, home FROM cell_identity").fetch_optional(&mut *cell).await.map_err(of(name))?;
    match is {
        Some((is, whose)) if is == name && whose == home => return Ok(()),
        Some((is, _)) => return Err(CellError::Refused(format!("it is the cell {is} already"))),
        None => {}
    }
    let (tenants, has_cells): (i64, bool) =
        sqlx::query_as("SELECT (SELECT count(*) FROM tenants), EXISTS (SELECT FROM cell_home)")
            .fetch_one(&mut *cell)
            .await
            .map_err(of(name))?;
    if has_cells {
        return Err(CellError::Refused("it has a directory of cells itself".into()));
    }
    if tenants > 0 {
        return Err(CellError::Refused(format!("it has {tenants} tenants, and a cell begins without any")));
    }
    sqlx::query("INSERT INTO cell_identity (name, home) VALUES ($1, $2)")
        .bind(name)
        .bind(home)
        .execute(cell)
        .await
        .map_err(of(name))?;
    Ok(())
}

/// From now on new tenants begin in this cell, which can be [`HOME`].
pub async fn set_default_cell(home_url: &str, cell: &str) -> Result<(), CellError> {
    let mut home = connect(HOME, home_url).await?;
    let done = sqlx::query(
        "UPDATE cell_home SET new_tenants = $1 WHERE $1 = $2 OR EXISTS (SELECT FROM cells WHERE name = $1)",
    )
    .bind(cell)
    .bind(HOME)
    .execute(&mut home)
    .await
    .map_err(of(HOME))?;
    // Without cells there is no row, and all tenants begin in the first database.
    if done.rows_affected() == 1 || cell == HOME { Ok(()) } else { Err(CellError::NoCell(cell.to_owned())) }
}

/// Lets the database refuse the writes of tenants that are elsewhere.
pub(crate) async fn guard(url: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query("SELECT guard_tenant_tables()").execute(&mut connection).await?;
    connection.close().await
}

/// All cells with their tenants, the first one first.
pub async fn cells(home_url: &str) -> Result<Vec<CellInfo>, CellError> {
    let mut home = connect(HOME, home_url).await?;
    let read = async {
        let cells: Vec<(String, String)> =
            sqlx::query_as("SELECT name, url FROM cells ORDER BY name").fetch_all(&mut home).await?;
        let tenants: Vec<(String, String, Option<String>)> = sqlx::query_as(
            "SELECT t.name, coalesce(c.cell, $1), coalesce(c.moving_to, c.moved_from)
             FROM tenants t LEFT JOIN tenant_cells c ON c.tenant = t.id WHERE t.deleted_at IS NULL ORDER BY t.name",
        )
        .bind(HOME)
        .fetch_all(&mut home)
        .await?;
        let default: Option<String> =
            sqlx::query_scalar("SELECT new_tenants FROM cell_home").fetch_optional(&mut home).await?;
        Ok::<_, sqlx::Error>((cells, tenants, default.unwrap_or_else(|| HOME.to_owned())))
    };
    let (cells, tenants, default) = read.await.map_err(of(HOME))?;
    let mut found: Vec<CellInfo> = [(HOME.to_owned(), None)]
        .into_iter()
        .chain(cells.into_iter().map(|(name, url)| (name, Some(url))))
        .map(|(name, url)| {
            let is_default = name == default;
            CellInfo { name, url, tenants: Vec::new(), unfinished: Vec::new(), is_default }
        })
        .collect();
    let at: HashMap<String, usize> = found.iter().enumerate().map(|(at, cell)| (cell.name.clone(), at)).collect();
    for (tenant, cell, other) in tenants {
        if let Some(other) = other.and_then(|other| found.get_mut(*at.get(&other)?)) {
            other.unfinished.push(tenant.clone());
        }
        if let Some(cell) = at.get(&cell).and_then(|at| found.get_mut(*at)) {
            cell.tenants.push(tenant);
        }
    }
    Ok(found)
}

/// A move of a tenant that runs, or that was interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedMove {
    pub tenant: Uuid,
    pub name: String,
    /// Where `rcrt cell move` brings the tenant to finish it.
    pub to: String,
}

/// The moves that the directory in this database has as unfinished. The URL can be of the store's
/// role.
pub async fn unfinished_moves(home_url: &str) -> Result<Vec<UnfinishedMove>, CellError> {
    let mut home = connect(HOME, home_url).await?;
    let rows: Vec<(Uuid, String, String)> =
        sqlx::query_as("SELECT tenant, name, moves_to FROM public.unfinished_moves()")
            .fetch_all(&mut home)
            .await
            .map_err(of(HOME))?;
    let _ = home.close().await;
    Ok(rows.into_iter().map(|(tenant, name, to)| UnfinishedMove { tenant, name, to }).collect())
}

pub(crate) async fn connect(cell: &str, url: &str) -> Result<PgConnection, CellError> {
    PgConnection::connect(url).await.map_err(of(cell))
}

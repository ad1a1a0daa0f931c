//! `rcrt cell`: several databases, and which tenant is in which.

use clap::{Args, Subcommand};
use rcrt_cells::{CellError, CellInfo, Moved};
use serde_json::json;

use crate::assembly::{DirectDatabase, check_url, check_url_of, database_address};
use crate::config::Config;
use crate::exit::Failure;
use crate::output::{Output, counted, one_line};
use crate::progress::ConsoleProgress;

/// Spread tenants over several databases
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
A cell is a database with some of the tenants. The first database is the cell `home`: it has the directory, and new \
tenants begin there until `rcrt cell default` names another one. The commands work on the databases directly, with or \
without running servers. Servers that started before the first cell was added must be restarted before a tenant is moved.

Examples:
  rcrt cell add east postgres://rcrt@east.example.com/rcrt
  rcrt cell move acme east
  rcrt cell move acme home
  rcrt cell default east
  rcrt cell list")]
pub enum Cell {
    /// Make an empty database a cell
    Add {
        /// The name: lower-case letters, digits, - and _
        name: String,
        /// Its URL, of the user that owns the tables; without a password, which is in the password
        /// file of Postgres on each server
        url: String,
        #[command(flatten)]
        home: Home,
    },
    /// List the cells and how many tenants are in each
    List {
        #[command(flatten)]
        home: Home,
    },
    /// Let new tenants begin in this cell
    Default {
        /// The name of the cell, or `home`
        name: String,
        #[command(flatten)]
        home: Home,
    },
    /// Move a tenant to another cell; its writes are refused meanwhile, and an interrupted move is
    /// finished or undone when the command is repeated
    Move {
        /// The tenant's name or id
        tenant: String,
        /// The name of the cell
        to: String,
        #[command(flatten)]
        home: Home,
    },
}

#[derive(Debug, Args)]
pub struct Home {
    /// The first database, if it is not the embedded one of the data folder
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

impl Cell {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let (Self::Add { home, .. } | Self::List { home } | Self::Default { home, .. } | Self::Move { home, .. }) =
            &self;
        check_url(home.database_url.as_ref())?;
        if let Self::Add { url, .. } = &self {
            check_url_of("URL", Some(url))?;
        }
        let progress = ConsoleProgress::new();
        let database = DirectDatabase::open(config, home.database_url.as_ref(), &progress).await?;
        let done = Box::pin(self.work(&database.admin_url, &progress, output)).await;
        database.close().await;
        done
    }

    async fn work(self, home: &str, progress: &ConsoleProgress, output: Output) -> anyhow::Result<()> {
        let say = |step: &str| progress.step(step);
        match self {
            Self::Add { name, url, .. } => {
                rcrt_cells::add_cell(home, &name, &url, &say).await.map_err(failure)?;
                progress.done();
                added(&name, &url, output)
            }
            Self::List { .. } => {
                let cells = rcrt_cells::cells(home).await.map_err(failure)?;
                progress.done();
                list(&cells, output)
            }
            Self::Default { name, .. } => {
                rcrt_cells::set_default_cell(home, &name).await.map_err(failure)?;
                progress.done();
                output.either(&json!({"cell": name}), &format!("new tenants begin in the cell {name}"))
            }
            Self::Move { tenant, to, .. } => {
                let moved = rcrt_cells::move_tenant(home, &tenant, &to, &say).await.map_err(failure)?;
                progress.done();
                report(moved.as_ref(), &tenant, &to, output)
            }
        }
    }
}

fn failure(error: CellError) -> anyhow::Error {
    match &error {
        CellError::NoCell(_) | CellError::NoTenant(_) => Failure::NotFound(error.to_string()).into(),
        CellError::Name(_) | CellError::Password => Failure::Usage(error.to_string()).into(),
        _ => error.into(),
    }
}

fn added(name: &str, url: &str, output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        return output.json(&json!({"cell": name, "database": database_address(url)}));
    }
    output.line(&format!(
        "added the cell {name} ({}); restart servers that started before the first cell was added",
        database_address(url)
    ))
}

fn list(cells: &[CellInfo], output: Output) -> anyhow::Result<()> {
    let address =
        |cell: &CellInfo| cell.url.as_deref().map_or_else(|| "the first database".to_owned(), database_address);
    if output.is_json() {
        let row = |cell: &CellInfo| {
            json!({
                "cell": cell.name, "database": address(cell), "tenants": cell.tenants, "unfinished": cell.unfinished,
                "new_tenants": cell.is_default,
            })
        };
        return output.json(&cells.iter().map(row).collect::<Vec<_>>());
    }
    let row = |cell: &CellInfo| {
        let unfinished = one_line(&cell.unfinished.join(", "), 100);
        let begin = if cell.is_default { "here" } else { "" };
        vec![cell.name.clone(), address(cell), cell.tenants.len().to_string(), begin.to_owned(), unfinished]
    };
    let heads = ["CELL", "DATABASE", "TENANTS", "NEW TENANTS", "UNFINISHED MOVES"];
    output.table(&heads, &cells.iter().map(row).collect::<Vec<_>>())
}

fn report(moved: Option<&Moved>, tenant: &str, to: &str, output: Output) -> anyhow::Result<()> {
    let Some(moved) = moved else {
        if output.is_json() {
            return output.json(&json!({"tenant": tenant, "cell": to, "moved": false}));
        }
        return output.line(&format!("{tenant} is in the cell {to}"));
    };
    let paused_ms = moved.paused.as_millis() as u64;
    if output.is_json() {
        return output.json(&json!({
            "tenant": moved.tenant, "from": moved.from, "cell": moved.to, "moved": true, "rows": moved.rows,
            "paused_ms": paused_ms,
        }));
    }
    let rows = counted(moved.rows, "row", "rows");
    output.line(&format!(
        "moved {tenant} from {} to {}: {rows}; writes were refused for {paused_ms} ms",
        moved.from, moved.to
    ))
}

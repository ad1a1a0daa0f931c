//! Moves a tenant to another cell. Each step can be repeated, and the directory says which one is
//! next:
//!
//! ```text
//! in A ──► moving_to B ── fence in A, copy ──► in B, moved_from A ── open B, purge A ──► in B
//!             │                                   (the switch: one transaction)
//!             └── a failure: open A, purge B ──► in A
//! ```
//!
//! From the fence to the opening the tenant's writes are refused with `Unavailable`; reads go on.

use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::adding::connect;
use crate::{CellError, HOME, POLL, copying, directory, of};

/// After this time every server that reaches the directory has read the last change of it.
pub(crate) const SETTLE: Duration = POLL.saturating_mul(2).saturating_add(Duration::from_millis(50));
/// How far the events' numbers of the new cell begin above those of the old one: more transactions
/// than the old one can begin until its writes are refused.
const AHEAD: i64 = 1 << 32;

/// A move that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub tenant: Uuid,
    pub from: String,
    pub to: String,
    /// The copied rows of all tables.
    pub rows: u64,
    /// How long writes were refused.
    pub paused: Duration,
}

/// Moves the tenant with this name or id to the cell, which can be [`HOME`]. Its writes are refused
/// meanwhile. If an earlier move was interrupted, it is finished or undone first. `None` if the
/// tenant is in the cell. `home_url` is of the tables' owner in the first database.
pub async fn move_tenant(
    home_url: &str,
    tenant: &str,
    to: &str,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<Option<Moved>, CellError> {
    let mut home = connect(HOME, home_url).await?;
    let tenant = find(&mut home, tenant).await?;
    if !directory::lock_moves(&mut home, tenant).await.map_err(of(HOME))? {
        return Err(CellError::Busy);
    }
    let mut moving = Move { home, home_url: home_url.to_owned(), tenant, progress };
    let done = moving.settle_and_run(to).await;
    directory::unlock_moves(&mut moving.home, tenant).await;
    done
}

async fn find(home: &mut PgConnection, tenant: &str) -> Result<Uuid, CellError> {
    // The id first: another tenant can have this text as its name.
    sqlx::query_scalar(
        "SELECT id FROM tenants WHERE deleted_at IS NULL AND $1 IN (id::text, name) ORDER BY id::text <> $1 LIMIT 1",
    )
    .bind(tenant)
    .fetch_optional(home)
    .await
    .map_err(of(HOME))?
    .ok_or_else(|| CellError::NoTenant(tenant.to_owned()))
}

struct Move<'p> {
    home: PgConnection,
    home_url: String,
    tenant: Uuid,
    progress: &'p (dyn Fn(&str) + Send + Sync),
}

impl Move<'_> {
    async fn settle_and_run(&mut self, to: &str) -> Result<Option<Moved>, CellError> {
        let from = self.settle_earlier().await?;
        if from == to { Ok(None) } else { self.run(&from, to).await.map(Some) }
    }

    /// Finishes or undoes what an interrupted move left. Returns the cell in which the tenant is.
    async fn settle_earlier(&mut self) -> Result<String, CellError> {
        let Some(entry) = directory::entry(&mut self.home, self.tenant).await.map_err(of(HOME))? else {
            return Ok(HOME.to_owned());
        };
        if let Some(left) = &entry.moved_from {
            (self.progress)("Finishing an interrupted move");
            self.finish(left, &entry.cell).await?;
        } else if let Some(to) = &entry.moving_to {
            (self.progress)("Undoing an interrupted move");
            self.undo(&entry.cell, to).await?;
        }
        Ok(entry.cell)
    }

    async fn run(&mut self, from: &str, to: &str) -> Result<Moved, CellError> {
        let (mut source, mut target) = (self.open(from).await?, self.open(to).await?);
        self.check(&mut source, from).await?;
        self.write(from, Some(to), None).await?;
        let prepared = self.prepare((&mut source, from), (&mut target, to)).await;
        let begun = Instant::now();
        let copied = match prepared {
            Ok(()) => self.copy((&mut source, from), (&mut target, to)).await,
            Err(error) => Err(error),
        };
        let rows = match copied {
            Ok(rows) => rows,
            Err(error) => {
                // On new connections: these may be what failed.
                drop((source, target));
                self.undo(from, to).await.map_err(|_| CellError::Interrupted(error.to_string()))?;
                return Err(match error {
                    CellError::Grants(_) => error,
                    error => CellError::NotMoved(error.to_string()),
                });
            }
        };
        let interrupted = |error: CellError| CellError::Interrupted(error.to_string());
        // From here on the tenant is there.
        self.write(to, None, Some(from)).await.map_err(interrupted)?;
        let paused = self.finish(from, to).await.map_err(interrupted)?.duration_since(begun);
        let (tenant, paused_ms) = (self.tenant, paused.as_millis() as u64);
        tracing::info!(%tenant, from, to, rows, paused_ms, "moved the tenant");
        Ok(Moved { tenant, from: from.to_owned(), to: to.to_owned(), rows, paused })
    }

    /// What needs no pause.
    async fn prepare(
        &self,
        (source, from): (&mut PgConnection, &str),
        (target, to): (&mut PgConnection, &str),
    ) -> Result<(), CellError> {
        (self.progress)("Preparing the new cell");
        copying::purge(target, self.tenant, to == HOME).await.map_err(of(to))?;
        // Until all servers know where the tenant is, none writes there: a server that still reads
        // here would not see it.
        fence(target, self.tenant).await.map_err(of(to))?;
        let present = newest_number(source).await.map_err(of(from))?;
        sqlx::query("SELECT raise_event_numbers($1)")
            .bind(present.saturating_add(AHEAD))
            .execute(&mut *target)
            .await
            .map_err(of(to))?;
        // Servers open the new cell meanwhile.
        tokio::time::sleep(SETTLE).await;
        Ok(())
    }

    async fn copy(
        &self,
        (source, from): (&mut PgConnection, &str),
        (target, to): (&mut PgConnection, &str),
    ) -> Result<u64, CellError> {
        (self.progress)("Copying; the tenant's writes are refused meanwhile");
        fence(source, self.tenant).await.map_err(of(from))?;
        // One could have been granted since the first check.
        self.check(source, from).await?;
        if newest_number(source).await.map_err(of(from))? >= newest_number(target).await.map_err(of(to))? {
            return Err(CellError::Unusable("the old cell wrote faster than expected; repeat the command".into()));
        }
        let mut transaction = target.begin().await.map_err(of(to))?;
        let rows = copying::copy(source, &mut transaction, self.tenant).await.map_err(of(to))?;
        transaction.commit().await.map_err(of(to))?;
        Ok(rows)
    }

    /// Opens the tenant in the cell where it is now, and deletes what it left. Returns when it was
    /// opened.
    async fn finish(&mut self, left: &str, cell: &str) -> Result<Instant, CellError> {
        tokio::time::sleep(SETTLE).await;
        unfence(&mut self.open(cell).await?, self.tenant).await.map_err(of(cell))?;
        let opened = Instant::now();
        (self.progress)("Deleting the rows in the old cell");
        let mut source = self.open(left).await?;
        copying::purge(&mut source, self.tenant, left == HOME).await.map_err(of(left))?;
        self.write(cell, None, None).await?;
        Ok(opened)
    }

    /// Opens the tenant in the cell that it did not leave. The order counts: its writes go on even
    /// if the other cell cannot be reached.
    async fn undo(&mut self, cell: &str, to: &str) -> Result<(), CellError> {
        unfence(&mut self.open(cell).await?, self.tenant).await.map_err(of(cell))?;
        match self.open(to).await {
            Ok(mut target) => copying::purge(&mut target, self.tenant, to == HOME).await.map_err(of(to))?,
            // The directory keeps that something is left to do there.
            Err(CellError::Database { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.write(cell, None, None).await
    }

    /// Grants of the tenant, or to it, would be lost.
    async fn check(&self, source: &mut PgConnection, from: &str) -> Result<(), CellError> {
        let others: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT coalesce(t.name, o.other::text) FROM (
                SELECT CASE WHEN owner_id = $1 THEN grantee_owner_id ELSE owner_id END AS other FROM acl_grants
                WHERE grantee_owner_id <> owner_id AND $1 IN (owner_id, grantee_owner_id)) o
             LEFT JOIN tenants t ON t.id = o.other ORDER BY 1",
        )
        .bind(self.tenant)
        .fetch_all(source)
        .await
        .map_err(of(from))?;
        if others.is_empty() { Ok(()) } else { Err(CellError::Grants(others.join(", "))) }
    }

    async fn write(&mut self, cell: &str, moving_to: Option<&str>, moved_from: Option<&str>) -> Result<(), CellError> {
        directory::write(&mut self.home, self.tenant, cell, moving_to, moved_from).await.map_err(of(HOME))
    }

    async fn url(&mut self, cell: &str) -> Result<String, CellError> {
        if cell == HOME {
            return Ok(self.home_url.clone());
        }
        sqlx::query_scalar("SELECT url FROM cells WHERE name = $1")
            .bind(cell)
            .fetch_optional(&mut self.home)
            .await
            .map_err(of(HOME))?
            .ok_or_else(|| CellError::NoCell(cell.to_owned()))
    }

    /// A connection to the cell, which must be the one that the directory means, with the same
    /// tables.
    async fn open(&mut self, cell: &str) -> Result<PgConnection, CellError> {
        let url = self.url(cell).await?;
        let mut connection = connect(cell, &url).await?;
        let schema = "SELECT max(version) FROM _sqlx_migrations";
        let ours: i64 = sqlx::query_scalar(schema).fetch_one(&mut self.home).await.map_err(of(HOME))?;
        let theirs: i64 = sqlx::query_scalar(schema).fetch_one(&mut connection).await.map_err(of(cell))?;
        if ours != theirs {
            let what =
                format!("the cell {cell} has migration {theirs} and home has {ours}; migrate both with `rcrt migrate`");
            return Err(CellError::Unusable(what));
        }
        if cell != HOME {
            let home: Uuid =
                sqlx::query_scalar("SELECT id FROM cell_home").fetch_one(&mut self.home).await.map_err(of(HOME))?;
            let is_ours: bool =
                sqlx::query_scalar("SELECT EXISTS (SELECT FROM cell_identity WHERE name = $1 AND home = $2)")
                    .bind(cell)
                    .bind(home)
                    .fetch_one(&mut connection)
                    .await
                    .map_err(of(cell))?;
            if !is_ours {
                return Err(CellError::Unusable(format!("at the URL of the cell {cell} is another database")));
            }
        }
        Ok(connection)
    }
}

/// Refuses the tenant's writes from now on, and waits for those that began before.
async fn fence(connection: &mut PgConnection, tenant: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO fenced_tenants VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(tenant)
        .execute(&mut *connection)
        .await?;
    // Writers hold it shared (`refuse_fenced_tenant`).
    let mut waiting = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('rcrt.cells ' || $1::text, 0))")
        .bind(tenant)
        .execute(&mut *waiting)
        .await?;
    waiting.commit().await
}

async fn unfence(connection: &mut PgConnection, tenant: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM fenced_tenants WHERE tenant = $1").bind(tenant).execute(connection).await?;
    Ok(())
}

/// A number above those of all events that were written so far.
async fn newest_number(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT event_number(0)").fetch_one(connection).await
}

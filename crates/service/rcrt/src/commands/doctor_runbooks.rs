//! What `rcrt doctor` finds out for each runbook of `docs/operate`: its first checks.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use rcrt_breadcrumb::{RunnerInfo, Runners as _, TokenInfo, TokenQuery};
use rcrt_cells::UnfinishedMove;
use rcrt_client::Client;
use rcrt_store::{DatabaseActivity, MIGRATOR};
use serde::Serialize;
use tokio::time::timeout;

use super::doctor::ANSWER_TIME;
use super::doctor_stored::database_url;
use crate::config::Config;
use crate::output::{Output, Style, counted, one_line};

/// A query that takes longer is slow: the database is near and the query trivial.
const SLOW_MS: u128 = 100;
/// A transaction that is open for longer holds back vacuum and migrations.
const LONG_TRANSACTION_S: f64 = 60.0;
/// Runners report about every second.
const SILENT: TimeDelta = TimeDelta::seconds(10);
/// A share of the disk below which somebody should look.
const LOW_DISK: f64 = 0.1;

/// The first checks of one runbook.
#[derive(Serialize)]
pub(super) struct RunbookCheck {
    /// The page in `docs/operate`, without its ending.
    runbook: &'static str,
    state: CheckState,
    finding: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Good,
    /// Read the runbook.
    Look,
    /// What would tell cannot be reached.
    Unknown,
}

use CheckState::{Good, Look, Unknown};

/// What other checks of `rcrt doctor` found out already.
pub(super) struct Known<'f> {
    /// The version of the server; `None` if it does not respond.
    pub server_version: Option<&'f str>,
    pub server_problem: Option<&'f str>,
    pub min_free_bytes: u64,
}

/// Performs the first checks of all runbooks.
pub(super) async fn checks(config: &Config, known: &Known<'_>) -> Vec<RunbookCheck> {
    let (activity, moves) = match database_url(config) {
        Some(url) => {
            let activity = timeout(ANSWER_TIME, rcrt_store::database_activity(&url));
            let (activity, moves) = tokio::join!(activity, timeout(ANSWER_TIME, rcrt_cells::unfinished_moves(&url)));
            (activity.ok().and_then(Result::ok), moves.ok().and_then(Result::ok))
        }
        None => (None, None),
    };
    let client = known.server_version.and_then(|_| crate::connection::client(config).ok());
    let (runners, tokens) = match &client {
        Some(client) => tokio::join!(runners(client), tokens(client)),
        None => (None, None),
    };
    let activity = activity.as_ref();
    vec![
        server_down(known),
        upgrade(known, runners.as_deref()),
        rollback(activity),
        point_in_time_recovery(activity),
        full_disk(&config.data, known.min_free_bytes),
        slow_database(activity),
        stuck_runner(runners.as_deref()),
        leaked_token(&config.data, tokens.as_deref()),
        cells(moves.as_deref()),
    ]
}

/// `None` if the token in use is not a curator's.
async fn runners(client: &Client) -> Option<Vec<RunnerInfo>> {
    timeout(ANSWER_TIME, client.runners()).await.ok()?.ok()
}

async fn tokens(client: &Client) -> Option<Vec<TokenInfo>> {
    let query = TokenQuery { id: None, agent_id: None, before: None, limit: rcrt_breadcrumb::MAX_TOKENS };
    timeout(ANSWER_TIME, client.tokens(&query)).await.ok()?.ok()
}

fn check(runbook: &'static str, state: CheckState, finding: impl Into<String>) -> RunbookCheck {
    RunbookCheck { runbook, state, finding: finding.into() }
}

const NO_DATABASE: &str = "needs a running Postgres, and DATABASE_URL for an external one";
const NO_RUNNERS: &str = "needs a running server, and the token of a curator";

fn server_down(known: &Known<'_>) -> RunbookCheck {
    match (known.server_version, known.server_problem) {
        (Some(_), None) => check("server-down", Good, "the server responds"),
        (Some(_), Some(problem)) => check("server-down", Look, format!("the server responds: {problem}")),
        (None, problem) => {
            check("server-down", Look, format!("no server responds: {}", problem.unwrap_or("the reason is not known")))
        }
    }
}

fn upgrade(known: &Known<'_>, runners: Option<&[RunnerInfo]>) -> RunbookCheck {
    let own = env!("CARGO_PKG_VERSION");
    let Some(server) = known.server_version else { return check("upgrade", Unknown, NO_RUNNERS) };
    let of_runners = runners.unwrap_or_default().iter().map(|runner| runner.version.as_str());
    let mut versions: Vec<&str> = of_runners.chain([own, server]).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() == 1 && runners.is_none() {
        return check("upgrade", Unknown, format!("this program and the server have version {own}; {NO_RUNNERS}"));
    }
    if versions.len() == 1 {
        return check("upgrade", Good, format!("this program, the server and its runners have version {own}"));
    }
    check(
        "upgrade",
        Look,
        format!("versions differ: this program, the server and its runners have {}", versions.join(", ")),
    )
}

fn rollback(activity: Option<&DatabaseActivity>) -> RunbookCheck {
    let newest = MIGRATOR.iter().map(|one| one.version).max().unwrap_or_default();
    match activity.and_then(|activity| activity.schema) {
        None => check("rollback", Unknown, NO_DATABASE),
        Some(schema) if schema > newest => {
            let why = format!(
                "a newer version migrated the database (to {schema}); this one knows {newest} and does not start"
            );
            check("rollback", Look, why)
        }
        Some(schema) => {
            check("rollback", Good, format!("the schema has migration {schema}; this program knows {newest}"))
        }
    }
}

fn point_in_time_recovery(activity: Option<&DatabaseActivity>) -> RunbookCheck {
    const NAME: &str = "point-in-time-recovery";
    let Some(activity) = activity else { return check(NAME, Unknown, NO_DATABASE) };
    let time = |at: DateTime<Utc>| at.format("%Y-%m-%d %H:%M:%S UTC");
    match (activity.archives, activity.archived_at, activity.archive_failed_at) {
        (false, _, _) => check(NAME, Unknown, "Postgres does not archive its log: only backups can be restored"),
        (true, archived, Some(failed)) if archived.is_none_or(|archived| archived < failed) => {
            check(NAME, Look, format!("Postgres cannot archive its log since {}", time(failed)))
        }
        (true, Some(archived), _) => check(NAME, Good, format!("Postgres archived its log last at {}", time(archived))),
        (true, None, _) => check(NAME, Look, "Postgres has archived nothing yet"),
    }
}

fn full_disk(data: &Path, min_free: u64) -> RunbookCheck {
    let Some((free, all)) = disk(data) else { return check("full-disk", Unknown, "the disk's size cannot be read") };
    let gb = |bytes: u64| bytes as f64 / 1e9;
    let share = free as f64 / all.max(1) as f64;
    let finding = format!("{:.1} of {:.1} GB are free on the disk of the data folder", gb(free), gb(all));
    check("full-disk", if free < min_free || share < LOW_DISK { Look } else { Good }, finding)
}

/// The free bytes and all bytes of the disk of this folder, or of its first parent that exists.
fn disk(folder: &Path) -> Option<(u64, u64)> {
    let folder = std::path::absolute(folder).ok()?;
    let disk = rustix::fs::statvfs(folder.ancestors().find(|path| path.exists())?).ok()?;
    Some((disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)))
}

fn slow_database(activity: Option<&DatabaseActivity>) -> RunbookCheck {
    let Some(activity) = activity else { return check("slow-database", Unknown, NO_DATABASE) };
    let DatabaseActivity { round_trip, connections, max_connections, waiting_for_locks, longest_transaction_s, .. } =
        activity;
    let is_good = round_trip.as_millis() < SLOW_MS
        && *connections * 10 < *max_connections * 9
        && *waiting_for_locks == 0
        && *longest_transaction_s < LONG_TRANSACTION_S;
    let finding = format!(
        "a query takes {:.1} ms, {connections} of {max_connections} connections are open, {waiting_for_locks} wait for a \
         lock, the oldest transaction began {longest_transaction_s:.0} s ago",
        round_trip.as_secs_f64() * 1e3
    );
    check("slow-database", if is_good { Good } else { Look }, finding)
}

fn stuck_runner(runners: Option<&[RunnerInfo]>) -> RunbookCheck {
    let Some(runners) = runners else { return check("stuck-runner", Unknown, NO_RUNNERS) };
    if runners.is_empty() {
        return check("stuck-runner", Look, "no runner is live");
    }
    let live = counted(runners.len() as u64, "runner is", "runners are");
    let odd = |runner: &&RunnerInfo| runner.draining || Utc::now() - runner.reported_at > SILENT;
    let odd: Vec<String> = runners.iter().filter(odd).map(|runner| runner.runner_id.to_string()).collect();
    if odd.is_empty() {
        return check("stuck-runner", Good, format!("{live} live and reporting"));
    }
    check("stuck-runner", Look, format!("{live} live; draining or silent: {}", odd.join(", ")))
}

fn leaked_token(data: &Path, tokens: Option<&[TokenInfo]>) -> RunbookCheck {
    let open: Vec<&str> =
        ["token", "runner.token", "keys"].into_iter().filter(|name| others_can_read(&data.join(name))).collect();
    if !open.is_empty() {
        let finding = format!("other users of this machine can read {} in the data folder", open.join(", "));
        return check("leaked-token", Look, finding);
    }
    match tokens {
        None => check("leaked-token", Unknown, NO_RUNNERS),
        Some(tokens) => {
            let valid = counted(tokens.len() as u64, "token is", "tokens are");
            check("leaked-token", Good, format!("{valid} listed as valid; `rcrt token list` has their last uses"))
        }
    }
}

fn cells(moves: Option<&[UnfinishedMove]>) -> RunbookCheck {
    let Some(moves) = moves else { return check("cells", Unknown, NO_DATABASE) };
    let Some(UnfinishedMove { tenant, name, to }) = moves.first() else {
        return check("cells", Good, "no move of a tenant to another database is unfinished");
    };
    let others = match moves.len() {
        1 => String::new(),
        many => format!(" (and {}; `rcrt cell list` shows all)", counted(many as u64 - 1, "other", "others")),
    };
    let what = format!(
        "the move of the tenant {} to the cell {to} has not ended{others}; if none is running, finish it with `rcrt cell \
         move {tenant} {to}`",
        one_line(name, 60)
    );
    check("cells", Look, what)
}

fn others_can_read(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

pub(super) fn print(output: Output, checks: &[RunbookCheck]) -> anyhow::Result<()> {
    output.line(&format!("\n{}", output.paint(Style::Bold, "First checks of the runbooks (docs/operate):")))?;
    for RunbookCheck { runbook, state, finding } in checks {
        let (style, mark) = match state {
            Good => (Style::Good, "good"),
            Look => (Style::Warning, "LOOK"),
            Unknown => (Style::Bold, "?"),
        };
        output.line(&format!("  {} {runbook:<23}{finding}", output.paint(style, &format!("{mark:<4}"))))?;
    }
    Ok(())
}

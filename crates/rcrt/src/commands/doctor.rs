//! `rcrt doctor`: what this installation is made of, and whether it is well. Works with and without a running server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use breadcrumb::StoreError;
use clap::Args;
use sandbox::{Protection, ProtectionState, Report, Sandbox, SandboxOptions};
use serde::Serialize;
use url::Url;

use crate::assembly::{self, PostgresUsed, worker_command};
use crate::config::Config;
use crate::exit::Failure;
use crate::output::{Output, Style};

/// How long a server may take to say that it is well.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Say which engine, which Postgres and which protections are in force, and whether the server answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
The exit status is 1 when tools cannot run here: no engine, or a Postgres that cannot be used. Postgres is the one that \
the running server uses, else the one that DATABASE_URL names.

Examples:
  rcrt doctor
  rcrt doctor --output json")]
pub struct Doctor {}

#[derive(Serialize)]
struct Findings {
    version: &'static str,
    engine: Engine,
    postgres: Postgres,
    server: Server,
    data_folder: DataFolder,
}

#[derive(Serialize)]
struct Engine {
    name: Option<String>,
    version: Option<String>,
    has_snapshot: bool,
    protections: Vec<Protection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Default, Serialize)]
struct Postgres {
    /// `embedded` or `external`.
    kind: &'static str,
    /// `db:5432/rcrt`, for an external one.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// `18.6`, as far as it can be told.
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// No store can be on it.
    #[serde(skip)]
    is_fatal: bool,
}

#[derive(Serialize)]
struct Server {
    url: Url,
    reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct DataFolder {
    path: PathBuf,
    exists: bool,
    has_token: bool,
    /// The process that works on it, as far as it can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<String>,
    free_bytes: Option<u64>,
}

impl Doctor {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let server = config.server_url()?;
        let (engine, postgres, server) = tokio::join!(engine(), postgres(config), answers(server));
        let findings = Findings {
            version: env!("CARGO_PKG_VERSION"),
            engine,
            postgres,
            server,
            data_folder: DataFolder {
                path: std::path::absolute(&config.data)?,
                exists: config.data.is_dir(),
                has_token: config.token_file().is_file(),
                held_by: held_by(&config.data),
                free_bytes: free_bytes(&config.data),
            },
        };
        if output.is_json() {
            output.json(&findings)?;
        } else {
            print(output, &findings)?;
        }
        let is_well = findings.engine.problem.is_none() && !findings.postgres.is_fatal;
        if is_well { Ok(()) } else { Err(Failure::Shown.into()) }
    }
}

/// Starts a sandbox for a moment: what it reports is what calls get here.
async fn engine() -> Engine {
    let report = async {
        let sandbox = Sandbox::start(SandboxOptions::new(worker_command()?)).await?;
        let report = sandbox.report().clone();
        sandbox.close().await;
        anyhow::Ok(report)
    };
    match report.await {
        Ok(Report { engine, engine_version, has_snapshot, protections }) => {
            Engine { name: Some(engine), version: Some(engine_version), has_snapshot, protections, problem: None }
        }
        Err(error) => Engine {
            name: None,
            version: None,
            has_snapshot: false,
            protections: Vec::new(),
            problem: Some(format!("{error:#}")),
        },
    }
}

/// The Postgres that the running server uses; else the one that the next start would.
async fn postgres(config: &Config) -> Postgres {
    let named = std::env::var("DATABASE_URL").ok().filter(|url| !url.is_empty());
    let used = PostgresUsed::read(&config.data);
    let served = used.as_ref().filter(|_| held_by(&config.data).is_some());
    match (named, served, used.as_ref()) {
        (_, Some(PostgresUsed { place: None, .. }), _) => embedded(&config.data).await,
        (Some(url), Some(used), _) if used.place.as_ref() != Some(&assembly::place(&url)) => told(used, None),
        (Some(url), _, _) => external(&url).await,
        (None, Some(used), _) => told(used, None),
        (None, None, Some(used)) if used.place.is_some() => {
            told(used, Some("as of the last start; set DATABASE_URL to have it looked at"))
        }
        (None, None, _) => embedded(&config.data).await,
    }
}

/// What the start wrote down of one that only the server can ask.
fn told(used: &PostgresUsed, remark: Option<&str>) -> Postgres {
    let PostgresUsed { place, version, vector } = used.clone();
    let problem = remark.map(str::to_owned);
    Postgres { kind: "external", place, version: Some(version), vector, problem, is_fatal: false }
}

async fn external(url: &str) -> Postgres {
    if let Err(problem) = assembly::check_url(Some(&url.to_owned())) {
        let problem = problem.to_string().replace("--database-url", "DATABASE_URL");
        return Postgres { kind: "external", problem: Some(problem), is_fatal: true, ..Postgres::default() };
    }
    let place = Some(assembly::place(url));
    Postgres { kind: "external", place, ..looked_at(url).await }
}

async fn embedded(data: &Path) -> Postgres {
    if let Some(url) = running_cluster(data) {
        return Postgres { kind: "embedded", ..looked_at(&url).await };
    }
    let version = std::fs::read_to_string(data.join("postgres/PG_VERSION")).ok().map(|text| text.trim().to_owned());
    let problem = if version.is_some() { "is not running" } else { "is not set up yet; `rcrt up` does that" };
    Postgres { kind: "embedded", version, problem: Some(problem.into()), ..Postgres::default() }
}

async fn looked_at(url: &str) -> Postgres {
    let fatal = |problem: String| Postgres { problem: Some(problem), is_fatal: true, ..Postgres::default() };
    match tokio::time::timeout(ANSWER_TIME, assembly::ask(url)).await {
        Ok(Ok((version, Some(vector)))) => {
            Postgres { version: Some(version), vector: Some(vector), ..Postgres::default() }
        }
        Ok(Ok((version, None))) => Postgres {
            version: Some(version),
            ..fatal("has no pgvector: install the extension `vector` on its machine".into())
        },
        Ok(Err(error)) => fatal(format!("cannot be used: {error}")),
        Err(_) => fatal("does not answer".into()),
    }
}

/// The URL of the cluster in a data folder, if it runs: its pid file has the port on line 4, the socket's folder on 5.
fn running_cluster(data: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data.join("postgres/postmaster.pid")).ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let (port, folder) = (lines.get(3)?, lines.get(4)?);
    let mut url = Url::parse("postgres://localhost").ok()?;
    url.set_username(postgres::SUPERUSER).ok()?;
    url.set_path(postgres::DATABASE);
    url.query_pairs_mut().append_pair("host", folder).append_pair("port", port).append_pair("sslmode", "disable");
    Some(url.into())
}

async fn answers(url: Url) -> Server {
    let asked = client::Client::new(url.clone(), client::Credentials::Token(String::new()));
    match tokio::time::timeout(ANSWER_TIME, asked.health()).await {
        Ok(Ok(health)) => {
            let problem = (health.status != "ok").then_some(health.status);
            Server { url, reachable: true, version: Some(health.version), problem }
        }
        Ok(Err(error)) => {
            // That it cannot be reached is said already.
            let why = if let StoreError::Unavailable(why) = error { why } else { error.to_string() };
            Server { url, reachable: false, version: None, problem: Some(why) }
        }
        Err(_) => Server { url, reachable: false, version: None, problem: Some("does not answer".into()) },
    }
}

/// Who holds the folder's lock; nobody when it can be had.
fn held_by(folder: &Path) -> Option<String> {
    let mut file = std::fs::File::open(folder.join("lock")).ok()?;
    if !matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)) {
        return None;
    }
    let mut text = String::new();
    std::io::Read::read_to_string(&mut file, &mut text).ok()?;
    let holder: postgres::Holder = serde_json::from_str(&text).unwrap_or_default();
    Some(holder.to_string())
}

/// What is left on the disk of the folder, or of the first one above it that is there.
fn free_bytes(folder: &Path) -> Option<u64> {
    let folder = std::path::absolute(folder).ok()?;
    let there = folder.ancestors().find(|path| path.exists())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn print(output: Output, findings: &Findings) -> anyhow::Result<()> {
    let row = |name: &str, value: &str, problem: Option<&String>| {
        let name = output.paint(Style::Bold, &format!("{name:<13}"));
        let problem = problem.map(|text| format!(" {}", output.paint(Style::Warning, text))).unwrap_or_default();
        output.line(&format!("{name}{value}{problem}"))
    };
    row("rcrt", findings.version, None)?;
    let engine = &findings.engine;
    let name = engine.name.as_deref().unwrap_or("none:");
    let version = engine.version.as_deref().unwrap_or_default();
    let snapshot = if engine.has_snapshot { ", starts from a snapshot" } else { "" };
    row("Engine", &format!("{name} {version}{snapshot}"), engine.problem.as_ref())?;
    let postgres = &findings.postgres;
    let vector = postgres.vector.as_ref().map(|version| format!(" with pgvector {version}")).unwrap_or_default();
    let version = postgres.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let place = postgres.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let told = format!("{}{version}{vector}{place}{}", postgres.kind, if postgres.is_fatal { ":" } else { "" });
    row("Postgres", &told, postgres.problem.as_ref())?;
    let server = &findings.server;
    let state = if server.reachable { "answers" } else { "cannot be reached:" };
    row("Server", &format!("{} {state}", server.url), server.problem.as_ref())?;
    let folder = &findings.data_folder;
    let state = match (folder.exists, folder.has_token) {
        (false, _) => "is not there yet",
        (true, false) => "is there, without a token",
        (true, true) => "is there",
    };
    row("Data folder", &format!("{} {state}", folder.path.display()), None)?;
    if let Some(holder) = &folder.held_by {
        row("  in use by", holder, None)?;
    }
    if let Some(bytes) = folder.free_bytes {
        row("Free space", &format!("{:.1} GB", bytes as f64 / 1e9), None)?;
    }
    if !engine.protections.is_empty() {
        output.line(&format!("\n{}", output.paint(Style::Bold, "Around each tool call:")))?;
    }
    for protection in &engine.protections {
        let state = match &protection.state {
            ProtectionState::Applied => output.paint(Style::Good, "in force"),
            ProtectionState::Unavailable(why) => format!("{} ({why})", output.paint(Style::Bad, "NOT in force")),
        };
        output.line(&format!("  {:<28}{state}", protection.name))?;
    }
    Ok(())
}

//! `rcrt doctor`: the parts of this installation and their health, with or without a running
//! server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rcrt_a2a::KnownAgent;
use rcrt_breadcrumb::StoreError;
use rcrt_sandbox::{CgroupLocation, Level, Protection, ProtectionState, Report, Sandbox, SandboxOptions, level};
use serde::Serialize;
use url::Url;

use super::a2a_state;
use super::doctor_runbooks::{self, Known, RunbookCheck};
use super::doctor_stored::Stored;
use super::doctor_tools::Tools;
use super::mcp_state::{self, ServerWithState};
use crate::assembly::{self, DatabaseInfo, EmbeddingArgs, NativeToolOptions, sandbox_level, worker_command};
use crate::config::Config;
use crate::exit::Failure;
use crate::output::{Output, Style};
use crate::settings::EffectiveSetting;

/// Timeout of a health check.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Show the engine, Postgres, the protections in force, and whether the server responds
#[derive(Debug, Args)]
#[command(after_long_help = "\
The exit status is 1 if tools cannot run here: no engine, a protection that the sandbox level requires and this machine \
does not have, a Postgres that cannot be used, or a missing key of secrets. Postgres is the one that the running server \
uses, else the one in DATABASE_URL.

It also performs the first checks of each runbook in docs/operate.

The tools that wait for something are listed with what to do. If a server responds, they are as its runners report them; \
else as a runner with the same options (or the same environment) would find them.

Examples:
  rcrt doctor
  rcrt doctor --output json
  rcrt doctor --sandbox minimal")]
pub struct Doctor {
    /// The sandbox level to check: strict or minimal
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    sandbox: Level,
    #[command(flatten)]
    native: NativeToolOptions,
    #[command(flatten)]
    embedding: EmbeddingArgs,
}

#[derive(Serialize)]
struct Findings {
    version: &'static str,
    engine: Engine,
    sandbox: SandboxProtections,
    postgres: Postgres,
    /// The model of search by meaning, with these options.
    search_by_meaning: String,
    server: Server,
    data_folder: DataFolder,
    /// The settings of a runner with the same options.
    settings: Vec<EffectiveSetting>,
    stored: Stored,
    tools: Tools,
    /// Empty if no server responds.
    mcp_servers: Vec<ServerWithState>,
    /// The same.
    agents: Vec<KnownAgent>,
    runbooks: Vec<RunbookCheck>,
}

#[derive(Serialize)]
struct Engine {
    name: Option<&'static str>,
    version: Option<String>,
    has_snapshot: bool,
    /// Limits that the engine cannot enforce itself.
    left_to_process: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The protections around tools, and whether they are enough.
#[derive(Default, Serialize)]
struct SandboxProtections {
    /// The requested level.
    level: String,
    /// A runner with that level starts on this machine.
    is_enough: bool,
    protections: Vec<ProtectionReport>,
    /// What `strict` requires and this machine does not have.
    missing: Vec<Missing>,
    /// The folders in which workers get their control groups.
    cgroups: Vec<CgroupLocation>,
}

#[derive(Serialize)]
struct ProtectionReport {
    #[serde(flatten)]
    protection: Protection,
    /// The requirements of `strict` that this protection fulfils, alone or as an alternative.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required_for: Vec<&'static str>,
}

#[derive(Serialize)]
struct Missing {
    name: String,
    reason: String,
}

#[derive(Default, Serialize)]
struct Postgres {
    /// `embedded` or `external`.
    kind: &'static str,
    /// `db:5432/rcrt`, for an external one.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// Such as `18.6`, if it is known.
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// A store cannot use it.
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
    /// The process that has locked it, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<String>,
    free_bytes: Option<u64>,
    /// Programs are stopped if less than this is free.
    min_free_bytes: u64,
    /// Bounds on Python packages: each set, and all sets together.
    packages_set_bytes: u64,
    packages_total_bytes: u64,
    /// Bound on the working folder.
    workdir_bytes: u64,
}

impl Doctor {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        self.native.check(&config.data)?;
        let server = config.server_url()?;
        let ((engine, protections), postgres, server) =
            tokio::join!(engine(self.sandbox), postgres(config), check_server(server));
        let stored = Stored::read(config).await;
        let tools = Tools::find(config, &self.native, server.reachable).await;
        let server_responds = server.reachable;
        let disk = self.native.disk_bounds();
        let known = Known {
            server_version: server.version.as_deref(),
            server_problem: server.problem.as_deref(),
            min_free_bytes: disk.min_free,
        };
        let runbooks = doctor_runbooks::checks(config, &known).await;
        let findings = Findings {
            version: env!("CARGO_PKG_VERSION"),
            engine,
            sandbox: protections,
            postgres,
            search_by_meaning: self.embedding.describe(),
            server,
            data_folder: DataFolder {
                path: std::path::absolute(&config.data)?,
                exists: config.data.is_dir(),
                has_token: config.token_file().is_file(),
                held_by: held_by(&config.data),
                free_bytes: free_bytes(&config.data),
                min_free_bytes: disk.min_free,
                packages_set_bytes: disk.packages_set,
                packages_total_bytes: disk.packages_total,
                workdir_bytes: disk.workdir,
            },
            settings: self.native.settings(&config.data)?.in_force().to_vec(),
            stored,
            tools,
            mcp_servers: if server_responds { mcp_servers(config).await } else { Vec::new() },
            agents: if server_responds { agents(config).await } else { Vec::new() },
            runbooks,
        };
        if output.is_json() {
            output.json(&findings)?;
        } else {
            print(output, &findings)?;
        }
        let is_reusable = findings.sandbox.is_enough && !findings.postgres.is_fatal && !findings.stored.lacks_keys();
        if is_reusable { Ok(()) } else { Err(Failure::Shown.into()) }
    }
}

/// The MCP servers of the tenant, if they can be read.
async fn mcp_servers(config: &Config) -> Vec<ServerWithState> {
    let Ok(store) = crate::connection::store(config) else { return Vec::new() };
    let read = tokio::time::timeout(ANSWER_TIME, mcp_state::servers(&*store)).await;
    read.ok().and_then(Result::ok).unwrap_or_default()
}

/// The other agents that the tenant knows, if they can be read.
async fn agents(config: &Config) -> Vec<KnownAgent> {
    let Ok(store) = crate::connection::store(config) else { return Vec::new() };
    let read = tokio::time::timeout(ANSWER_TIME, rcrt_a2a::agents(&*store)).await;
    read.ok().and_then(Result::ok).unwrap_or_default()
}

/// Starts a sandbox briefly and returns its report. It starts with level minimal, so that it can
/// report missing protections.
async fn engine(level: Level) -> (Engine, SandboxProtections) {
    let report = async {
        let options = SandboxOptions { level: Level::Minimal, ..SandboxOptions::new(worker_command()?) };
        let sandbox = Sandbox::start(options).await?;
        let report = sandbox.report().clone();
        sandbox.close().await;
        anyhow::Ok(report)
    };
    match report.await {
        Ok(report) => {
            let protections = SandboxProtections::of(&report, level);
            let Report { engine_version, has_snapshot, left_to_process, .. } = report;
            let (name, version) = (Some("V8"), Some(engine_version));
            (Engine { name, version, has_snapshot, left_to_process, problem: None }, protections)
        }
        Err(error) => {
            let problem = Some(format!("{error:#}"));
            let engine =
                Engine { name: None, version: None, has_snapshot: false, left_to_process: Vec::new(), problem };
            let protections = SandboxProtections { level: level.to_string(), ..SandboxProtections::default() };
            (engine, protections)
        }
    }
}

impl SandboxProtections {
    fn of(report: &Report, level: Level) -> Self {
        let missing: Vec<Missing> =
            report.missing().into_iter().map(|(name, reason)| Missing { name, reason }).collect();
        let required_for =
            |name: &str| level::REQUIRED.iter().filter(|(_, by)| by.contains(&name)).map(|(what, _)| *what).collect();
        let wall = |protection: &Protection| ProtectionReport {
            required_for: required_for(&protection.name),
            protection: protection.clone(),
        };
        Self {
            level: level.to_string(),
            is_enough: level == Level::Minimal || missing.is_empty(),
            protections: report.protections.iter().map(wall).collect(),
            missing,
            cgroups: report.cgroups.clone(),
        }
    }

    fn print(&self, output: Output) -> anyhow::Result<()> {
        if self.protections.is_empty() {
            return Ok(());
        }
        output.line(&format!("\n{}", output.paint(Style::Bold, "Around each tool call:")))?;
        for ProtectionReport { protection, required_for } in &self.protections {
            let state = match &protection.state {
                ProtectionState::Applied => output.paint(Style::Good, "in force"),
                ProtectionState::Unavailable(why) => format!("{} ({why})", output.paint(Style::Bad, "NOT in force")),
            };
            let mark = if required_for.is_empty() { ' ' } else { '*' };
            output.line(&format!("{mark} {:<28}{state}", protection.name))?;
        }
        output.line("* is required by --sandbox strict, or is an alternative to a required one")?;
        for CgroupLocation { version, controllers, folder } in &self.cgroups {
            let controllers = controllers.join(", ");
            output
                .line(&format!("  control groups of version {version} below {} ({controllers})", folder.display()))?;
        }
        let Some(first) = self.missing.first() else {
            return output.line(&format!("\n{}", output.paint(Style::Good, "All required protections are in force.")));
        };
        output.line(&format!("\n{}", output.paint(Style::Bad, "Required, but not available on this machine:")))?;
        let width = self.missing.iter().map(|missing| missing.name.len()).fold(first.name.len(), usize::max) + 2;
        for Missing { name, reason } in &self.missing {
            output.line(&format!("  {name:<width$}{reason}"))?;
        }
        output.line(if self.is_enough {
            "With --sandbox minimal a runner starts anyway; run only tools that you trust."
        } else {
            "A runner does not start on this machine. With --sandbox minimal it does, at your own risk."
        })
    }
}

/// The Postgres that the running server uses, else the one that the next start would use.
async fn postgres(config: &Config) -> Postgres {
    let named = std::env::var("DATABASE_URL").ok().filter(|url| !url.is_empty());
    let used = DatabaseInfo::read(&config.data);
    let served = used.as_ref().filter(|_| held_by(&config.data).is_some());
    match (named, served, used.as_ref()) {
        (_, Some(DatabaseInfo { place: None, .. }), _) => embedded(&config.data).await,
        (Some(url), Some(used), _) if used.place.as_ref() != Some(&assembly::database_address(&url)) => {
            recorded(used, None)
        }
        (Some(url), _, _) => external(&url).await,
        (None, Some(used), _) => recorded(used, None),
        (None, None, Some(used)) if used.place.is_some() => {
            recorded(used, Some("as of the last start; set DATABASE_URL to check it"))
        }
        (None, None, _) => embedded(&config.data).await,
    }
}

/// An external Postgres, as recorded by the last start.
fn recorded(used: &DatabaseInfo, remark: Option<&str>) -> Postgres {
    let DatabaseInfo { place, version, vector } = used.clone();
    let problem = remark.map(str::to_owned);
    Postgres { kind: "external", place, version: Some(version), vector, problem, is_fatal: false }
}

async fn external(url: &str) -> Postgres {
    if let Err(problem) = assembly::check_url(Some(&url.to_owned())) {
        let problem = problem.to_string().replace("--database-url", "DATABASE_URL");
        return Postgres { kind: "external", problem: Some(problem), is_fatal: true, ..Postgres::default() };
    }
    let place = Some(assembly::database_address(url));
    Postgres { kind: "external", place, ..checked(url).await }
}

async fn embedded(data: &Path) -> Postgres {
    if let Some(url) = running_cluster(data) {
        return Postgres { kind: "embedded", ..checked(&url).await };
    }
    let version = std::fs::read_to_string(data.join("postgres/PG_VERSION")).ok().map(|text| text.trim().to_owned());
    let problem = if version.is_some() { "is not running" } else { "is not set up yet; start `rcrt up`" };
    Postgres { kind: "embedded", version, problem: Some(problem.into()), ..Postgres::default() }
}

async fn checked(url: &str) -> Postgres {
    let fatal = |problem: String| Postgres { problem: Some(problem), is_fatal: true, ..Postgres::default() };
    match tokio::time::timeout(ANSWER_TIME, rcrt_store::server_version(url)).await {
        Ok(Ok((version, Some(vector)))) => {
            Postgres { version: Some(version), vector: Some(vector), ..Postgres::default() }
        }
        Ok(Ok((version, None))) => Postgres {
            version: Some(version),
            ..fatal("has no pgvector; install the extension `vector` on its machine".into())
        },
        Ok(Err(error)) => {
            let text = error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
            fatal(format!("cannot be used: {text}"))
        }
        Err(_) => fatal("does not respond".into()),
    }
}

/// Returns the URL of a running cluster in a data folder. Lines 4 and 5 of its pid file are the
/// port and the socket's folder.
pub(super) fn running_cluster(data: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data.join("postgres/postmaster.pid")).ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let (port, folder) = (lines.get(3)?, lines.get(4)?);
    let mut url = Url::parse("postgres://localhost").ok()?;
    url.set_username(rcrt_postgres::SUPERUSER).ok()?;
    // Query only the server's state: the superuser must not use a database that can come from a
    // backup.
    url.set_path("postgres");
    url.query_pairs_mut().append_pair("host", folder).append_pair("port", port).append_pair("sslmode", "disable");
    Some(url.into())
}

async fn check_server(url: Url) -> Server {
    let asked = rcrt_client::Client::new(url.clone(), rcrt_client::Credentials::Token(String::new()));
    match tokio::time::timeout(ANSWER_TIME, asked.health()).await {
        Ok(Ok(health)) => {
            let problem = (health.status != "ok").then_some(health.status);
            Server { url, reachable: true, version: Some(health.version), problem }
        }
        Ok(Err(error)) => {
            // The output already says that the server cannot be reached.
            let why = if let StoreError::Unavailable(why) = error { why } else { error.to_string() };
            Server { url, reachable: false, version: None, problem: Some(why) }
        }
        Err(_) => Server { url, reachable: false, version: None, problem: Some("does not respond".into()) },
    }
}

/// Returns the holder of the folder's lock, or `None` if it is not locked.
fn held_by(folder: &Path) -> Option<String> {
    let mut file = std::fs::File::open(folder.join("lock")).ok()?;
    if !matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)) {
        return None;
    }
    let mut text = String::new();
    std::io::Read::read_to_string(&mut file, &mut text).ok()?;
    let holder: rcrt_postgres::LockHolder = serde_json::from_str(&text).unwrap_or_default();
    Some(holder.to_string())
}

/// Free bytes on the disk of the folder, or of its first parent that exists.
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
    let name = engine.name.unwrap_or("none:");
    let version = engine.version.as_deref().unwrap_or_default();
    let snapshot = if engine.has_snapshot { ", starts from a snapshot" } else { "" };
    row("Engine", &format!("{name} {version}{snapshot}"), engine.problem.as_ref())?;
    for (index, limit) in engine.left_to_process.iter().enumerate() {
        row("", &format!("{}{limit}", if index == 0 { "enforced by the process: " } else { "and: " }), None)?;
    }
    let postgres = &findings.postgres;
    let vector = postgres.vector.as_ref().map(|version| format!(" with pgvector {version}")).unwrap_or_default();
    let version = postgres.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let place = postgres.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let text = format!("{}{version}{vector}{place}{}", postgres.kind, if postgres.is_fatal { ":" } else { "" });
    row("Postgres", &text, postgres.problem.as_ref())?;
    row("By meaning", &findings.search_by_meaning, None)?;
    let server = &findings.server;
    let state = if server.reachable { "responds" } else { "cannot be reached:" };
    row("Server", &format!("{} {state}", server.url), server.problem.as_ref())?;
    let folder = &findings.data_folder;
    let state = match (folder.exists, folder.has_token) {
        (false, _) => "does not exist yet",
        (true, false) => "exists, without a token",
        (true, true) => "exists",
    };
    row("Data folder", &format!("{} {state}", folder.path.display()), None)?;
    if let Some(holder) = &folder.held_by {
        row("  in use by", holder, None)?;
    }
    if let Some(bytes) = folder.free_bytes {
        row("Free space", &format!("{:.1} GB", bytes as f64 / 1e9), None)?;
    }
    let mb = |bytes: u64| bytes / 1_000_000;
    let (set, total, free) = (folder.packages_set_bytes, folder.packages_total_bytes, folder.min_free_bytes);
    row("Disk bounds", &format!("Python packages {} MB per set, {} MB in total", mb(set), mb(total)), None)?;
    if folder.workdir_bytes > 0 {
        row("", &format!("working folder {} MB", mb(folder.workdir_bytes)), None)?;
    }
    if free > 0 {
        row("", &format!("programs are stopped when less than {} MB is free", mb(free)), None)?;
    }
    findings.stored.print(output)?;
    findings.sandbox.print(output)?;
    print_settings(output, &findings.settings)?;
    findings.tools.print(output)?;
    if !findings.mcp_servers.is_empty() {
        output.line(&format!("\n{}", output.paint(Style::Bold, "MCP servers:")))?;
    }
    findings
        .mcp_servers
        .iter()
        .try_for_each(|server| output.line(&format!("  {}", mcp_state::line(output, server))))?;
    if !findings.agents.is_empty() {
        output.line(&format!("\n{}", output.paint(Style::Bold, "Agents:")))?;
    }
    findings.agents.iter().try_for_each(|known| output.line(&format!("  {}", a2a_state::line(output, known))))?;
    doctor_runbooks::print(output, &findings.runbooks)
}

fn print_settings(output: Output, settings: &[EffectiveSetting]) -> anyhow::Result<()> {
    output.line(&format!("\n{}", output.paint(Style::Bold, "Settings of the program's own tools:")))?;
    let width =
        |text: fn(&EffectiveSetting) -> &str| settings.iter().map(|one| text(one).len()).fold(4, usize::max) + 2;
    let (key, value) = (width(|one| one.key), width(|one| &one.value).min(40));
    for EffectiveSetting { key: name, value: text, source, from } in settings {
        let from = from.as_ref().map(|from| format!(" {from}")).unwrap_or_default();
        let text = if text.is_empty() { "none" } else { text };
        output.line(&format!("  {name:<key$}{text:<value$}{source}{from}"))?;
    }
    Ok(())
}

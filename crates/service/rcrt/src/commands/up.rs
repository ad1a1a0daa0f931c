//! `rcrt up`: everything in one process, and one call through the public API as a check.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::{Breadcrumb, Breadcrumbs, Records, ToolRequest};
use rcrt_client::{Client, Credentials};
use rcrt_validate::Author;
use serde_json::json;
use tokio::task::spawn_blocking;
use url::Url;
use uuid::Uuid;

use super::start_retry::retried;
use super::{catalog_wait, open};
use crate::assembly::{
    DatabaseInfo, PreparedRunner, RunnerTaskOptions, ServingOptions, StartedServer, System, WebhookHosts,
    WebhookOptions,
};
use crate::compat::CompatOption;
use crate::config::Config;
use crate::exit::Failure;
use crate::output::{Output, Style};
use crate::progress::{self, ConsoleProgress};
use crate::seed::{self, SeedOutcome, SeedSet};
use crate::shell::quoted;
use crate::signals::Signals;

/// Timeout of the first call. A new installation has to compile and warm up.
const FIRST_CALL: Duration = Duration::from_mins(1);

/// Start everything in one process: database, server, runner and the included tools
#[derive(Debug, Args)]
#[command(after_long_help = "\
Starts the embedded Postgres in the data folder (or uses --database-url), the HTTP server and one runner, seeds the \
included tools, calls the calculator once through the public API, and then runs until Ctrl-C or SIGTERM. A second \
Ctrl-C does not wait for running calls.

A deleted tool of the program is created again at the next start; a changed one is not touched.

Examples:
  rcrt up
  rcrt up --data /var/lib/rcrt --listen 127.0.0.1:9000
  rcrt up --compat rcrt --auth open
  DATABASE_URL=postgres://rcrt@db/rcrt rcrt up")]
pub struct Up {
    #[command(flatten)]
    compat: CompatOption,
    #[command(flatten)]
    serving: ServingOptions,
    /// Do not create the included tools at the start
    #[arg(long, env = "RCRT_NO_SEED", value_parser = clap::builder::FalseyValueParser::new())]
    no_seed: bool,
    #[command(flatten)]
    webhook_delivery: WebhookOptions,
    #[command(flatten)]
    runner_task: RunnerTaskOptions,
}

impl Up {
    pub async fn run(mut self, config: &Config, output: Output) -> anyhow::Result<()> {
        (self.serving.rcrt_compat, self.runner_task.rcrt_compat) = (self.compat.is_rcrt(), self.compat.is_rcrt());
        self.runner_task.drain = Some(self.serving.drain_time());
        self.serving.allowed_private = self.runner_task.private_hosts.allowed.clone();
        self.serving.check()?;
        self.runner_task.native.own_urls = self.serving.own_urls();
        self.runner_task.native.public_url = self.serving.public_url().map(str::to_owned);
        self.runner_task.native.check(&config.data)?;
        self.serving.meaning_weight = Some(self.runner_task.native.settings(&config.data)?.meaning_weight()?);
        let signals = Signals::listen()?;
        let progress = ConsoleProgress::new();
        let mut system = System::default();
        let mut prepared = None;
        let ready = AtomicBool::new(false);
        let ended = tokio::select! {
            ended = self.serve(config, output, &progress, (&mut system, &mut prepared), &ready) => ended,
            () = signals.stop.cancelled() => {
                progress::say("Stopping as soon as the running calls have finished; Ctrl-C again stops now");
                // A script that waits for the start must not take this for success.
                let unfinished = signals.is_interrupted() && !ready.load(Ordering::Relaxed);
                if unfinished { Err(Failure::Interrupted.into()) } else { Ok(()) }
            }
        };
        system.close(&signals.hurry).await;
        // The start was interrupted before a runner used it.
        if let Some(prepared) = prepared {
            prepared.close().await;
        }
        if ended.is_ok() {
            progress::say("Stopped");
        }
        ended
    }

    /// Starts everything. Returns only with the reason why it cannot continue.
    async fn serve(
        &self,
        config: &Config,
        output: Output,
        progress: &ConsoleProgress,
        (system, prepared): (&mut System, &mut Option<PreparedRunner>),
        ready: &AtomicBool,
    ) -> anyhow::Result<()> {
        let begun_at = Instant::now();
        let begun = self.serving.begin(config).await?;
        let data = begun.data();
        // These three are independent of each other.
        let seeds = (!self.no_seed).then(|| spawn_blocking(|| SeedSet::embedded(Author::System, &[])));
        let preparing = async {
            *prepared = Some(PreparedRunner::start(&self.runner_task, &data).await?);
            anyhow::Ok(())
        };
        // Wait for both even if one fails, so that the started parts can be stopped in order.
        let (served, could_prepare) = tokio::join!(self.serving.open(begun, progress, system), preparing);
        let StartedServer { base_url, data, token } = served?;
        could_prepare?;
        let hosts = WebhookHosts {
            allowed_private: self.runner_task.private_hosts.allowed.clone(),
            denied: self.runner_task.denied_hosts.shared(),
        };
        system.start_webhook_delivery(&self.webhook_delivery, hosts)?;
        progress.step("Starting the runner");
        let store = system.acting_as(system.agents()?.first.clone())?;
        let seeder = system.agents()?.seeder.clone();
        let (only_own, seeding) = (seeder.agent_id, system.seeding_as(seeder)?);
        let mut awaited = Vec::new();
        if let Some(seeds) = seeds {
            let set = seeds.await.context("reading the seeds failed")?;
            let seeded = async {
                if retried("look for the catalog", || catalog_wait::is_missing(&*store)).await? {
                    awaited = catalog_wait::tools(&set);
                }
                retried("write the included tools", || seed(&*seeding, only_own, &set)).await
            };
            tokio::select! {
                seeded = seeded => seeded?,
                reason = system.lost() => return Err(reason),
            }
        }
        if let Some(prepared) = prepared.take() {
            system.start_runner(prepared)?;
        }
        progress.step("Calling the calculator");
        let shown = self.serving.public_url().unwrap_or(base_url.as_str()).trim_end_matches('/');
        let ((response, took), sign_in) = tokio::select! {
            answer = async {
                let answer = retried("call the calculator", || first_call(&base_url, token.clone())).await?;
                if !awaited.is_empty() {
                    retried("read the catalog", || catalog_wait::until_written(&*store, &awaited)).await?;
                }
                let new_link = || open::new_link(&base_url, token.clone(), shown);
                anyhow::Ok((answer, retried("make a sign-in link", new_link).await?))
            } => answer?,
            reason = system.lost() => return Err(reason),
        };
        progress.done();
        ready.store(true, Ordering::Relaxed);

        let summary = Summary {
            sign_in: &sign_in,
            response: &response,
            took,
            ready: begun_at.elapsed(),
            base_url: &base_url,
            public_url: self.serving.public_url(),
            data: &data,
            config,
            postgres: system.postgres(),
        };
        summary.print(output)?;
        Err(system.lost().await)
    }
}

/// Writes the included records. Those that another agent changed last are kept.
async fn seed(store: &dyn Breadcrumbs, only_own: Uuid, set: &SeedSet) -> anyhow::Result<()> {
    let options = seed::Options { only_own: Some(only_own), ..seed::Options::default() };
    let rows = seed::apply(store, set, options, None).await.context("the seeds cannot be written")?;
    for row in &rows {
        match row.what {
            SeedOutcome::Refused => {
                tracing::error!(
                    file = row.path,
                    findings = row.findings.join("; "),
                    "an included record was not written"
                );
            }
            SeedOutcome::Kept => {
                tracing::info!(
                    file = row.path,
                    "not updated, because it was changed here; `rcrt bootstrap --overwrite` resets it"
                );
            }
            SeedOutcome::Created | SeedOutcome::Updated => {
                tracing::debug!(file = row.path, what = ?row.what, "seeded");
            }
            SeedOutcome::Unchanged | SeedOutcome::Removed => {}
        }
    }
    Ok(())
}

/// Makes one call as any client does: request over HTTP, response on the event stream.
async fn first_call(base_url: &Url, token: String) -> anyhow::Result<(Breadcrumb, Duration)> {
    let client = Client::new(base_url.clone(), Credentials::Token(token));
    let request = ToolRequest::record("calculator", json!({"expression": "6 * 7"}), None, Some("workspace:hello"));
    let begun = Instant::now();
    let call = async {
        let asked = rcrt_pending_call::send_once(&client, request).await?;
        let answer = rcrt_pending_call::response(&client, &asked, &rcrt_pending_call::NoObserver).await?;
        client.get(answer.record).await
    };
    let response = tokio::time::timeout(FIRST_CALL, call)
        .await
        .with_context(|| format!("the first call got no response within {} s", FIRST_CALL.as_secs()))?
        .context("the first call failed")?;
    Ok((response, begun.elapsed()))
}

/// The summary that is printed after the start.
struct Summary<'a> {
    /// Works once.
    sign_in: &'a str,
    response: &'a Breadcrumb,
    took: Duration,
    ready: Duration,
    base_url: &'a Url,
    public_url: Option<&'a str>,
    data: &'a std::path::Path,
    config: &'a Config,
    postgres: Option<&'a DatabaseInfo>,
}

impl Summary<'_> {
    fn print(&self, output: Output) -> anyhow::Result<()> {
        let base = self.base_url.as_str().trim_end_matches('/');
        let token = self.data.join("token");
        if output.is_json() {
            return output.json(&json!({
                "response": self.response,
                "took_ms": self.took.as_secs_f64() * 1000.0,
                "ready_ms": self.ready.as_secs_f64() * 1000.0,
                "api": base,
                "public_url": self.public_url,
                "dashboard": format!("{}/", self.public_url.unwrap_or(base)),
                "sign_in": self.sign_in,
                "docs": format!("{}/docs", self.public_url.unwrap_or(base)),
                "data": self.data,
                "token_file": token,
                "postgres": self.postgres.map(|postgres| &postgres.version),
            }));
        }
        output.line(&serde_json::to_string_pretty(self.response)?)?;
        output.line(&format!(
            "\nResponse in {:.0} ms. Ready after {:.1} s.\n",
            self.took.as_secs_f64() * 1000.0,
            self.ready.as_secs_f64()
        ))?;
        let name = |text: &str| output.paint(Style::Bold, &format!("{text:<13}"));
        output.line(&format!("{}{base}", name("API")))?;
        if let Some(url) = self.public_url {
            output.line(&format!("{}{url}", name("Public URL")))?;
        }
        let shown = self.public_url.unwrap_or(base);
        output.line(&format!("{}{shown}/", name("Dashboard")))?;
        output.line(&format!("{}{}", name("Sign in"), self.sign_in))?;
        output.line(&format!("{}once, within 10 minutes; later with `rcrt open`", name("")))?;
        output.line(&format!("{}{shown}/docs", name("Docs")))?;
        output.line(&format!("{}{}", name("Data folder"), self.data.display()))?;
        output.line(&format!("{}{}", name("Token"), token.display()))?;
        if let Some(DatabaseInfo { place, version, .. }) = self.postgres {
            let place = place.as_deref().unwrap_or("embedded");
            output.line(&format!("{}{version}, {place}", name("Postgres")))?;
        }
        output.line(&format!("\n{}", output.paint(Style::Bold, "Next, in another terminal:")))?;
        let program = program(self.config);
        let shown_token = quoted(&self.config.token_file().display().to_string());
        for line in [
            format!("{program} call calculator '{{\"expression\": \"(1 + 2) * 3\"}}'"),
            format!("{program} tool list"),
            format!("{program} tool new my-tool --template data --dir my-tools"),
            format!("{program} bootstrap my-tools"),
            format!("{program} crumb watch --tag tool:response"),
            format!(
                "curl -H \"Authorization: Bearer $(cat {shown_token})\" '{base}/breadcrumbs?schema_name=tool.code.v1'"
            ),
        ] {
            output.line(&format!("  {line}"))?;
        }
        output.line("\nCtrl-C stops everything.")
    }
}

/// The command that starts this program from the same folder.
fn program(config: &Config) -> String {
    let called = std::env::args().next().unwrap_or_else(|| "rcrt".into());
    let mut words = quoted(&called);
    if config.data != std::path::Path::new(".rcrt") {
        words = format!("{words} --data {}", quoted(&config.data.display().to_string()));
    }
    words
}

//! `rcrt server`: the store and the HTTP server, without a runner.

use clap::Args;
use serde_json::json;

use crate::assembly::{ServingOptions, StartedServer, System, WebhookHosts, WebhookOptions};
use crate::compat::CompatOption;
use crate::config::Config;
use crate::host_options::{DeniedHosts, PrivateHosts};
use crate::output::Output;
use crate::progress::ConsoleProgress;
use crate::signals::Signals;

/// Start the store and the HTTP server, without a runner
#[derive(Debug, Args)]
#[command(after_long_help = "\
Calls wait in the queue until a runner claims them. `rcrt runner` starts one.

Examples:
  rcrt server --data /var/lib/rcrt
  rcrt server --database-url postgres://rcrt@db/rcrt --listen 0.0.0.0:8081")]
pub struct Server {
    #[command(flatten)]
    compat: CompatOption,
    #[command(flatten)]
    serving: ServingOptions,
    #[command(flatten)]
    webhook_delivery: WebhookOptions,
    #[command(flatten)]
    private_hosts: PrivateHosts,
    #[command(flatten)]
    denied_hosts: DeniedHosts,
    /// How much the meaning of a tool counts when tools are searched for, in percent. The rest is
    /// how well its words fit
    #[arg(long, env = "RCRT_SEARCH_MEANING_PERCENT", value_name = "N", default_value_t = 70,
        value_parser = clap::value_parser!(u8).range(0..=100))]
    search_meaning_percent: u8,
}

impl Server {
    pub async fn run(mut self, config: &Config, output: Output) -> anyhow::Result<()> {
        self.serving.rcrt_compat = self.compat.is_rcrt();
        self.serving.allowed_private = self.private_hosts.allowed.clone();
        self.serving.meaning_weight = Some(f64::from(self.search_meaning_percent) / 100.0);
        self.serving.check()?;
        let signals = Signals::listen()?;
        let progress = ConsoleProgress::new();
        let mut system = System::default();
        let ended = tokio::select! {
            ended = self.serve(config, output, &progress, &mut system) => ended,
            () = signals.stop.cancelled() => Ok(()),
        };
        system.close(&signals.hurry).await;
        ended
    }

    async fn serve(
        &self,
        config: &Config,
        output: Output,
        progress: &ConsoleProgress,
        system: &mut System,
    ) -> anyhow::Result<()> {
        let StartedServer { base_url, data, .. } =
            self.serving.open(self.serving.begin(config).await?, progress, system).await?;
        let allowed_private = self.private_hosts.allowed.clone();
        system.start_webhook_delivery(
            &self.webhook_delivery,
            WebhookHosts { allowed_private, denied: self.denied_hosts.shared() },
        )?;
        progress.done();
        let base = base_url.as_str().trim_end_matches('/');
        if output.is_json() {
            output.json(&json!({"api": base, "public_url": self.serving.public_url(), "data": data, "token_file": data.join("token")}))?;
        } else {
            if let Some(url) = self.serving.public_url() {
                output.line(&format!("public URL: {url}"))?;
            }
            output.line(&format!("listening on {base} (token: {})", data.join("token").display()))?;
        }
        Err(system.lost().await)
    }
}

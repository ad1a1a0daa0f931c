//! `rcrt server`: the store and the HTTP server, without a runner.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use serde_json::json;
use server::AuthMode;

use crate::assembly::{self, DataFolder, DatabaseOptions, System};
use crate::config::{Config, DEFAULT_LISTEN, listen_address};
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::signals::Signals;

/// Start the store and the HTTP server, without a runner
#[derive(Debug, Args)]
#[command(after_long_help = "\
Calls wait in the queue until a runner takes them: start one with `rcrt runner`.

Examples:
  rcrt server --data /var/lib/rcrt
  rcrt server --database-url postgres://rcrt@db/rcrt --listen 0.0.0.0:8081")]
pub struct Server {
    /// Where to listen
    #[arg(long, env = "RCRT_LISTEN", default_value = DEFAULT_LISTEN, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: SocketAddr,
    /// Who gets a token: who proves an agent's key, or anybody who asks (only when listening on this machine alone)
    #[arg(long, env = "RCRT_AUTH", default_value = "keys")]
    auth: Auth,
    #[command(flatten)]
    database: DatabaseOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    Keys,
    Open,
}

impl Auth {
    /// Tokens for everybody are for this machine alone.
    pub fn mode(self, listen: SocketAddr) -> anyhow::Result<AuthMode> {
        match self {
            Self::Keys => Ok(AuthMode::Keys),
            Self::Open if listen.ip().is_loopback() => Ok(AuthMode::Open),
            Self::Open => Err(Failure::Usage(format!(
                "--auth open gives a token to anybody who asks, so it is for 127.0.0.1 or [::1] only, not for {listen}"
            ))
            .into()),
        }
    }
}

impl Server {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let auth = self.auth.mode(self.listen)?;
        assembly::check_url(self.database.database_url.as_ref())?;
        let signals = Signals::listen()?;
        let progress = Progress::new();
        let mut system = System::default();
        let ended = tokio::select! {
            ended = self.serve(config, output, auth, &progress, &mut system) => ended,
            () = signals.stop.cancelled() => Ok(()),
        };
        system.close(&signals.hurry).await;
        ended
    }

    async fn serve(
        &self,
        config: &Config,
        output: Output,
        auth: AuthMode,
        progress: &Progress,
        system: &mut System,
    ) -> anyhow::Result<()> {
        let mut folder = DataFolder::take(&config.data)?;
        let listener = assembly::bind(self.listen).await?;
        let base_url = assembly::base_url(&listener)?;
        folder.announce(base_url.as_str())?;
        let (data, token_key) = (folder.path(), folder.keys.token);
        system.open_store(folder, &self.database, progress).await?;
        system.open_front(listener, auth, &token_key, &data)?;
        progress.done();
        let base = base_url.as_str().trim_end_matches('/');
        if output.is_json() {
            output.json(&json!({"api": base, "data": data, "token_file": data.join("token")}))?;
        } else {
            output.line(&format!("listening on {base} (token: {})", data.join("token").display()))?;
        }
        Err(system.lost().await)
    }
}

//! `rcrt health`: whether a server or a runner is ready, as an exit status.

use clap::Args;
use rcrt_breadcrumb::StoreError;
use rcrt_client::{Client, Credentials, refused_for_now};
use serde_json::json;
use url::Url;

use super::doctor::ANSWER_TIME;
use crate::config::{self, Config};
use crate::exit::Failure;
use crate::output::Output;

/// Exit with 0 if a server or a runner is ready, for health checks of containers
#[derive(Debug, Args)]
#[command(after_long_help = "\
A server is ready if its database responds and it is not stopping. A runner answers on the address of its \
--metrics-listen; it is ready if it can claim calls.

Examples:
  rcrt health
  rcrt health http://127.0.0.1:9464")]
pub struct Health {
    /// The server or the runner [default: the server that the other commands use]
    #[arg(value_name = "URL", value_parser = config::server)]
    url: Option<Url>,
}

impl Health {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let url = match self.url {
            Some(url) => url,
            None => config.server_url()?,
        };
        let client = Client::new(url.clone(), Credentials::Token(String::new()));
        let why = match tokio::time::timeout(ANSWER_TIME, client.health()).await {
            Ok(Ok(health)) if output.is_json() => {
                return output.json(&json!({"url": url, "status": health.status, "version": health.version}));
            }
            Ok(Ok(health)) => return output.line(&format!("{url} {} (version {})", health.status, health.version)),
            Ok(Err(StoreError::Unavailable(why))) => refused_for_now(&why).map_or_else(|| why.clone(), str::to_owned),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no response within {} s", ANSWER_TIME.as_secs()),
        };
        Err(Failure::Unreachable(format!("{url} is not ready: {why}")).into())
    }
}

//! The metrics and the health of a runner that has no server in its process.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use rcrt_runner::ClaimHealth;
use rcrt_server::ReadyCheck;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::metrics_token;
use crate::exit::fail;

#[derive(Debug, Args)]
pub struct MetricsOptions {
    /// Address on which this runner serves its metrics (/metrics) and whether it can claim calls
    /// (/health), such as 127.0.0.1:9464
    #[arg(long, env = "RCRT_METRICS_LISTEN", value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
    /// A token that callers of /metrics must send; at least 16 characters, required unless the
    /// address is of this machine
    #[arg(long, env = "RCRT_METRICS_TOKEN", hide_env_values = true, value_name = "TOKEN", value_parser = metrics_token)]
    metrics_token: Option<String>,
}

/// A listener, if one was asked for.
#[derive(Default)]
pub struct MetricsListener {
    serving: Option<(CancellationToken, JoinHandle<std::io::Result<()>>)>,
}

impl MetricsOptions {
    /// Starts to serve. Call it before the runner starts, so that no metric is lost.
    pub async fn listen(&self, claims: Arc<ClaimHealth>) -> anyhow::Result<MetricsListener> {
        let Some(address) = self.metrics_listen else { return Ok(MetricsListener::default()) };
        if !address.ip().is_loopback() && self.metrics_token.is_none() {
            fail!(
                Usage,
                "--metrics-listen {address} can be reached from other machines; set --metrics-token, or listen on 127.0.0.1"
            );
        }
        let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
        let (stop, token) = (CancellationToken::new(), self.metrics_token.clone());
        rcrt_server::install_metrics();
        tracing::info!(address = %listener.local_addr()?, "the metrics are served");
        let stopped = stop.clone();
        let ready: Arc<ReadyCheck> = Arc::new(move || claims.check());
        let serving = async move { rcrt_server::serve_metrics(listener, token.as_deref(), ready, stopped).await };
        Ok(MetricsListener { serving: Some((stop, tokio::spawn(serving))) })
    }
}

impl MetricsListener {
    pub async fn close(self) -> anyhow::Result<()> {
        if let Some((stop, serving)) = self.serving {
            stop.cancel();
            serving.await.context("the metrics listener failed")??;
        }
        Ok(())
    }
}

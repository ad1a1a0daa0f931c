//! Webhook delivery, as a task of this process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::{Deliveries, EgressLog};
use rcrt_egress::{DeniedHost, Egress, EgressOptions, PrivateHost};
use rcrt_webhooks::{Deliverer, DeliveryOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{EgressLogChannel, EgressLogWriter};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options for webhooks")]
pub struct WebhookOptions {
    /// Attempts before a delivery becomes a dead letter
    #[arg(long, env = "RCRT_WEBHOOK_MAX_ATTEMPTS", value_name = "N", default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=100))]
    webhook_max_attempts: u32,

    /// Age at which a delivery becomes a dead letter
    #[arg(long, env = "RCRT_WEBHOOK_MAX_AGE_HOURS", value_name = "HOURS", default_value_t = 24,
        value_parser = clap::value_parser!(u64).range(1..=720))]
    webhook_max_age_hours: u64,

    /// Maximum pause after a first failure; each further failure doubles it
    #[arg(long, env = "RCRT_WEBHOOK_FIRST_PAUSE_MS", value_name = "MS", default_value_t = 2_000,
        value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    webhook_first_pause_ms: u64,

    /// Maximum pause between two attempts
    #[arg(long, env = "RCRT_WEBHOOK_LONGEST_PAUSE_MS", value_name = "MS", default_value_t = 3_600_000,
        value_parser = clap::value_parser!(u64).range(100..=86_400_000))]
    webhook_longest_pause_ms: u64,

    /// Time for one attempt, including the receiver's response
    #[arg(long, env = "RCRT_WEBHOOK_TIMEOUT_MS", value_name = "MS", default_value_t = 20_000,
        value_parser = clap::value_parser!(u64).range(100..=300_000))]
    webhook_timeout_ms: u64,

    /// Maximum number of concurrent attempts
    #[arg(long, env = "RCRT_WEBHOOK_MOST", value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    webhook_most: u32,

    /// Maximum number of concurrent attempts of one webhook; with more than 1, its events do not
    /// arrive in order
    #[arg(long, env = "RCRT_WEBHOOK_PARALLEL", value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    webhook_parallel: u32,
}

impl WebhookOptions {
    fn delivery(&self) -> DeliveryOptions {
        let standard = DeliveryOptions::default();
        let mut retention = standard.retention;
        retention.waiting = Duration::from_hours(self.webhook_max_age_hours);
        let timeout = Duration::from_millis(self.webhook_timeout_ms);
        DeliveryOptions {
            most: self.webhook_most as usize,
            per_webhook: self.webhook_parallel as usize,
            max_attempts: self.webhook_max_attempts,
            first_pause: Duration::from_millis(self.webhook_first_pause_ms),
            longest_pause: Duration::from_millis(self.webhook_longest_pause_ms),
            connect_timeout: standard.connect_timeout.min(timeout),
            timeout,
            retention,
            ..standard
        }
    }
}

/// A running deliverer.
pub struct WebhookDelivery {
    stop: CancellationToken,
    task: JoinHandle<()>,
    egress_log_writer: EgressLogWriter,
}

/// The private hosts that webhooks can reach, and the hosts that they cannot.
pub struct WebhookHosts {
    pub allowed_private: Vec<PrivateHost>,
    pub denied: Arc<[DeniedHost]>,
}

impl WebhookDelivery {
    pub fn start(
        queue: Arc<dyn Deliveries>,
        options: &WebhookOptions,
        hosts: WebhookHosts,
        store_of: impl Fn(Uuid) -> Arc<dyn EgressLog> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let options = options.delivery();
        let records = EgressLogChannel::new();
        let WebhookHosts { allowed_private, denied } = hosts;
        let egress = EgressOptions { denied, log: Some(records.log.clone()), ..options.egress(allowed_private) };
        let gate = Egress::new(egress).context("the egress gate of webhooks cannot be created")?;
        let egress_log_writer = EgressLogWriter::start(records, store_of);
        let stop = CancellationToken::new();
        let task = tokio::spawn(Deliverer::new(queue, Arc::new(gate), options).run(stop.clone()));
        Ok(Self { stop, task, egress_log_writer })
    }

    /// Returns if the deliverer stops by itself.
    pub async fn lost(&mut self) {
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the delivery of webhooks failed");
        }
    }

    /// Waits some seconds for current attempts. If `hurry` is cancelled, leaves them to the next
    /// server.
    pub async fn close(mut self, hurry: &CancellationToken) {
        self.stop.cancel();
        if !self.task.is_finished() {
            tokio::select! {
                () = self.lost() => {}
                () = hurry.cancelled() => self.task.abort(),
            }
        }
        self.egress_log_writer.close().await;
    }
}

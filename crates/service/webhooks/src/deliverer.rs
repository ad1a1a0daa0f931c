//! Claims due deliveries, up to a limit of concurrent attempts. A receiver that hangs uses only the
//! capacity of its own webhook.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use metrics::{counter, gauge, histogram};
use rcrt_breadcrumb::{Deliveries, Delivery, DeliveryOutcome, StoreError};
use rcrt_egress::{Connections, Egress};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::DeliveryOptions;
use crate::attempt::attempt;
use crate::backoff::dice;
use crate::outcome::AttemptResult;

/// The pause between two removals of old deliveries.
const TIDY_EVERY: Duration = Duration::from_mins(1);
/// How long running attempts can continue when the deliverer stops. Another deliverer repeats the
/// others when their leases expire.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the connections to a webhook's receiver are kept after their last use.
const CONNECTIONS_KEPT: Duration = Duration::from_secs(30);
/// How often the result of an attempt is written. If all tries fail, the delivery is repeated when
/// its lease expires.
const WRITE_TRIES: u32 = 5;
const WRITE_PAUSE: Duration = Duration::from_millis(500);

/// Works on the queue until it is stopped.
pub struct Deliverer {
    queue: Arc<dyn Deliveries>,
    gate: Arc<Egress>,
    options: Arc<DeliveryOptions>,
    /// Each recently used webhook has its own connections, so that no webhook gets data that
    /// another one's receiver left on a connection.
    connections: HashMap<Uuid, (Instant, Arc<Connections>)>,
}

impl Deliverer {
    /// `gate` should not be shared; create it with [`DeliveryOptions::egress`].
    pub fn new(queue: Arc<dyn Deliveries>, gate: Arc<Egress>, options: DeliveryOptions) -> Self {
        Self { queue, gate, options: Arc::new(options), connections: HashMap::new() }
    }

    pub async fn run(mut self, stop: CancellationToken) {
        let mut under_way = JoinSet::new();
        let mut tidied_at: Option<Instant> = None;
        let mut is_failing = false;
        while !stop.is_cancelled() {
            let round = async {
                if tidied_at.is_none_or(|at| at.elapsed() >= TIDY_EVERY) {
                    self.queue.purge(&self.options.retention).await?;
                    tidied_at = Some(Instant::now());
                }
                let free = self.options.most.saturating_sub(under_way.len());
                if free == 0 {
                    return Ok(Vec::new());
                }
                self.queue.claim(&self.options.claim_request(free)).await
            };
            // A lease that is claimed at the moment of the stop expires by itself.
            let taken: Result<Vec<Delivery>, StoreError> = tokio::select! {
                () = stop.cancelled() => break,
                taken = round => taken,
            };
            let has_taken = match taken {
                Ok(taken) => {
                    is_failing = false;
                    let any = !taken.is_empty();
                    for delivery in taken {
                        self.start(&mut under_way, delivery);
                    }
                    any
                }
                Err(error) => {
                    // An outage of the store is logged once.
                    if !is_failing {
                        tracing::warn!(%error, "deliveries to webhooks are waiting for the store");
                        is_failing = true;
                    }
                    false
                }
            };
            self.connections.retain(|_, (used, _)| used.elapsed() < CONNECTIONS_KEPT);
            gauge!("rcrt_webhook_attempts_under_way").set(under_way.len() as f64);
            if has_taken && under_way.len() < self.options.most {
                // There may be more.
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.queue.queued() => {}
                Some(ended) = under_way.join_next() => log_panic(ended),
                () = sleep(self.options.poll) => {}
            }
            while let Some(ended) = under_way.try_join_next() {
                log_panic(ended);
            }
        }
        let ending = async {
            while let Some(ended) = under_way.join_next().await {
                log_panic(ended);
            }
        };
        if timeout(STOP_TIMEOUT, ending).await.is_err() {
            tracing::warn!("stopped before all receivers responded; these deliveries will be repeated");
        }
        gauge!("rcrt_webhook_attempts_under_way").set(0.0);
    }

    fn start(&mut self, under_way: &mut JoinSet<()>, delivery: Delivery) {
        let kept = self.connections.entry(delivery.webhook_id);
        let (used, connections) = kept.or_insert_with(|| (Instant::now(), Arc::default()));
        *used = Instant::now();
        let (queue, gate, options) = (self.queue.clone(), self.gate.clone(), self.options.clone());
        let connections = connections.clone();
        under_way.spawn(async move {
            let begun = Instant::now();
            // The gate has the same timeout. This one includes what the gate does not count, such
            // as a slow response body.
            let ended = timeout(options.timeout, attempt(&gate, &connections, &delivery, Utc::now())).await;
            let ended = ended.unwrap_or_else(|_| {
                AttemptResult::Failed(format!("no complete response within {} s", options.timeout.as_secs_f64()))
            });
            let outcome = ended.outcome(&delivery, &options, dice());
            count(&outcome, begun.elapsed());
            write_result(&*queue, &delivery, &outcome).await;
        });
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an attempt to deliver panicked; it will be repeated when its lease expires");
    }
}

fn count(outcome: &DeliveryOutcome, took: Duration) {
    let result = match outcome {
        DeliveryOutcome::Delivered => "delivered",
        DeliveryOutcome::Retry { .. } => "failed",
        DeliveryOutcome::Dead { .. } => "dead",
        DeliveryOutcome::Gone { .. } => "gone",
    };
    counter!("rcrt_webhook_attempts_total", "result" => result).increment(1);
    histogram!("rcrt_webhook_attempt_duration_seconds", "result" => result).record(took);
}

async fn write_result(queue: &dyn Deliveries, delivery: &Delivery, outcome: &DeliveryOutcome) {
    for _ in 0..WRITE_TRIES {
        match queue.complete(delivery, outcome).await {
            Ok(()) => return,
            Err(error) if error.is_retryable() => sleep(WRITE_PAUSE).await,
            Err(error) => {
                tracing::error!(delivery = %delivery.id, %error, "the result of a delivery cannot be written");
                return;
            }
        }
    }
    tracing::warn!(delivery = %delivery.id, "a delivery will be repeated, because its result could not be written");
}

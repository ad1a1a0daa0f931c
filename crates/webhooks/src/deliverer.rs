//! Takes what is due and keeps as much under way as it may; so a receiver that hangs costs its own place and no other's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{Deliveries, Delivery, Settlement, StoreError};
use chrono::Utc;
use executors::egress::{Connections, Egress};
use metrics::{counter, gauge, histogram};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::DeliveryOptions;
use crate::attempt::attempt;
use crate::backoff::dice;
use crate::outcome::Ended;

/// Between looks at what is too old.
const TIDY: Duration = Duration::from_mins(1);
/// How long attempts may end in when the deliverer stops. What does not is tried by another when its lease ends.
const ENDING: Duration = Duration::from_secs(5);
/// For how long the connections to a webhook's receiver are kept.
const CONNECTIONS_KEPT: Duration = Duration::from_secs(30);
/// An attempt whose end cannot be written down is tried again when its lease ends; this often before.
const WRITE_TRIES: u32 = 5;
const WRITE_PAUSE: Duration = Duration::from_millis(500);

/// Works on the queue until it is stopped.
pub struct Deliverer {
    queue: Arc<dyn Deliveries>,
    gate: Arc<Egress>,
    options: Arc<DeliveryOptions>,
    /// Of webhooks that got something lately: for each its own, so that none finds what another's receiver left there.
    connections: HashMap<Uuid, (Instant, Arc<Connections>)>,
}

impl Deliverer {
    /// `gate` is best one of its own, with [`DeliveryOptions::egress`].
    pub fn new(queue: Arc<dyn Deliveries>, gate: Arc<Egress>, options: DeliveryOptions) -> Self {
        Self { queue, gate, options: Arc::new(options), connections: HashMap::new() }
    }

    pub async fn run(mut self, stop: CancellationToken) {
        let mut under_way = JoinSet::new();
        let mut tidied_at: Option<Instant> = None;
        let mut is_failing = false;
        while !stop.is_cancelled() {
            let round = async {
                if tidied_at.is_none_or(|at| at.elapsed() >= TIDY) {
                    self.queue.tidy(&self.options.retention).await?;
                    tidied_at = Some(Instant::now());
                }
                let free = self.options.most.saturating_sub(under_way.len());
                if free == 0 {
                    return Ok(Vec::new());
                }
                self.queue.take(&self.options.taking(free)).await
            };
            // A lease that is taken in the moment of the stop ends by itself.
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
                    // A store that is away for a while is one line in the log.
                    if !is_failing {
                        tracing::warn!(%error, "deliveries to webhooks wait for the store");
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
                Some(ended) = under_way.join_next() => tell(ended),
                () = sleep(self.options.poll) => {}
            }
            while let Some(ended) = under_way.try_join_next() {
                tell(ended);
            }
        }
        let ending = async {
            while let Some(ended) = under_way.join_next().await {
                tell(ended);
            }
        };
        if timeout(ENDING, ending).await.is_err() {
            tracing::warn!("stopped delivering while receivers were still silent; what they were sent is tried again");
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
            // The gate keeps to the same time; this is for what it does not count, such as an answer that drips.
            let ended = timeout(options.timeout, attempt(&gate, &connections, &delivery, Utc::now())).await;
            let ended = ended.unwrap_or_else(|_| {
                Ended::Failed(format!("there was no whole answer after {} s", options.timeout.as_secs_f64()))
            });
            let settlement = ended.settlement(&delivery, &options, dice());
            count(&settlement, begun.elapsed());
            write_down(&*queue, &delivery, &settlement).await;
        });
    }
}

fn tell(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an attempt to deliver ended badly; it is tried again when its lease ends");
    }
}

fn count(settlement: &Settlement, took: Duration) {
    let result = match settlement {
        Settlement::Delivered => "delivered",
        Settlement::Retry { .. } => "failed",
        Settlement::Dead { .. } => "dead",
        Settlement::Gone { .. } => "gone",
    };
    counter!("rcrt_webhook_attempts_total", "result" => result).increment(1);
    histogram!("rcrt_webhook_attempt_duration_seconds", "result" => result).record(took);
}

async fn write_down(queue: &dyn Deliveries, delivery: &Delivery, settlement: &Settlement) {
    for _ in 0..WRITE_TRIES {
        match queue.settle(delivery, settlement).await {
            Ok(()) => return,
            Err(error) if error.is_retryable() => sleep(WRITE_PAUSE).await,
            Err(error) => {
                tracing::error!(delivery = %delivery.id, %error, "what became of a delivery cannot be written down");
                return;
            }
        }
    }
    tracing::warn!(delivery = %delivery.id, "a delivery is tried again: the store took no word of how it ended");
}

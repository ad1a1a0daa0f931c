//! Numbers for Prometheus. Every crate counts through the `metrics` facade; this is where they are collected.

use std::{sync::LazyLock, time::Duration};

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

const SECONDS: [f64; 15] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 900.0];

/// The process has one recorder, however many servers it runs. `None` when another recorder was installed before.
static RECORDER: LazyLock<Option<PrometheusHandle>> = LazyLock::new(|| {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| tracing::warn!(%error, "metrics are collected elsewhere; /metrics stays empty"))
        .ok()?;
    describe_counter!("rcrt_http_requests_total", "Requests by method, path and status");
    describe_histogram!("rcrt_http_request_duration_seconds", Unit::Seconds, "Time until the answer began");
    describe_counter!("rcrt_schema_violations_total", "Records that are not as their definition says, by outcome");
    describe_gauge!("rcrt_event_streams", "Event streams that are open");
    describe_counter!("rcrt_webhook_attempts_total", "Attempts to deliver an event to a webhook, by what came of them");
    describe_histogram!("rcrt_webhook_attempt_duration_seconds", Unit::Seconds, "Time that an attempt took");
    describe_gauge!("rcrt_webhook_attempts_under_way", "Attempts to deliver that are under way");
    describe_gauge!("rcrt_embeddings_waiting", "Records whose text is not embedded yet, in all tenants");
    describe_gauge!("rcrt_embedding_walks", "Tenants whose older records are being queued for the model");
    Some(handle)
});

/// Installs the recorder, if it is not there yet.
pub fn install() {
    LazyLock::force(&RECORDER);
}

/// Everything that was counted, in Prometheus' text format.
pub fn render() -> String {
    RECORDER.as_ref().map(PrometheusHandle::render).unwrap_or_default()
}

/// Folds samples into their buckets; call it every few seconds, else memory grows until somebody scrapes.
pub fn fold() {
    if let Some(recorder) = &*RECORDER {
        recorder.run_upkeep();
    }
}

pub fn count_request(method: &str, path: &str, status: u16, took: Duration) {
    // Only methods and paths of the route table: a caller must not be able to make up series.
    let labels = [("method", method.to_owned()), ("path", path.to_owned()), ("status", status.to_string())];
    counter!("rcrt_http_requests_total", &labels).increment(1);
    histogram!("rcrt_http_request_duration_seconds", &labels[..2]).record(took);
}

/// Counts an event stream as open until it is dropped.
pub struct OpenStream(());

impl OpenStream {
    pub fn new() -> Self {
        gauge!("rcrt_event_streams").increment(1.0);
        Self(())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        gauge!("rcrt_event_streams").decrement(1.0);
    }
}

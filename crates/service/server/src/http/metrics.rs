//! Metrics for Prometheus. Every crate counts through the `metrics` facade; this module collects
//! them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

use metrics::{
    Counter, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use parking_lot::RwLock;
use rcrt_breadcrumb::{TenantCount, UnfinishedCalls};
use sha2::{Digest, Sha256};
use uuid::Uuid;

const SECONDS: [f64; 15] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 900.0];

/// One recorder per process, however many servers it runs. `None` if another recorder was installed
/// before.
static RECORDER: LazyLock<Option<PrometheusHandle>> = LazyLock::new(|| {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| tracing::warn!(%error, "another metrics recorder is installed; /metrics stays empty"))
        .ok()?;
    describe_counter!("rcrt_http_requests_total", "Requests by method, path and status");
    describe_histogram!("rcrt_http_request_duration_seconds", Unit::Seconds, "Time until the response began");
    describe_counter!("rcrt_schema_violations_total", "Records that do not match their definition, by outcome");
    describe_counter!("rcrt_quota_refusals_total", "Writes refused because a tenant's quota is used up, by quota");
    describe_counter!("rcrt_queue_refusals_total", "Requests refused because their agent has too many queued calls");
    // Shown from the start, so that an alert sees the first refusal as an increase.
    counter!("rcrt_queue_refusals_total").absolute(0);
    describe_counter!(
        "rcrt_matches_refused_total",
        "Events that were not matched with selectors because that costs too much, by location"
    );
    describe_gauge!("rcrt_event_streams", "Event streams that are open");
    describe_counter!("rcrt_webhook_attempts_total", "Attempts to deliver an event to a webhook, by outcome");
    describe_histogram!("rcrt_webhook_attempt_duration_seconds", Unit::Seconds, "Duration of an attempt");
    describe_gauge!("rcrt_webhook_attempts_under_way", "Attempts to deliver that are in progress");
    describe_gauge!(
        "rcrt_runner_slots",
        "Slots of this process' runner, by kind (worker, waiting) and state (used, free)"
    );
    describe_gauge!("rcrt_runner_info", "The runner of this process: its id, host and version");
    describe_gauge!("rcrt_runner_draining", "1 while the runner of this process finishes its calls before it stops");
    describe_gauge!("rcrt_runner_ready", "1 while the runner of this process can claim calls");
    describe_gauge!("rcrt_embeddings_waiting", "Records whose text is not yet embedded, in all tenants");
    describe_gauge!("rcrt_embedding_walks", "Tenants whose older records are being queued for embedding");
    Some(handle)
});

/// Installs the recorder, unless that has already happened.
pub fn install() {
    LazyLock::force(&RECORDER);
}

/// The reader of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Sees all metrics.
    Operator,
    /// Sees metrics that name nothing of a tenant.
    Anyone,
}

/// Metrics that name nothing of a tenant. All others are for the operator only.
const FOR_ANYONE: [&str; 4] =
    ["rcrt_http_requests_total", "rcrt_http_request_duration_seconds", "rcrt_event_streams", "rcrt_embeddings_waiting"];

/// The metrics in Prometheus' text format.
pub fn render(audience: Audience, tenants: &[TenantCount], unfinished: &[UnfinishedCalls]) -> String {
    let all = RECORDER.as_ref().map(PrometheusHandle::render).unwrap_or_default();
    match audience {
        Audience::Operator => all + &of_tenants(tenants) + &of_calls(unfinished),
        Audience::Anyone => {
            let shown = all.lines().filter(|line| is_for_anyone(line)).flat_map(|line| [line, "\n"]);
            shown.chain(["# The token of `rcrt token --operator`, or the metrics token, shows more.\n"]).collect()
        }
    }
}

/// Not collected by the recorder, which never removes a series: those of a deleted tenant would
/// stay.
fn of_tenants(tenants: &[TenantCount]) -> String {
    let records: fn(&TenantCount) -> u64 = |tenant| tenant.records;
    let gauges = [("rcrt_tenant_records", "Records", records), ("rcrt_tenant_bytes", "Bytes", |tenant| tenant.bytes)];
    let mut text = String::new();
    for (name, what, value) in gauges.iter().filter(|_| !tenants.is_empty()) {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {what} that a tenant with a quota stores, at the last count");
        let _ = writeln!(text, "# TYPE {name} gauge");
        for tenant in tenants {
            let _ = writeln!(text, "{name}{{tenant=\"{}\"}} {}", tenant.id, value(tenant));
        }
        text.push('\n');
    }
    text
}

/// The most tools of one tenant with series of their own: callers choose the names.
const MOST_TOOLS: usize = 200;

/// The queue, as it is now. Read from the database, because every server and runner works on it.
fn of_calls(unfinished: &[UnfinishedCalls]) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(text, "# HELP rcrt_calls Unfinished calls, by tool and state (queued, claimed, running)");
    let _ = writeln!(text, "# TYPE rcrt_calls gauge");
    let mut tenants: BTreeMap<Uuid, Vec<&UnfinishedCalls>> = BTreeMap::new();
    for calls in unfinished {
        tenants.entry(calls.owner_id).or_default().push(calls);
    }
    for (tenant, mut tools) in tenants.clone() {
        tools.sort_by_key(|calls| std::cmp::Reverse(calls.queued + calls.claimed + calls.running));
        let other = tools.iter().skip(MOST_TOOLS);
        let other = other.fold([0; 3], |[queued, claimed, running], calls| {
            [queued + calls.queued, claimed + calls.claimed, running + calls.running]
        });
        let named = tools.iter().take(MOST_TOOLS);
        let named = named.map(|calls| (calls.tool.as_str(), [calls.queued, calls.claimed, calls.running]));
        let other = (tools.len() > MOST_TOOLS).then_some(("(other)", other));
        for (tool, counts) in named.chain(other) {
            let tool = tool.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            for (state, count) in ["queued", "claimed", "running"].iter().zip(counts) {
                let _ = writeln!(text, "rcrt_calls{{tenant=\"{tenant}\",tool=\"{tool}\",state=\"{state}\"}} {count}");
            }
        }
    }
    let _ = writeln!(text, "# HELP rcrt_oldest_waiting_call_seconds How long the oldest queued call has waited");
    let _ = writeln!(text, "# TYPE rcrt_oldest_waiting_call_seconds gauge");
    for (tenant, tools) in tenants {
        let oldest = tools.iter().filter_map(|calls| calls.oldest_ms).fold(0.0, f64::max) / 1000.0;
        let _ = writeln!(text, "rcrt_oldest_waiting_call_seconds{{tenant=\"{tenant}\"}} {oldest:.3}");
    }
    text
}

fn is_for_anyone(line: &str) -> bool {
    let line = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
    let name = line.split(['{', ' ']).next().unwrap_or_default();
    let of = |suffix| name.strip_suffix(suffix).unwrap_or(name);
    FOR_ANYONE.iter().any(|known| [name, of("_bucket"), of("_sum"), of("_count")].contains(known))
}

/// A token that gives access to the metrics of all tenants and nothing else. Only its hash is
/// stored.
pub struct MetricsToken([u8; 32]);

impl MetricsToken {
    pub fn new(token: &str) -> Self {
        Self(hash(token))
    }

    pub fn is(&self, token: &str) -> bool {
        // Hashes are compared, so timing reveals nothing about the token.
        self.0 == hash(token)
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Folds samples into their buckets. Call it every few seconds, otherwise memory grows until the
/// next scrape.
pub fn fold() {
    if let Some(recorder) = &*RECORDER {
        recorder.run_upkeep();
    }
}

/// The series of one method, path and status. Looking them up in the recorder costs more than
/// counting.
struct RequestSeries {
    total: Counter,
    duration: Histogram,
}

impl RequestSeries {
    fn new(method: &'static str, path: &str, status: u16) -> Self {
        let labels = [("method", method.to_owned()), ("path", path.to_owned()), ("status", status.to_string())];
        let total = counter!("rcrt_http_requests_total", &labels);
        Self { total, duration: histogram!("rcrt_http_request_duration_seconds", &labels[..2]) }
    }

    fn count(&self, took: Duration) {
        self.total.increment(1);
        self.duration.record(took);
    }
}

/// By path, then by method and status.
type AllRequestSeries = HashMap<String, HashMap<(&'static str, u16), RequestSeries>>;

static REQUESTS: LazyLock<RwLock<AllRequestSeries>> = LazyLock::new(RwLock::default);

/// `method` and `path` are of the route table, so that a caller cannot create series.
pub fn count_request(method: &'static str, path: &str, status: u16, took: Duration) {
    let key = (method, status);
    if let Some(series) = REQUESTS.read().get(path).and_then(|of_path| of_path.get(&key)) {
        return series.count(took);
    }
    let mut all = REQUESTS.write();
    let of_path = all.entry(path.to_owned()).or_default();
    of_path.entry(key).or_insert_with(|| RequestSeries::new(method, path, status)).count(took);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_of_a_tenant_have_a_bounded_number_of_series() {
        let owner_id = Uuid::new_v4();
        let calls = |index: usize| UnfinishedCalls {
            owner_id,
            tool: format!("tool-{index}"),
            // The last tools have the most calls.
            queued: index as u64,
            claimed: 0,
            running: 1,
            oldest_ms: None,
        };
        let text = of_calls(&(0..MOST_TOOLS + 5).map(calls).collect::<Vec<_>>());
        assert_eq!(text.matches("rcrt_calls{").count(), 3 * (MOST_TOOLS + 1));
        assert!(text.contains("tool=\"tool-204\",state=\"queued\"} 204"), "{text}");
        let other = "tool=\"(other)\",state=";
        for (state, count) in [("queued", 1 + 2 + 3 + 4), ("running", 5)] {
            assert!(text.contains(&format!("{other}\"{state}\"}} {count}\n")), "{text}");
        }
        assert!(!text.contains("tool=\"tool-4\""), "{text}");
    }
}

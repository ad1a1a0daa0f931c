//! Telemetry of invocations: a span for each attempt with its stages, and metrics of their number
//! and duration by tool and status.

use std::collections::HashMap;
use std::sync::{LazyLock, Once};
use std::time::{Duration, SystemTime};

use opentelemetry::metrics::{Counter, Histogram};
use opentelemetry::trace::{SpanBuilder, SpanKind, TraceContextExt};
use opentelemetry::{Context, KeyValue, global};
use parking_lot::Mutex;
use rcrt_breadcrumb::{ErrorCode, ResponseStatus, ToolRequest, hex};
use rcrt_egress::trace;
use uuid::Uuid;

use crate::claim_health;
use crate::execution::stages::Stages;
use crate::registry::tool::Tool;

const INVOCATIONS: &str = "rcrt_tool_invocations_total";
const DURATION: &str = "rcrt_tool_invoke_duration_seconds";

/// Label for names of unknown tools: callers must not be able to create labels.
pub(crate) const UNKNOWN_TOOL: &str = "(unknown)";

/// Label for the tools beyond the first [`MOST_NAMES`], so that the number of series is bounded.
const OTHER_TOOLS: &str = "(other)";
/// How many tools have their own label in one process.
const MOST_NAMES: usize = 200;

/// The series by label of the tool, of successes and of errors. Looking them up in the recorder
/// costs more than counting.
static SERIES: LazyLock<Mutex<HashMap<String, [Option<Series>; 2]>>> = LazyLock::new(Mutex::default);

/// OpenTelemetry's GenAI names.
const OPERATION: &str = "gen_ai.operation.name";
const EXECUTE_TOOL: &str = "execute_tool";
const TOOL_NAME: &str = "gen_ai.tool.name";

pub(crate) fn describe() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        metrics::describe_counter!(INVOCATIONS, "Tool requests with a response, by tool and status");
        metrics::describe_histogram!(
            DURATION,
            metrics::Unit::Seconds,
            "Execution time of tool requests with a response"
        );
    });
}

/// Shows the runner in the metrics of this process.
pub(crate) fn show_runner(runner_id: Uuid) {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let labels = [("runner", runner_id.to_string()), ("host", host), ("version", env!("CARGO_PKG_VERSION").to_owned())];
    metrics::gauge!("rcrt_runner_info", &labels).set(1.0);
    show_draining(false);
    claim_health::show_ready(false);
}

pub(crate) fn show_draining(is_draining: bool) {
    metrics::gauge!("rcrt_runner_draining").set(f64::from(u8::from(is_draining)));
}

/// One attempt to run one call, as a span in its caller's trace, or in a new one. It ends when its
/// last clone is dropped.
pub(crate) struct Invocation {
    context: Context,
}

impl Invocation {
    /// Starts the span at the time when the call was queued.
    pub fn begin(owner_id: Uuid, attempt: u32, request: &ToolRequest, stages: &Stages) -> Self {
        let caller = trace::caller(request.traceparent.as_deref());
        if !trace::is_exported() {
            return Self { context: trace::or_new(caller, request.id) };
        }
        let (queue, waiting) = stages.before();
        let claimed = SystemTime::now();
        let asked = claimed.checked_sub(waiting).unwrap_or(claimed);
        let queued = asked.checked_sub(queue).unwrap_or(asked);
        let mut attributes = vec![
            KeyValue::new(OPERATION, EXECUTE_TOOL),
            KeyValue::new(TOOL_NAME, request.tool.clone()),
            KeyValue::new("gen_ai.tool.call.id", request.request_id.clone()),
            KeyValue::new("gen_ai.tool.type", "function"),
            KeyValue::new("rcrt.request", request.id.to_string()),
            KeyValue::new("rcrt.owner", owner_id.to_string()),
            KeyValue::new("rcrt.attempt", i64::from(attempt)),
        ];
        attributes.extend(request.session.clone().map(|session| KeyValue::new("gen_ai.conversation.id", session)));
        attributes.extend(request.agent_id.map(|agent| KeyValue::new("gen_ai.agent.id", agent.to_string())));
        let span = SpanBuilder::from_name(format!("{EXECUTE_TOOL} {}", request.tool))
            .with_kind(SpanKind::Internal)
            .with_start_time(queued)
            .with_attributes(attributes);
        let context = trace::or_new(trace::begin(&caller, span), request.id);
        for (stage, began, ended) in [("queue", queued, asked), ("claim", asked, claimed)] {
            let over = trace::begin(&context, SpanBuilder::from_name(stage).with_start_time(began));
            over.span().end_with_timestamp(ended);
        }
        Self { context }
    }

    /// A stage that begins now and ends when the context is dropped. Work in the context belongs to
    /// it.
    pub fn stage(&self, name: &'static str) -> Context {
        trace::begin(&self.context, SpanBuilder::from_name(name))
    }

    /// Records a run that took this long and finishes now.
    pub fn ran(&self, took: Duration) {
        let ended = SystemTime::now();
        let began = ended.checked_sub(took).unwrap_or(ended);
        let run = trace::begin(&self.context, SpanBuilder::from_name("run").with_start_time(began));
        run.span().end_with_timestamp(ended);
    }

    pub fn runs(&self, tool: &Tool) {
        let span = self.context.span();
        if !span.is_recording() {
            return;
        }
        span.set_attributes([
            KeyValue::new("rcrt.tool.source", tool.source().to_string()),
            KeyValue::new("rcrt.tool.id", tool.id.to_string()),
            KeyValue::new("rcrt.tool.version", tool.version),
        ]);
    }

    pub fn failed(&self, code: ErrorCode) {
        trace::failed(&self.context, code.to_string());
    }

    /// The id that the caller can look up, 32 hex digits.
    pub fn trace_id(&self) -> Option<String> {
        trace::traceparent(&self.context).map(|traceparent| hex(&traceparent.trace_id.get().to_be_bytes()))
    }
}

/// The same metrics for OTLP; they record nothing if it is off.
struct Measures {
    invocations: Counter<u64>,
    duration: Histogram<f64>,
}

static MEASURES: LazyLock<Measures> = LazyLock::new(|| {
    let meter = global::meter(trace::SCOPE);
    let invocations = meter.u64_counter("rcrt.tool.invocations").with_unit("{invocation}");
    let duration = meter.f64_histogram("rcrt.tool.invoke.duration").with_unit("s");
    Measures {
        invocations: invocations.with_description("Tool requests with a response").build(),
        duration: duration.with_description("Execution time of tool requests with a response").build(),
    }
});

/// What counts the responses of one tool with one status.
struct Series {
    invocations: metrics::Counter,
    duration: metrics::Histogram,
    /// For OTLP.
    attributes: [KeyValue; 3],
}

impl Series {
    fn new(tool: &str, status: &'static str) -> Self {
        let labels = [("tool", tool.to_owned()), ("status", status.to_owned())];
        Self {
            invocations: metrics::counter!(INVOCATIONS, &labels),
            duration: metrics::histogram!(DURATION, &labels),
            attributes: [
                KeyValue::new(OPERATION, EXECUTE_TOOL),
                KeyValue::new(TOOL_NAME, tool.to_owned()),
                KeyValue::new("rcrt.status", status),
            ],
        }
    }

    fn count(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        self.invocations.increment(1);
        self.duration.record(seconds);
        MEASURES.invocations.add(1, &self.attributes);
        MEASURES.duration.record(seconds, &self.attributes);
    }
}

fn label<'t, S>(known: &HashMap<String, S>, tool: &'t str) -> &'t str {
    if known.len() < MOST_NAMES || known.contains_key(tool) { tool } else { OTHER_TOOLS }
}

/// Counts one response. `tool`: the name of a known tool, or `None`.
pub(crate) fn answered(tool: Option<&str>, status: ResponseStatus, elapsed: Duration) {
    let index = usize::from(status == ResponseStatus::Error);
    let mut all = SERIES.lock();
    let tool = tool.map_or(UNKNOWN_TOOL, |tool| label(&all, tool));
    if !all.contains_key(tool) {
        all.insert(tool.to_owned(), [None, None]);
    }
    if let Some(series) = all.get_mut(tool) {
        series[index].get_or_insert_with(|| Series::new(tool, status.as_str())).count(elapsed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_beyond_the_limit_share_one_label() {
        let mut known = HashMap::new();
        for number in 0..MOST_NAMES {
            let tool = format!("tool-{number}");
            assert_eq!(label(&known, &tool), tool);
            known.insert(tool, number);
        }
        assert_eq!(label(&known, "one-more"), OTHER_TOOLS);
        assert_eq!(label(&known, "tool-7"), "tool-7");
    }
}

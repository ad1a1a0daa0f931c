//! A call's trace context: the spans of its side effects, and the `traceparent` that connects one
//! request to the next. Without an exporter there are no spans, and the caller's context is passed
//! on unchanged, or a new one.
//!
//! Spans contain no data of a call: no arguments, no results, no paths and queries of URLs, no
//! messages of errors.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use opentelemetry::trace::{
    FutureExt, Span, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId,
    TraceState, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue, global};
use rcrt_breadcrumb::{OpError, Traceparent};
use uuid::Uuid;

/// The instrumentation scope of all spans and measures of this program.
pub const SCOPE: &str = "rcrt";
/// The class of a failure, as OpenTelemetry names the attribute.
pub const ERROR_TYPE: &str = "error.type";

static IS_EXPORTED: AtomicBool = AtomicBool::new(false);

/// Records all spans of this process with this provider from now on.
pub fn export<P, T, S>(provider: P)
where
    P: TracerProvider<Tracer = T> + Send + Sync + 'static,
    T: Tracer<Span = S> + Send + Sync + 'static,
    S: Span + Send + Sync + 'static,
{
    global::set_tracer_provider(provider);
    IS_EXPORTED.store(true, Ordering::Release);
}

/// Whether there are spans. Without them, their attributes need not be made.
pub fn is_exported() -> bool {
    IS_EXPORTED.load(Ordering::Acquire)
}

/// The context of this `traceparent`; empty if it cannot be parsed.
pub fn caller(traceparent: Option<&str>) -> Context {
    let Some(caller) = traceparent.and_then(|text| text.parse::<Traceparent>().ok()) else { return Context::new() };
    let flags = if caller.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace, span) = (TraceId::from(caller.trace_id.get()), SpanId::from(caller.span_id.get()));
    let context = SpanContext::new(trace, span, flags, true, TraceState::default());
    Context::new().with_remote_span_context(context)
}

/// This context, or one of a new trace with this id if it has none. It is sampled, so that a runner
/// with an exporter records the calls that this one asks for.
pub fn or_new(context: Context, id: Uuid) -> Context {
    if context.span().span_context().is_valid() {
        return context;
    }
    let (trace, span) = (TraceId::from(id.as_u128()), SpanId::from(id.as_u64_pair().1));
    let place = SpanContext::new(trace, span, TraceFlags::SAMPLED, true, TraceState::default());
    context.with_remote_span_context(place)
}

/// The `traceparent` of a context's span.
pub fn traceparent(context: &Context) -> Option<Traceparent> {
    let span = context.span();
    let span = span.span_context();
    Some(Traceparent {
        trace_id: u128::from_be_bytes(span.trace_id().to_bytes()).try_into().ok()?,
        span_id: u64::from_be_bytes(span.span_id().to_bytes()).try_into().ok()?,
        sampled: span.is_sampled(),
    })
}

/// Starts a child span. It ends when the last clone of the returned context is dropped. Without an
/// exporter this is the parent.
pub fn begin(parent: &Context, span: SpanBuilder) -> Context {
    if !is_exported() {
        return parent.clone();
    }
    parent.with_span(global::tracer(SCOPE).build_with_context(span, parent))
}

/// Marks the span of this context as failed.
pub fn failed(context: &Context, class: impl Into<Cow<'static, str>>) {
    let span = context.span();
    span.set_attribute(KeyValue::new(ERROR_TYPE, class.into()));
    span.set_status(Status::error(""));
}

/// Performs a side effect of the current call in a span of its own.
pub async fn op<T>(
    name: impl Into<Cow<'static, str>>,
    kind: SpanKind,
    attributes: Vec<KeyValue>,
    work: impl Future<Output = Result<T, OpError>>,
) -> Result<T, OpError> {
    let parent = Context::current();
    // Outside of a call there is no parent span.
    if !parent.span().span_context().is_valid() {
        return work.await;
    }
    let context = begin(&parent, SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes));
    let result = work.with_context(context.clone()).await;
    if let Err(error) = &result {
        failed(&context, error.name.clone());
    }
    result
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_context_without_a_trace_begins_one() {
        let id = Uuid::from_u128(0x0198_c0de_0000_7000_8000_0000_0000_0001);
        let new = traceparent(&or_new(caller(None), id)).unwrap();
        assert_eq!((new.trace_id.get(), new.sampled), (id.as_u128(), true));
        let given = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa01-00f067aa0ba902b7-00";
        assert_eq!(traceparent(&or_new(caller(Some(given)), id)).unwrap().to_string(), given);
    }
}

//! Export of spans and metrics to a collector: OTLP over HTTP, by OpenTelemetry's environment
//! variables. Without an endpoint there is no export. A failed export is logged and blocks nothing.

mod client;
mod settings;

use std::time::Duration;

use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rcrt_egress::trace;
use tokio::runtime::Handle;
use uuid::Uuid;

use client::Exporting;
use settings::Settings;

/// Timeout for exporting the last spans and metrics at shutdown.
const LAST: Duration = Duration::from_secs(5);

/// The exporters of this process. Close them while the runtime is still running.
#[derive(Default)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
}

impl Telemetry {
    /// Starts the exports that the environment configures.
    pub fn start(runtime: &Handle) -> Self {
        let settings = match Settings::read(|name| std::env::var(name).ok()) {
            Ok(settings) => settings,
            Err(problem) => {
                tracing::warn!(%problem, "no telemetry is exported");
                return Self::default();
            }
        };
        let mut telemetry = Self::default();
        let resource = resource(&settings);
        if settings.traces {
            match traces(&settings, resource.clone(), runtime) {
                Ok(provider) => {
                    trace::export(provider.clone());
                    telemetry.traces = Some(provider);
                }
                Err(problem) => tracing::warn!(%problem, "no traces are exported"),
            }
        }
        if settings.metrics {
            match metrics(&settings, resource, runtime) {
                Ok(provider) => {
                    global::set_meter_provider(provider.clone());
                    telemetry.metrics = Some(provider);
                }
                Err(problem) => tracing::warn!(%problem, "no metrics are exported"),
            }
        }
        if telemetry.traces.is_some() || telemetry.metrics.is_some() {
            let (traces, metrics) = (telemetry.traces.is_some(), telemetry.metrics.is_some());
            tracing::info!(traces, metrics, "telemetry is exported");
        }
        telemetry
    }

    /// Exports the rest. Blocks, so do not call it on a thread of the runtime.
    pub fn close(self) {
        // Concurrently, so that an unresponsive collector delays the exit only once.
        std::thread::scope(|scope| {
            if let Some(traces) = self.traces {
                scope.spawn(move || report("traces", &traces.shutdown_with_timeout(LAST)));
            }
            if let Some(metrics) = self.metrics {
                scope.spawn(move || report("metrics", &metrics.shutdown_with_timeout(LAST)));
            }
        });
    }
}

fn report(what: &str, ended: &OTelSdkResult) {
    if let Err(error) = ended {
        tracing::warn!(%error, "the last {what} were not exported");
    }
}

fn traces(settings: &Settings, resource: Resource, runtime: &Handle) -> anyhow::Result<SdkTracerProvider> {
    let client = Exporting::new("traces", settings.timeout_of("TRACES"), runtime.clone())?;
    let exporter = SpanExporter::builder().with_http().with_http_client(client).build()?;
    Ok(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build())
}

fn metrics(settings: &Settings, resource: Resource, runtime: &Handle) -> anyhow::Result<SdkMeterProvider> {
    let client = Exporting::new("metrics", settings.timeout_of("METRICS"), runtime.clone())?;
    let exporter = MetricExporter::builder().with_http().with_http_client(client).build()?;
    Ok(SdkMeterProvider::builder().with_resource(resource).with_periodic_exporter(exporter).build())
}

/// `OTEL_RESOURCE_ATTRIBUTES`, and the names of the service and of this process where nothing names
/// them. Without the latter, a collector would take the series of several processes for one.
fn resource(settings: &Settings) -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let mut resource = Resource::builder().with_attributes([version]);
    if !settings.names_instance {
        resource = resource.with_attributes([KeyValue::new("service.instance.id", Uuid::new_v4().to_string())]);
    }
    if settings.names_service { resource.build() } else { resource.with_service_name("rcrt").build() }
}

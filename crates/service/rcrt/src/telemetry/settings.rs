//! The OpenTelemetry environment variables that are read here. The OpenTelemetry library reads
//! endpoints, headers, samplers and batches.

use std::time::Duration;

/// The default in the specification.
const DEFAULT_TIMEOUT_MS: u64 = 10_000;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub traces: bool,
    pub metrics: bool,
    /// The environment names the service.
    pub names_service: bool,
    /// The environment names this process.
    pub names_instance: bool,
    timeouts: [Option<u64>; 3],
}

impl Settings {
    /// Reads the variables. The error names a variable with an unsupported value.
    pub fn read(environment: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let read = |name: &str| environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if read("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(Self::default());
        }
        let milliseconds = |name: &str| read(name).and_then(|text| text.parse().ok());
        let attributes = read("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let names = |what: &str| attributes.split(',').any(|one| one.trim().starts_with(what));
        Ok(Self {
            traces: is_wanted("TRACES", &read)?,
            metrics: is_wanted("METRICS", &read)?,
            names_service: read("OTEL_SERVICE_NAME").is_some() || names("service.name="),
            names_instance: names("service.instance.id="),
            timeouts: [
                milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT"),
                milliseconds("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"),
                milliseconds("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT"),
            ],
        })
    }

    /// Timeout of one export. `signal` is `TRACES` or `METRICS`.
    pub fn timeout_of(&self, signal: &str) -> Duration {
        let [all, traces, metrics] = self.timeouts;
        let own = if signal == "TRACES" { traces } else { metrics };
        Duration::from_millis(own.or(all).unwrap_or(DEFAULT_TIMEOUT_MS))
    }
}

/// Returns whether an endpoint is configured for the signal, and the signal is not disabled.
fn is_wanted(signal: &str, read: &impl Fn(&str) -> Option<String>) -> Result<bool, String> {
    let for_signal = |what: &str| {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_{what}");
        let all = format!("OTEL_EXPORTER_OTLP_{what}");
        read(&own).map(|value| (own, value)).or_else(|| read(&all).map(|value| (all, value)))
    };
    let exporter = format!("OTEL_{signal}_EXPORTER");
    match read(&exporter).as_deref() {
        None | Some("otlp") => {}
        Some("none") => return Ok(false),
        Some(other) => return Err(format!("{exporter} is {other:?}; expected otlp or none")),
    }
    if for_signal("ENDPOINT").is_none() {
        return Ok(false);
    }
    match for_signal("PROTOCOL") {
        Some((name, protocol)) if protocol != "http/protobuf" => {
            Err(format!("{name} is {protocol:?}; only http/protobuf is supported"))
        }
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::read(|name| variables.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn nothing_is_exported_without_an_endpoint() {
        assert_eq!(read(&[]), Ok(Settings::default()));
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(Settings::default()));
    }

    #[test]
    fn an_endpoint_can_be_for_all_signals_or_for_one() {
        let all = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")]).unwrap();
        assert_eq!((all.traces, all.metrics), (true, true));
        let one = read(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318/v1/traces")]).unwrap();
        assert_eq!((one.traces, one.metrics), (true, false));
        let not = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_TRACES_EXPORTER", "none")]).unwrap();
        assert_eq!((not.traces, not.metrics), (false, true));
        let off = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_SDK_DISABLED", "TRUE")]).unwrap();
        assert_eq!(off, Settings::default());
    }

    #[test]
    fn unsupported_values_are_named() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");
        let grpc = read(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err();
        assert_eq!(grpc, "OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\"; only http/protobuf is supported");
        let own = [endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
        let own = [&own[..], &[("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")]].concat();
        assert!(read(&own).is_err(), "metrics still use grpc");
        assert!(read(&[endpoint, ("OTEL_METRICS_EXPORTER", "prometheus")]).unwrap_err().contains("otlp or none"));
    }

    #[test]
    fn times_and_names_are_read() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "500"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "700"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name=mine,service.instance.id=one"),
        ])
        .unwrap();
        assert_eq!(settings.timeout_of("TRACES"), Duration::from_millis(700));
        assert_eq!(settings.timeout_of("METRICS"), Duration::from_millis(500));
        assert!(settings.names_service && settings.names_instance);
        let one = read(&[("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine")]).unwrap();
        assert!(one.names_service && !one.names_instance);
        assert_eq!(Settings::default().timeout_of("TRACES"), Duration::from_secs(10));
    }
}

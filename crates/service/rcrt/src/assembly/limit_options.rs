//! The limits of the HTTP server, as options.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use rcrt_server::{InvalidRate, MAX_BODY_BYTES, Rate, ServerLimits};

/// A rate, or `off` (also `0`) for none.
#[derive(Debug, Clone, Copy)]
struct RateLimit(Option<Rate>);

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "off" | "0" => Ok(Self(None)),
            rate => rate.parse().map(|rate| Self(Some(rate))).map_err(|error: InvalidRate| format!("{error}, or off")),
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Requests of one agent per second, with a burst; off for no limit
    #[arg(long, env = "RCRT_RATE_LIMIT_AGENT", value_name = "RATE[:BURST]", default_value = "5000:20000")]
    rate_limit_agent: RateLimit,

    /// Requests of all agents of one tenant per second; off for no limit
    #[arg(long, env = "RCRT_RATE_LIMIT_TENANT", value_name = "RATE[:BURST]", default_value = "10000:40000")]
    rate_limit_tenant: RateLimit,

    /// Requests of one runner on the routes of runners per second; they count for no other limit
    #[arg(long, env = "RCRT_RATE_LIMIT_RUNNER", value_name = "RATE[:BURST]", default_value = "off")]
    rate_limit_runner: RateLimit,

    /// Requests without a valid token from one address per second, and as many for health, metrics
    /// and docs; off for no limit
    #[arg(long, env = "RCRT_RATE_LIMIT_ADDRESS", value_name = "RATE[:BURST]", default_value = "200:1000")]
    rate_limit_address: RateLimit,

    /// Open connections. For one more, an idle connection is closed; if none is idle, the new one
    /// gets 503
    #[arg(long, env = "RCRT_MAX_CONNECTIONS", default_value_t = 8192, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,

    /// Open connections of one address, or one IPv6 network of 64 bits
    #[arg(long, env = "RCRT_MAX_CONNECTIONS_PER_ADDRESS", default_value_t = 4096, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections_per_address: u32,

    /// Concurrent requests of one tenant, including event streams, except those of runners
    #[arg(long, env = "RCRT_MAX_REQUESTS_PER_TENANT", default_value_t = 4096, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_requests_per_tenant: u32,

    /// Maximum bytes of a request body
    #[arg(long, env = "RCRT_MAX_BODY", default_value_t = MAX_BODY_BYTES as u64, value_name = "BYTES",
        value_parser = clap::value_parser!(u64).range(1024..=MAX_BODY_BYTES as u64))]
    max_body: u64,

    #[command(flatten)]
    pub drain: DrainOption,
}

#[derive(Debug, Clone, Copy, Args)]
pub struct DrainOption {
    /// How long running calls, and then open requests, can continue at shutdown
    #[arg(long, env = "RCRT_DRAIN_SECONDS", default_value_t = 10, value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(0..=3600))]
    drain_seconds: u64,
}

impl DrainOption {
    pub fn time(self) -> Duration {
        Duration::from_secs(self.drain_seconds)
    }
}

impl LimitOptions {
    pub fn limits(&self) -> ServerLimits {
        ServerLimits {
            agent: self.rate_limit_agent.0,
            tenant: self.rate_limit_tenant.0,
            runner: self.rate_limit_runner.0,
            address: self.rate_limit_address.0,
            max_connections: self.max_connections as usize,
            max_connections_per_address: self.max_connections_per_address as usize,
            max_requests_per_tenant: self.max_requests_per_tenant as usize,
            max_body_bytes: usize::try_from(self.max_body).unwrap_or(MAX_BODY_BYTES),
            drain_time: self.drain.time(),
            ..ServerLimits::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::Parser;
    use rcrt_server::ServerLimits;

    use super::LimitOptions;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        limits: LimitOptions,
    }

    fn limits(words: &[&str]) -> ServerLimits {
        Program::try_parse_from(["program"].iter().chain(words))
            .unwrap_or_else(|error| panic!("{error}"))
            .limits
            .limits()
    }

    #[test]
    fn the_defaults_match_the_server_and_a_rate_can_be_turned_off() {
        assert_eq!(
            format!("{:?}", limits(&[])),
            format!("{:?}", ServerLimits { address: limits(&[]).address, ..ServerLimits::default() })
        );
        // The library has no such limit: many clients of its tests have one address.
        assert!(ServerLimits::default().address.is_none());
        assert_eq!(limits(&[]).address.unwrap().to_string(), "200:1000");
        for off in ["off", "0"] {
            let limits = limits(&["--rate-limit-agent", off, "--rate-limit-tenant", off, "--rate-limit-address", off]);
            assert!(limits.agent.is_none() && limits.tenant.is_none() && limits.address.is_none());
        }
        assert_eq!(limits(&["--rate-limit-agent", "7:9"]).agent.unwrap().to_string(), "7:9");
        assert!(Program::try_parse_from(["program", "--rate-limit-agent", "often"]).is_err());
    }
}

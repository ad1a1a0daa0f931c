//! The bounds of the HTTP server, as options.

use std::time::Duration;

use clap::Args;
use server::{Limits, MAX_BODY_BYTES, Rate};

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Requests of one agent: RATE for each second, or RATE:BURST [default: no limit]
    #[arg(long, env = "RCRT_RATE_LIMIT_AGENT", value_name = "RATE[:BURST]")]
    rate_limit_agent: Option<Rate>,

    /// Requests of all agents of one tenant together [default: no limit]
    #[arg(long, env = "RCRT_RATE_LIMIT_TENANT", value_name = "RATE[:BURST]")]
    rate_limit_tenant: Option<Rate>,

    /// Requests of one runner's agent on the routes of runners, which count nowhere else [default: no limit]
    #[arg(long, env = "RCRT_RATE_LIMIT_RUNNER", value_name = "RATE[:BURST]")]
    rate_limit_runner: Option<Rate>,

    /// Requests without a valid token from one address
    #[arg(long, env = "RCRT_RATE_LIMIT_ADDRESS", value_name = "RATE[:BURST]", default_value = "200:1000")]
    rate_limit_address: Rate,

    /// Connections at once; more are answered 503
    #[arg(long, env = "RCRT_MAX_CONNECTIONS", default_value_t = 8192, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,

    /// Bytes of a request's body at most
    #[arg(long, env = "RCRT_MAX_BODY", default_value_t = MAX_BODY_BYTES as u64, value_name = "BYTES",
        value_parser = clap::value_parser!(u64).range(1024..=MAX_BODY_BYTES as u64))]
    max_body: u64,

    /// How long requests under way may go on after the program was asked to stop
    #[arg(long, env = "RCRT_DRAIN_SECONDS", default_value_t = 10, value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(0..=3600))]
    drain_seconds: u64,
}

impl LimitOptions {
    pub fn limits(&self) -> Limits {
        Limits {
            agent: self.rate_limit_agent,
            tenant: self.rate_limit_tenant,
            runner: self.rate_limit_runner,
            address: Some(self.rate_limit_address),
            max_connections: self.max_connections as usize,
            max_body_bytes: usize::try_from(self.max_body).unwrap_or(MAX_BODY_BYTES),
            drain_time: Duration::from_secs(self.drain_seconds),
            ..Limits::default()
        }
    }
}

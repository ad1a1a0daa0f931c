//! The limits of a server: how much it accepts at once, in total and per caller.

use std::{fmt, str::FromStr, time::Duration};

use crate::http::json_body::MAX_BODY_BYTES;

/// Requests per second, and the most requests at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    per_second: f64,
    burst: u32,
}

/// The text is not a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write RATE or RATE:BURST: requests per second (0.01 to 1000000), and how many can come at once (1 to 1000000; \
     twice the rate when left out), such as 50 or 50:200"
)]
pub struct InvalidRate;

impl Rate {
    /// Of the push notifications about one task of another agent.
    pub(crate) const NOTIFICATIONS: Self = Self { per_second: 1.0, burst: 10 };

    /// From 0.01 to 1,000,000 requests per second, and 1 to 1,000,000 at once.
    pub fn new(per_second: f64, burst: u32) -> Result<Self, InvalidRate> {
        if !(0.01..=1_000_000.0).contains(&per_second) || !(1..=1_000_000).contains(&burst) {
            return Err(InvalidRate);
        }
        Ok(Self { per_second, burst })
    }

    pub(crate) fn burst(self) -> u32 {
        self.burst
    }

    /// The time in which one request becomes available.
    pub(crate) fn interval(self) -> Duration {
        Duration::from_secs_f64(1.0 / self.per_second)
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let (rate, burst) = text.split_once(':').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let per_second: f64 = rate.trim().parse().map_err(|_| InvalidRate)?;
        let burst = match burst {
            Some(burst) => burst.trim().parse().map_err(|_| InvalidRate)?,
            // Within the bounds; other values are refused below.
            None => (per_second * 2.0).ceil().clamp(1.0, 1_000_000.0) as u32,
        };
        Self::new(per_second, burst)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.per_second, self.burst)
    }
}

/// The limits of a server.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Per agent. Opening event streams has a separate limit of the same size.
    pub agent: Option<Rate>,
    /// For all agents of one tenant together.
    pub tenant: Option<Rate>,
    /// For one runner's agent on the routes of runners, which count toward no other limit.
    pub runner: Option<Rate>,
    /// For one address without a valid token.
    pub address: Option<Rate>,
    /// Concurrent connections. Above that, a connection without an admitted request is closed. If
    /// all have one, a new connection gets 503.
    pub max_connections: usize,
    /// The same for one address (or one /64 of IPv6).
    pub max_connections_per_address: usize,
    /// Concurrent requests of one tenant, including event streams. Those of runners do not count.
    pub max_requests_per_tenant: usize,
    /// Bytes of a request's body, up to [`MAX_BODY_BYTES`].
    pub max_body_bytes: usize,
    /// The time for a request's headers, and how long an idle connection stays open.
    pub header_time: Duration,
    /// The same for a connection's first request.
    pub first_header_time: Duration,
    /// How long a caller can accept no data before its connection is closed.
    pub write_time: Duration,
    /// How long callers can wait for a response after the shutdown began, and after that, how long
    /// requests in progress can continue.
    pub drain_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            // Far above the sensible use of one agent. It stops a flood of requests.
            agent: Some(Rate { per_second: 5_000.0, burst: 20_000 }),
            tenant: Some(Rate { per_second: 10_000.0, burst: 40_000 }),
            runner: None,
            address: None,
            max_connections: 8192,
            max_connections_per_address: 4096,
            max_requests_per_tenant: 4096,
            max_body_bytes: MAX_BODY_BYTES,
            header_time: Duration::from_mins(1),
            first_header_time: Duration::from_secs(10),
            write_time: Duration::from_mins(1),
            drain_time: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Rate;

    #[test]
    fn a_rate_is_parsed_with_and_without_a_burst() {
        for (text, rate) in [("50", "50:100"), ("50:200", "50:200"), ("0.5", "0.5:1"), (" 2 : 3 ", "2:3")] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), rate);
        }
        for text in ["", "0", "-1", "many", "1:0", "1:", ":1", "1:2:3", "NaN", "inf", "1e9", "1:1e3", "1:-1"] {
            assert!(text.parse::<Rate>().is_err(), "{text:?}");
        }
    }
}

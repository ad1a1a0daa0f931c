//! Rate limits: token buckets per caller, in the memory of this process.
//!
//! A bucket is stored as the time when it will be full again, so a full bucket needs no entry.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use rcrt_breadcrumb::Identity;
use uuid::Uuid;

use crate::http::problem::Problem;
use crate::limits::{Rate, ServerLimits};

/// The most buckets of one kind. Callers beyond that share one bucket.
const MOST: usize = 65_536;
/// The pause between two removals of buckets that are full again.
const SWEEP: Duration = Duration::from_secs(1);

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// The state of a bucket after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    limit: u32,
    left: u32,
    full_in: Duration,
    /// The request is refused; the next one is allowed after this time.
    refused_for: Option<Duration>,
}

/// The address of the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// The rate limit of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateClass {
    Ordinary,
    Stream,
    Runner,
}

/// The buckets of a server.
pub struct RateLimiter {
    agents: Option<Buckets<Uuid>>,
    streams: Option<Buckets<Uuid>>,
    tenants: Option<Buckets<Uuid>>,
    runners: Option<Buckets<Uuid>>,
    addresses: Option<Buckets<IpAddr>>,
    /// For the routes of [`Access::Anyone`], so that callers that try tokens cannot block the
    /// operator's requests from the same address.
    probes: Option<Buckets<IpAddr>>,
    /// Push notifications of other agents, by their task: each changes its record.
    notifications: Buckets<Uuid>,
}

impl RateLimiter {
    pub fn new(limits: &ServerLimits) -> Self {
        Self {
            agents: limits.agent.map(Buckets::new),
            streams: limits.agent.map(Buckets::new),
            tenants: limits.tenant.map(Buckets::new),
            runners: limits.runner.map(Buckets::new),
            addresses: limits.address.map(Buckets::new),
            probes: limits.address.map(Buckets::new),
            notifications: Buckets::new(Rate::NOTIFICATIONS),
        }
    }

    /// Counts one request of this agent. Returns the status of the bucket with the least left;
    /// `None` without limits.
    pub fn take(&self, identity: &Identity, rate_class: RateClass) -> Result<Option<RateLimitStatus>, Problem> {
        let now = Instant::now();
        let own = match rate_class {
            RateClass::Ordinary => &self.agents,
            RateClass::Stream => &self.streams,
            RateClass::Runner => &self.runners,
        };
        let own = own.as_ref().map(|buckets| buckets.take(identity.agent_id, now));
        if let Some(limit_status) = own
            && let Some(pause) = limit_status.refused_for
        {
            return Err(Problem::rate_limited("this agent has made too many requests", pause)
                .with_rate_limit_status(limit_status));
        }
        let shared = self.tenants.as_ref().filter(|_| rate_class != RateClass::Runner);
        let shared = shared.map(|buckets| buckets.take(identity.owner_id, now));
        if let Some(limit_status) = shared
            && let Some(pause) = limit_status.refused_for
        {
            let why = "the agents of this tenant have made too many requests";
            return Err(Problem::rate_limited(why, pause).with_rate_limit_status(limit_status));
        }
        Ok(own.into_iter().chain(shared).min_by_key(|limit_status| limit_status.left))
    }

    /// Counts one request without a valid token.
    pub fn take_unauthenticated(&self, peer: Option<Peer>) -> Result<(), Problem> {
        take(self.addresses.as_ref(), peer, "too many requests without a valid token came from this address")
    }

    /// Counts one push notification about this task.
    pub fn take_notification(&self, task: Uuid) -> Result<(), Problem> {
        let limit_status = self.notifications.take(task, Instant::now());
        match limit_status.refused_for {
            Some(pause) => {
                let why = "too many notifications about this task came";
                Err(Problem::rate_limited(why, pause).with_rate_limit_status(limit_status))
            }
            None => Ok(()),
        }
    }

    /// Counts one request that needs no token.
    pub fn take_probe(&self, peer: Option<Peer>) -> Result<(), Problem> {
        take(
            self.probes.as_ref(),
            peer,
            "too many requests for the health, the metrics and the docs came from this address",
        )
    }
}

fn take(buckets: Option<&Buckets<IpAddr>>, peer: Option<Peer>, why: &str) -> Result<(), Problem> {
    let (Some(buckets), Some(Peer(address))) = (buckets, peer) else { return Ok(()) };
    let limit_status = buckets.take(network(address), Instant::now());
    match limit_status.refused_for {
        Some(pause) => Err(Problem::rate_limited(why, pause).with_rate_limit_status(limit_status)),
        None => Ok(()),
    }
}

/// The key of an address. A site has a whole IPv6 network (/64), so its addresses share a bucket.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
    }
}

impl RateLimitStatus {
    /// Adds the status to the response's headers.
    pub fn write_to(self, headers: &mut HeaderMap) {
        for (name, number) in self.numbers() {
            headers.insert(name, number);
        }
    }

    pub fn numbers(self) -> [(HeaderName, HeaderValue); 3] {
        [
            (LIMIT, HeaderValue::from(self.limit)),
            (REMAINING, HeaderValue::from(self.left)),
            (RESET, HeaderValue::from(whole_seconds(self.full_in))),
        ]
    }
}

/// Rounded up, so that a caller that waits so long is not refused again.
pub fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// One bucket per key.
struct Buckets<K> {
    rate: Rate,
    state: Mutex<State<K>>,
}

struct State<K> {
    /// When each bucket that is not full will be full. `None` is the shared bucket.
    full_at: HashMap<Option<K>, Instant>,
    swept: Option<Instant>,
}

impl<K: Eq + Hash + Copy> Buckets<K> {
    fn new(rate: Rate) -> Self {
        Self { rate, state: Mutex::new(State { full_at: HashMap::new(), swept: None }) }
    }

    fn take(&self, key: K, now: Instant) -> RateLimitStatus {
        let mut state = self.state.lock();
        let key = state.room_for(key, now);
        let (interval, limit) = (self.rate.interval(), self.rate.burst());
        let room = interval * limit;
        let full_at = state.full_at.get(&key).map_or(now, |at| (*at).max(now));
        let taken = (full_at - now) + interval;
        if let Some(too_much) = taken.checked_sub(room).filter(|time| !time.is_zero()) {
            return RateLimitStatus { limit, left: 0, full_in: full_at - now, refused_for: Some(too_much) };
        }
        state.full_at.insert(key, now + taken);
        let left = room.saturating_sub(taken).as_nanos() / interval.as_nanos().max(1);
        RateLimitStatus { limit, left: u32::try_from(left).unwrap_or(limit), full_in: taken, refused_for: None }
    }
}

impl<K: Eq + Hash + Copy> State<K> {
    fn room_for(&mut self, key: K, now: Instant) -> Option<K> {
        if self.full_at.len() < MOST || self.full_at.contains_key(&Some(key)) {
            return Some(key);
        }
        if self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= SWEEP) {
            self.full_at.retain(|_, full_at| *full_at > now);
            self.swept = Some(now);
        }
        (self.full_at.len() < MOST).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a model of the bucket: it starts full, gains one token per interval, and
        /// never exceeds the burst.
        #[test]
        fn a_bucket_matches_its_model(
            per_second in 1_u32..1000, burst in 1_u32..50, pauses in prop::collection::vec(0_u64..400_000_000, 1..200),
        ) {
            let buckets = Buckets::new(Rate::new(f64::from(per_second), burst).unwrap());
            let interval = buckets.rate.interval().as_nanos();
            let (start, mut elapsed) = (Instant::now(), 0_u64);
            // In fractions of a token, so that the model uses whole numbers.
            let (mut tokens, mut last) = (u128::from(burst) * interval, 0_u64);
            for pause in pauses {
                elapsed += pause;
                tokens = (tokens + u128::from(elapsed - last)).min(u128::from(burst) * interval);
                last = elapsed;
                let limit_status = buckets.take(1, start + Duration::from_nanos(elapsed));
                prop_assert_eq!(limit_status.refused_for.is_none(), tokens >= interval);
                match limit_status.refused_for {
                    None => tokens -= interval,
                    Some(pause) => prop_assert_eq!(pause.as_nanos(), interval - tokens),
                }
                prop_assert_eq!(u128::from(limit_status.left), if limit_status.refused_for.is_some() { 0 } else { tokens / interval });
            }
        }
    }

    #[test]
    fn callers_have_separate_buckets() {
        let buckets = Buckets::new(Rate::new(1.0, 1).unwrap());
        let now = Instant::now();
        assert!(buckets.take("one", now).refused_for.is_none());
        assert!(buckets.take("one", now).refused_for.is_some());
        assert!(buckets.take("other", now).refused_for.is_none());
    }

    #[test]
    fn buckets_are_bounded_and_full_ones_are_removed() {
        let buckets = Buckets::new(Rate::new(1.0, 1).unwrap());
        let now = Instant::now();
        for key in 0..MOST {
            assert!(buckets.take(key, now).refused_for.is_none());
        }
        // Callers without a bucket of their own share one.
        assert!(buckets.take(MOST, now).refused_for.is_none());
        assert!(buckets.take(MOST + 1, now).refused_for.is_some());
        let later = now + Duration::from_secs(2);
        assert!(buckets.take(MOST + 2, later).refused_for.is_none());
        assert!(buckets.take(MOST + 3, later).refused_for.is_none());
        assert_eq!(buckets.state.lock().full_at.len(), 2);
    }

    #[test]
    fn an_ipv6_network_is_one_caller() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}

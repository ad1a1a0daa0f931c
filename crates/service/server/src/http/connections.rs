//! The open connections: limits in total and per address, and which one is evicted for a new one.
//!
//! A connection is active from the moment a request's token is verified to the end of the response.
//! Any other connection is idle and can be evicted: first those that never had a valid token, then
//! the rest; the oldest first in each group. So a caller without a token cannot hold a permit by
//! sending a body slowly.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::http::rate_limit::network;

pub struct Connections {
    most: usize,
    most_per_address: usize,
    state: Mutex<State>,
}

/// Why a connection is refused: all open ones are active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Server,
    Address,
}

/// Whether it has shown a valid token, and since when it is idle.
type EvictionKey = (bool, u64);

#[derive(Default)]
struct State {
    next: u64,
    open: HashMap<u64, OpenConnection>,
    waiting: BTreeMap<EvictionKey, u64>,
    addresses: HashMap<IpAddr, AddressConnections>,
}

struct OpenConnection {
    address: IpAddr,
    /// `None`: active.
    eviction_key: Option<EvictionKey>,
    evicted: CancellationToken,
}

#[derive(Default)]
struct AddressConnections {
    open: usize,
    waiting: BTreeMap<EvictionKey, u64>,
}

impl Connections {
    pub fn new(most: usize, most_per_address: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_address, state: Mutex::default() })
    }

    /// A permit for a connection from this address. If none is left, an idle connection loses its
    /// permit.
    pub fn acquire(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionPermit, Full> {
        let address = network(address);
        let mut state = self.state.lock();
        let of_address = state.addresses.get(&address);
        if of_address.is_some_and(|of_address| of_address.open >= self.most_per_address) {
            let oldest = of_address.and_then(|of_address| of_address.waiting.values().next().copied());
            state.evict(oldest.ok_or(Full::Address)?);
        }
        if state.open.len() >= self.most {
            let oldest = state.waiting.values().next().copied();
            state.evict(oldest.ok_or(Full::Server)?);
        }
        let id = state.next_number();
        let evicted = CancellationToken::new();
        state.open.insert(id, OpenConnection { address, eviction_key: None, evicted: evicted.clone() });
        state.addresses.entry(address).or_default().open += 1;
        state.wait(id, false);
        drop(state);
        Ok(ConnectionPermit { connections: self.clone(), id, evicted, has_received_request: AtomicBool::new(false) })
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn wait(&mut self, id: u64, is_known: bool) {
        let eviction_key = (is_known, self.next_number());
        let Some(open) = self.open.get_mut(&id) else { return };
        open.eviction_key = Some(eviction_key);
        self.waiting.insert(eviction_key, id);
        if let Some(of_address) = self.addresses.get_mut(&open.address) {
            of_address.waiting.insert(eviction_key, id);
        }
    }

    fn begin_request(&mut self, id: u64) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let Some(eviction_key) = open.eviction_key.take() else { return };
        self.waiting.remove(&eviction_key);
        if let Some(of_address) = self.addresses.get_mut(&open.address) {
            of_address.waiting.remove(&eviction_key);
        }
    }

    fn leave(&mut self, id: u64) -> Option<OpenConnection> {
        self.begin_request(id);
        let open = self.open.remove(&id)?;
        if let Some(of_address) = self.addresses.get_mut(&open.address) {
            of_address.open -= 1;
            if of_address.open == 0 {
                self.addresses.remove(&open.address);
            }
        }
        Some(open)
    }

    fn evict(&mut self, id: u64) {
        if let Some(open) = self.leave(id) {
            open.evicted.cancel();
        }
    }
}

/// The permit of one connection, until it is dropped.
pub struct ConnectionPermit {
    connections: Arc<Connections>,
    id: u64,
    evicted: CancellationToken,
    has_received_request: AtomicBool,
}

impl ConnectionPermit {
    /// Call it when the head of a request has arrived.
    pub fn mark_request_received(&self) {
        self.has_received_request.store(true, Ordering::Release);
    }

    /// A request has a valid token. The connection cannot be evicted until the result is dropped.
    pub fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.connections.state.lock().begin_request(self.id);
        ActiveRequest(self.clone())
    }

    pub fn has_received_request(&self) -> bool {
        self.has_received_request.load(Ordering::Acquire)
    }

    /// Returns when the connection must close because another one needs its permit.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.state.lock().leave(self.id);
    }
}

/// An admitted request in progress.
pub struct ActiveRequest(Arc<ConnectionPermit>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.connections.state.lock().wait(self.0.id, true);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn acquire(connections: &Arc<Connections>, address: IpAddr) -> Arc<ConnectionPermit> {
        Arc::new(connections.acquire(address).unwrap())
    }

    #[test]
    fn connections_without_a_token_are_evicted_before_the_longest_idle() {
        let connections = Connections::new(3, 3);
        let (idle, half, working) =
            (acquire(&connections, HERE), acquire(&connections, HERE), acquire(&connections, HERE));
        drop(idle.begin_request());
        let _work = working.begin_request();
        let fourth = acquire(&connections, THERE);
        assert!(half.evicted.is_cancelled() && !idle.evicted.is_cancelled());
        let _fourth = fourth.begin_request();
        let fifth = acquire(&connections, THERE);
        assert!(idle.evicted.is_cancelled());
        let _fifth = fifth.begin_request();
        assert_eq!(connections.acquire(HERE).err(), Some(Full::Server));
        assert!(!working.evicted.is_cancelled());
    }

    #[test]
    fn an_address_at_its_limit_evicts_only_its_own_connections() {
        let connections = Connections::new(10, 2);
        let other = acquire(&connections, THERE);
        let (first, second) = (acquire(&connections, HERE), acquire(&connections, HERE));
        let third = acquire(&connections, HERE);
        assert!(first.evicted.is_cancelled() && !second.evicted.is_cancelled() && !other.evicted.is_cancelled());
        let _work = (second.begin_request(), third.begin_request());
        assert_eq!(connections.acquire(HERE).err(), Some(Full::Address));
        assert!(connections.acquire(THERE).is_ok());
    }

    proptest! {
        /// The bounds hold after any sequence of steps, and no entry is left behind.
        #[test]
        fn the_bounds_hold(steps in prop::collection::vec((0_u8..4, 0_usize..8, 0_u8..3), 0..200)) {
            let connections = Connections::new(5, 3);
            let mut permits: Vec<(Arc<ConnectionPermit>, Option<ActiveRequest>)> = Vec::new();
            for (step, which, address) in steps {
                let permit = permits.get_mut(which);
                match (step, permit) {
                    (0, _) => {
                        let address = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, address));
                        let entered = connections.acquire(address);
                        permits.retain(|(permit, _)| !permit.evicted.is_cancelled());
                        permits.extend(entered.ok().map(|permit| (Arc::new(permit), None)));
                    }
                    (1, Some((permit, work))) if work.is_none() => *work = Some(permit.begin_request()),
                    (2, Some((_, work))) => *work = None,
                    (3, Some(_)) => drop(permits.swap_remove(which)),
                    _ => {}
                }
                let state = connections.state.lock();
                prop_assert!(state.open.len() <= 5);
                prop_assert_eq!(state.open.len(), permits.len());
                prop_assert!(state.addresses.values().all(|of_address| (1..=3).contains(&of_address.open)));
                let at_work = permits.iter().filter(|(_, work)| work.is_some()).count();
                prop_assert_eq!(state.waiting.len(), permits.len() - at_work);
            }
            drop(permits);
            let state = connections.state.lock();
            prop_assert!(state.open.is_empty() && state.waiting.is_empty() && state.addresses.is_empty());
        }
    }
}

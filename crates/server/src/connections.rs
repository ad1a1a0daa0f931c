//! The open connections: how many there are in all and from each address, and which one is closed when room is needed.
//!
//! A connection is at work from the moment a request's token is found valid to the end of the response. Any other
//! connection is waiting, and may be closed: first those that never showed a valid token, then the rest; of each kind
//! the oldest first. So without a token nobody keeps a place, however slowly a body is sent.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use crate::allowance::network;

pub struct Connections {
    most: usize,
    most_per_address: usize,
    state: Mutex<State>,
}

/// Why no connection is taken: all that are open are at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Server,
    Address,
}

/// Whether it has shown a valid token, and since when it waits.
type Turn = (bool, u64);

#[derive(Default)]
struct State {
    next: u64,
    open: HashMap<u64, Open>,
    waiting: BTreeMap<Turn, u64>,
    addresses: HashMap<IpAddr, OfAddress>,
}

struct Open {
    address: IpAddr,
    /// `None`: at work.
    turn: Option<Turn>,
    evicted: CancellationToken,
}

#[derive(Default)]
struct OfAddress {
    open: usize,
    waiting: BTreeMap<Turn, u64>,
}

impl Connections {
    pub fn new(most: usize, most_per_address: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_address, state: Mutex::default() })
    }

    /// A place for a connection from this address. Where there is none, a connection that waits loses its place.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Result<Place, Full> {
        let address = network(address);
        let mut state = self.locked();
        let of_address = state.addresses.get(&address);
        if of_address.is_some_and(|of_address| of_address.open >= self.most_per_address) {
            let oldest = of_address.and_then(|of_address| of_address.waiting.values().next().copied());
            state.evict(oldest.ok_or(Full::Address)?);
        }
        if state.open.len() >= self.most {
            let oldest = state.waiting.values().next().copied();
            state.evict(oldest.ok_or(Full::Server)?);
        }
        let id = state.turn();
        let evicted = CancellationToken::new();
        state.open.insert(id, Open { address, turn: None, evicted: evicted.clone() });
        state.addresses.entry(address).or_default().open += 1;
        state.wait(id, false);
        drop(state);
        Ok(Place { connections: self.clone(), id, evicted, has_asked: AtomicBool::new(false) })
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn turn(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn wait(&mut self, id: u64, is_known: bool) {
        let turn = (is_known, self.turn());
        let Some(open) = self.open.get_mut(&id) else { return };
        open.turn = Some(turn);
        self.waiting.insert(turn, id);
        if let Some(of_address) = self.addresses.get_mut(&open.address) {
            of_address.waiting.insert(turn, id);
        }
    }

    fn work(&mut self, id: u64) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let Some(turn) = open.turn.take() else { return };
        self.waiting.remove(&turn);
        if let Some(of_address) = self.addresses.get_mut(&open.address) {
            of_address.waiting.remove(&turn);
        }
    }

    fn leave(&mut self, id: u64) -> Option<Open> {
        self.work(id);
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

/// The place of one connection, until it is dropped.
pub struct Place {
    connections: Arc<Connections>,
    id: u64,
    evicted: CancellationToken,
    has_asked: AtomicBool,
}

impl Place {
    /// The head of a request is there.
    pub fn asks(&self) {
        self.has_asked.store(true, Ordering::Release);
    }

    /// A request came with a valid token. The connection keeps its place until the result is dropped.
    pub fn work(self: &Arc<Self>) -> AtWork {
        self.connections.locked().work(self.id);
        AtWork(self.clone())
    }

    pub fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Acquire)
    }

    /// Returns when the connection has to end, because others need its place.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.locked().leave(self.id);
    }
}

/// An admitted request under way.
pub struct AtWork(Arc<Place>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.connections.locked().wait(self.0.id, true);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn enter(connections: &Arc<Connections>, address: IpAddr) -> Arc<Place> {
        Arc::new(connections.enter(address).unwrap())
    }

    #[test]
    fn the_oldest_without_a_token_goes_first_then_the_one_that_is_idle_for_longest() {
        let connections = Connections::new(3, 3);
        let (idle, half, working) = (enter(&connections, HERE), enter(&connections, HERE), enter(&connections, HERE));
        drop(idle.work());
        let _work = working.work();
        let fourth = enter(&connections, THERE);
        assert!(half.evicted.is_cancelled() && !idle.evicted.is_cancelled());
        let _fourth = fourth.work();
        let fifth = enter(&connections, THERE);
        assert!(idle.evicted.is_cancelled());
        let _fifth = fifth.work();
        assert_eq!(connections.enter(HERE).err(), Some(Full::Server));
        assert!(!working.evicted.is_cancelled());
    }

    #[test]
    fn an_address_at_its_bound_takes_only_from_itself() {
        let connections = Connections::new(10, 2);
        let other = enter(&connections, THERE);
        let (first, second) = (enter(&connections, HERE), enter(&connections, HERE));
        let third = enter(&connections, HERE);
        assert!(first.evicted.is_cancelled() && !second.evicted.is_cancelled() && !other.evicted.is_cancelled());
        let _work = (second.work(), third.work());
        assert_eq!(connections.enter(HERE).err(), Some(Full::Address));
        assert!(connections.enter(THERE).is_ok());
    }

    proptest! {
        /// Whatever happens, the bounds hold and nothing is left behind.
        #[test]
        fn the_bounds_hold(steps in prop::collection::vec((0_u8..4, 0_usize..8, 0_u8..3), 0..200)) {
            let connections = Connections::new(5, 3);
            let mut places: Vec<(Arc<Place>, Option<AtWork>)> = Vec::new();
            for (step, which, address) in steps {
                let place = places.get_mut(which);
                match (step, place) {
                    (0, _) => {
                        let address = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, address));
                        let entered = connections.enter(address);
                        places.retain(|(place, _)| !place.evicted.is_cancelled());
                        places.extend(entered.ok().map(|place| (Arc::new(place), None)));
                    }
                    (1, Some((place, work))) if work.is_none() => *work = Some(place.work()),
                    (2, Some((_, work))) => *work = None,
                    (3, Some(_)) => drop(places.swap_remove(which)),
                    _ => {}
                }
                let state = connections.locked();
                prop_assert!(state.open.len() <= 5);
                prop_assert_eq!(state.open.len(), places.len());
                prop_assert!(state.addresses.values().all(|of_address| (1..=3).contains(&of_address.open)));
                let at_work = places.iter().filter(|(_, work)| work.is_some()).count();
                prop_assert_eq!(state.waiting.len(), places.len() - at_work);
            }
            drop(places);
            let state = connections.locked();
            prop_assert!(state.open.is_empty() && state.waiting.is_empty() && state.addresses.is_empty());
        }
    }
}

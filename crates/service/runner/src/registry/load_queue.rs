//! Decides which tool records are read next. A record is read by one task at a time; what is
//! requested meanwhile is read afterwards.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

/// Who waits for the record, most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A call.
    Call,
    /// Its author, who has just written it.
    Changed,
    /// The list of all tools.
    List,
    /// No caller: validated in the background before the first call. System tools come first.
    SystemBackground,
    Background,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// Read the record without checking whether it works.
    Parse,
    /// Check whether it works.
    Validate,
}

#[derive(Debug, Clone, Copy)]
struct LoadRequest {
    urgency: Urgency,
    depth: Depth,
    number: u64,
    /// Whether an event or a list asked for it, possibly besides a call.
    is_from_list_or_event: bool,
}

#[derive(Debug, Clone, Copy)]
struct ActiveLoad {
    urgency: Urgency,
    is_from_list_or_event: bool,
}

#[derive(Default)]
pub(crate) struct LoadQueue {
    queue: HashMap<Uuid, LoadRequest>,
    order: BTreeSet<(Urgency, u64, Uuid)>,
    under_way: HashMap<Uuid, ActiveLoad>,
    numbers: u64,
}

impl Urgency {
    fn is_background(self) -> bool {
        self >= Self::SystemBackground
    }
}

impl LoadQueue {
    pub fn add(&mut self, id: Uuid, urgency: Urgency, depth: Depth) {
        self.numbers += 1;
        let is_from_list_or_event = matches!(urgency, Urgency::Changed | Urgency::List);
        let mut request = LoadRequest { urgency, depth, number: self.numbers, is_from_list_or_event };
        if let Some(queued) = self.queue.remove(&id) {
            self.order.remove(&(queued.urgency, queued.number, id));
            request = LoadRequest {
                urgency: queued.urgency.min(urgency),
                depth: queued.depth.max(depth),
                number: queued.number.min(request.number),
                is_from_list_or_event: queued.is_from_list_or_event || is_from_list_or_event,
            };
        }
        self.queue.insert(id, request);
        self.order.insert((request.urgency, request.number, id));
    }

    /// The next one to read. At most `max` are read at once, besides those that a call waits for.
    /// Background reads use at most half of that.
    pub fn take(&mut self, max: usize) -> Option<(Uuid, Depth)> {
        let later = self.under_way.values().filter(|one| one.urgency.is_background()).count();
        let calls = self.under_way.values().filter(|one| one.urgency == Urgency::Call).count();
        let others = self.under_way.len() - calls;
        let has_room = |urgency: Urgency| match urgency {
            Urgency::Call => true,
            urgency if urgency.is_background() => others < max && later < max.div_ceil(2),
            _ => others < max,
        };
        let next = |(urgency, _, id): &&(Urgency, u64, Uuid)| has_room(*urgency) && !self.under_way.contains_key(id);
        // If one urgency has no capacity, less urgent ones have none either.
        let (urgency, number, id) = *self.order.iter().take_while(|one| has_room(one.0)).find(next)?;
        self.order.remove(&(urgency, number, id));
        let request = self.queue.remove(&id)?;
        self.under_way.insert(id, ActiveLoad { urgency, is_from_list_or_event: request.is_from_list_or_event });
        Some((id, request.depth))
    }

    pub fn done(&mut self, id: Uuid) {
        self.under_way.remove(&id);
    }

    pub fn is_under_way(&self, id: Uuid) -> bool {
        self.under_way.contains_key(&id)
    }

    /// Whether nothing waits for this record any more. Background validation does not count.
    pub fn is_done(&self, id: Uuid) -> bool {
        self.queue.get(&id).is_none_or(|request| request.urgency.is_background())
            && self.under_way.get(&id).is_none_or(|one| one.urgency.is_background())
    }

    /// Whether everything from events and lists is read. Records that only a call waits for do not
    /// count: they were known before.
    pub fn is_caught_up(&self) -> bool {
        let mut waiting = self.order.iter().take_while(|(urgency, ..)| !urgency.is_background());
        !waiting.any(|(.., id)| self.queue.get(id).is_some_and(|request| request.is_from_list_or_event))
            && !self.under_way.values().any(|one| one.is_from_list_or_event)
    }

    /// The records whose changes are known and not read yet.
    pub fn changed(&self) -> Vec<Uuid> {
        let queued = self.queue.iter().filter(|(_, one)| one.is_from_list_or_event && one.urgency <= Urgency::Changed);
        let under_way =
            self.under_way.iter().filter(|(_, one)| one.is_from_list_or_event && one.urgency <= Urgency::Changed);
        queued.map(|(id, _)| *id).chain(under_way.map(|(id, _)| *id)).collect()
    }

    /// Whether no background validation is left.
    pub fn is_idle(&self) -> bool {
        !self.order.last().is_some_and(|(urgency, ..)| urgency.is_background())
            && !self.under_way.values().any(|one| one.urgency.is_background())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[test]
    fn records_that_calls_need_come_first() {
        let mut queue = LoadQueue::default();
        for number in 1..=10 {
            queue.add(id(number), Urgency::Background, Depth::Validate);
        }
        queue.add(id(20), Urgency::SystemBackground, Depth::Validate);
        assert!(queue.is_caught_up());
        assert_eq!(queue.take(4), Some((id(20), Depth::Validate)));
        assert_eq!(queue.take(4), Some((id(1), Depth::Validate)));
        assert_eq!(queue.take(4), None, "background reads use at most half of the capacity");
        queue.add(id(30), Urgency::List, Depth::Parse);
        queue.add(id(31), Urgency::List, Depth::Parse);
        queue.add(id(32), Urgency::List, Depth::Parse);
        assert!(!queue.is_caught_up());
        assert_eq!(queue.take(4), Some((id(30), Depth::Parse)));
        assert_eq!(queue.take(4), Some((id(31), Depth::Parse)));
        assert_eq!(queue.take(4), None);
        queue.add(id(10), Urgency::Call, Depth::Validate);
        assert_eq!(queue.take(4), Some((id(10), Depth::Validate)));
    }

    #[test]
    fn a_record_is_read_again_if_requested_while_it_is_read() {
        let mut queue = LoadQueue::default();
        queue.add(id(1), Urgency::List, Depth::Parse);
        assert_eq!(queue.take(4), Some((id(1), Depth::Parse)));
        queue.add(id(1), Urgency::Changed, Depth::Validate);
        assert_eq!(queue.take(4), None);
        queue.done(id(1));
        assert!(!queue.is_done(id(1)) && !queue.is_caught_up());
        assert_eq!(queue.take(4), Some((id(1), Depth::Validate)));
        queue.add(id(1), Urgency::Background, Depth::Validate);
        assert!(!queue.is_done(id(1)));
        queue.done(id(1));
        assert!(queue.is_done(id(1)) && queue.is_caught_up() && !queue.is_idle());
    }

    #[test]
    fn a_record_that_only_a_call_needs_does_not_delay_the_catalog() {
        let mut queue = LoadQueue::default();
        queue.add(id(1), Urgency::Call, Depth::Validate);
        assert!(queue.is_caught_up() && !queue.is_done(id(1)));
        assert_eq!(queue.take(4), Some((id(1), Depth::Validate)));
        assert!(queue.is_caught_up() && !queue.is_done(id(1)));
        queue.add(id(2), Urgency::Changed, Depth::Validate);
        queue.add(id(2), Urgency::Call, Depth::Validate);
        assert!(!queue.is_caught_up(), "an event asked for it too");
        assert_eq!(queue.take(4), Some((id(2), Depth::Validate)));
        assert!(!queue.is_caught_up());
        queue.done(id(2));
        assert!(queue.is_caught_up());
    }
}

//! Which tool records are to be read, and in what order. A record is read by one task at a time; what is wished of it
//! meanwhile is done after.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

/// Who waits for it: the first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A call.
    Call,
    /// Somebody who has written it just now.
    Heard,
    /// The list of all tools.
    List,
    /// Nobody: to be judged before the first call asks for it. The installation's own tools come first.
    OwnLater,
    Later,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// What the record says.
    Sketch,
    /// Whether it works.
    Judge,
}

#[derive(Debug, Clone, Copy)]
struct Wish {
    urgency: Urgency,
    depth: Depth,
    number: u64,
    /// Heard of or listed, whoever waits for it besides.
    is_heard: bool,
}

#[derive(Debug, Clone, Copy)]
struct UnderWay {
    urgency: Urgency,
    is_heard: bool,
}

#[derive(Default)]
pub(crate) struct Wishes {
    wishes: HashMap<Uuid, Wish>,
    order: BTreeSet<(Urgency, u64, Uuid)>,
    under_way: HashMap<Uuid, UnderWay>,
    numbers: u64,
}

impl Urgency {
    fn is_later(self) -> bool {
        self >= Self::OwnLater
    }
}

impl Wishes {
    pub fn add(&mut self, id: Uuid, urgency: Urgency, depth: Depth) {
        self.numbers += 1;
        let is_heard = matches!(urgency, Urgency::Heard | Urgency::List);
        let mut wish = Wish { urgency, depth, number: self.numbers, is_heard };
        if let Some(there) = self.wishes.remove(&id) {
            self.order.remove(&(there.urgency, there.number, id));
            wish = Wish {
                urgency: there.urgency.min(urgency),
                depth: there.depth.max(depth),
                number: there.number.min(wish.number),
                is_heard: there.is_heard || is_heard,
            };
        }
        self.wishes.insert(id, wish);
        self.order.insert((wish.urgency, wish.number, id));
    }

    /// The next one to read. At most `max` are read at once, and half as many that nobody waits for; what a call waits
    /// for is not held up by others.
    pub fn take(&mut self, max: usize) -> Option<(Uuid, Depth)> {
        let later = self.under_way.values().filter(|one| one.urgency.is_later()).count();
        let calls = self.under_way.values().filter(|one| one.urgency == Urgency::Call).count();
        let others = self.under_way.len() - calls;
        let has_room = |urgency: Urgency| match urgency {
            Urgency::Call => true,
            urgency if urgency.is_later() => others < max && later < max.div_ceil(2),
            _ => others < max,
        };
        let next = |(urgency, _, id): &&(Urgency, u64, Uuid)| has_room(*urgency) && !self.under_way.contains_key(id);
        // Past the first that has no room nothing that is less urgent has any.
        let (urgency, number, id) = *self.order.iter().take_while(|one| has_room(one.0)).find(next)?;
        self.order.remove(&(urgency, number, id));
        let wish = self.wishes.remove(&id)?;
        self.under_way.insert(id, UnderWay { urgency, is_heard: wish.is_heard });
        Some((id, wish.depth))
    }

    pub fn done(&mut self, id: Uuid) {
        self.under_way.remove(&id);
    }

    /// Whether nobody waits for this record any more. What is left for later does not count.
    pub fn is_done(&self, id: Uuid) -> bool {
        self.wishes.get(&id).is_none_or(|wish| wish.urgency.is_later())
            && self.under_way.get(&id).is_none_or(|one| one.urgency.is_later())
    }

    /// Whether all is read that was heard of or listed. What a call alone waits for was known before.
    pub fn is_settled(&self) -> bool {
        let mut waiting = self.order.iter().take_while(|(urgency, ..)| !urgency.is_later());
        !waiting.any(|(.., id)| self.wishes.get(id).is_some_and(|wish| wish.is_heard))
            && !self.under_way.values().any(|one| one.is_heard)
    }

    /// Whether nothing is left to be judged for which there was no time yet.
    pub fn is_through(&self) -> bool {
        !self.order.last().is_some_and(|(urgency, ..)| urgency.is_later())
            && !self.under_way.values().any(|one| one.urgency.is_later())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[test]
    fn what_a_call_waits_for_goes_before_everything_else() {
        let mut wishes = Wishes::default();
        for number in 1..=10 {
            wishes.add(id(number), Urgency::Later, Depth::Judge);
        }
        wishes.add(id(20), Urgency::OwnLater, Depth::Judge);
        assert!(wishes.is_settled());
        assert_eq!(wishes.take(4), Some((id(20), Depth::Judge)));
        assert_eq!(wishes.take(4), Some((id(1), Depth::Judge)));
        assert_eq!(wishes.take(4), None, "half of the places are for what somebody waits for");
        wishes.add(id(30), Urgency::List, Depth::Sketch);
        wishes.add(id(31), Urgency::List, Depth::Sketch);
        wishes.add(id(32), Urgency::List, Depth::Sketch);
        assert!(!wishes.is_settled());
        assert_eq!(wishes.take(4), Some((id(30), Depth::Sketch)));
        assert_eq!(wishes.take(4), Some((id(31), Depth::Sketch)));
        assert_eq!(wishes.take(4), None);
        wishes.add(id(10), Urgency::Call, Depth::Judge);
        assert_eq!(wishes.take(4), Some((id(10), Depth::Judge)));
    }

    #[test]
    fn a_record_is_read_by_one_and_again_for_what_was_wished_meanwhile() {
        let mut wishes = Wishes::default();
        wishes.add(id(1), Urgency::List, Depth::Sketch);
        assert_eq!(wishes.take(4), Some((id(1), Depth::Sketch)));
        wishes.add(id(1), Urgency::Heard, Depth::Judge);
        assert_eq!(wishes.take(4), None);
        wishes.done(id(1));
        assert!(!wishes.is_done(id(1)) && !wishes.is_settled());
        assert_eq!(wishes.take(4), Some((id(1), Depth::Judge)));
        wishes.add(id(1), Urgency::Later, Depth::Judge);
        assert!(!wishes.is_done(id(1)));
        wishes.done(id(1));
        assert!(wishes.is_done(id(1)) && wishes.is_settled() && !wishes.is_through());
    }

    #[test]
    fn what_a_call_alone_waits_for_is_no_news() {
        let mut wishes = Wishes::default();
        wishes.add(id(1), Urgency::Call, Depth::Judge);
        assert!(wishes.is_settled() && !wishes.is_done(id(1)));
        assert_eq!(wishes.take(4), Some((id(1), Depth::Judge)));
        assert!(wishes.is_settled() && !wishes.is_done(id(1)));
        wishes.add(id(2), Urgency::Heard, Depth::Judge);
        wishes.add(id(2), Urgency::Call, Depth::Judge);
        assert!(!wishes.is_settled(), "it was heard of too");
        assert_eq!(wishes.take(4), Some((id(2), Depth::Judge)));
        assert!(!wishes.is_settled());
        wishes.done(id(2));
        assert!(wishes.is_settled());
    }
}

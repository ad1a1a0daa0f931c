//! Waiting for slots, and what claims exclude.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::pin::Pin;

use futures::FutureExt;
use proptest::prelude::*;

use super::*;

fn kind_of(tool: u8) -> (Kind, String) {
    if tool.is_multiple_of(2) {
        (Kind::CpuBound, format!("computes{tool}"))
    } else {
        (Kind::IoBound, format!("waits{tool}"))
    }
}

proptest! {
    /// A tool whose call was released stays excluded while its kind is full, whatever happens
    /// in the slots of the other kind. It is claimed again afterwards.
    #[test]
    fn a_released_tool_is_claimed_again_when_a_slot_of_its_kind_is_free(
        max in 1_usize..5,
        steps in proptest::collection::vec((0_u8..8, any::<bool>()), 1..200),
    ) {
        let (cpu_bound, io_bound) = (SlotPool::new(max, max), SlotPool::new(max, max));
        let mut inner = Inner::new(cpu_bound, io_bound, 1);
        let mut running: Vec<(Kind, String)> = Vec::new();
        let mut released: Vec<(Kind, String)> = Vec::new();
        for (tool, begins) in steps {
            let (kind, tool) = kind_of(tool);
            if begins {
                let taken = inner.take(kind, &tool, Origin::Queue);
                if taken {
                    running.push((kind, tool));
                } else {
                    inner.exclude(kind, &tool);
                    released.push((kind, tool));
                }
            } else if let Some(at) = running.iter().position(|one| *one == (kind, tool.clone())) {
                running.remove(at);
                inner.leave(kind, &tool);
                released.retain(|(of, _)| *of != kind);
            }
            let left = vec!["another's".to_owned()];
            if let Some(spec) = inner.next_claim(true, left.clone()) {
                prop_assert!(spec.except_tools.contains(&left[0]));
                for kind in [Kind::CpuBound, Kind::IoBound] {
                    if inner.pool(kind).is_full() {
                        prop_assert!(released.iter().all(|(of, tool)| *of != kind || spec.except_tools.contains(tool)));
                    }
                }
            }
            prop_assert!(inner.excluded.iter().all(|(tool, kind)| released.contains(&(*kind, tool.clone()))));
        }
    }
}

#[test]
fn calls_that_wait_for_others_leave_a_slot_for_them() {
    let slots = Slots::new(Registry::new(), SlotPool::new(2, 2), SlotPool::new(1, 1), 1);
    let (mut first, mut second) = (slots.take("a", Origin::Queue).unwrap(), slots.take("a", Origin::Queue).unwrap());
    assert!(first.may_wait() && first.may_wait());
    assert!(slots.take("b", Origin::Queue).is_none(), "it does not wait yet");
    first.park();
    let mut third = slots.take("b", Origin::Queue).unwrap();
    // It keeps its slot. Then the third would be the last that can do anything.
    assert!(second.may_wait());
    second.park();
    assert!(!third.may_wait());
    assert!(slots.take("b", Origin::Queue).is_none());
    first.resume();
    assert_eq!((slots.taken(), third.may_wait()), (3, true));
    drop((first, second));
    third.park();
    assert_eq!(slots.taken(), 0);
    drop(third);
    assert_eq!(slots.taken(), 0);
    assert!(slots.take("a", Origin::Queue).is_some_and(|mut slot| slot.may_wait()));
}

#[tokio::test]
async fn waiting_calls_get_slots_in_their_order() {
    let slots = Slots::new(Registry::new(), SlotPool::new(1, 1), SlotPool::new(1, 1), 1);
    let running = slots.take("a", Origin::Queue).unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| polled(Box::pin(slots.wait("a", Origin::LocalDispatch)))).collect();
    drop(running);
    assert!(slots.take_in_turn("a", Origin::LocalDispatch).is_none(), "others wait");
    // One that gives up passes its turn on.
    drop(waiting.remove(0));
    assert!(waiting[1].as_mut().now_or_never().is_none(), "a slot is free, but it is the turn of another");
    drop(waiting.remove(0).await);
    drop(waiting.remove(0).await);
    assert!(slots.take_in_turn("a", Origin::LocalDispatch).is_some());
}

#[tokio::test]
async fn a_queued_call_does_not_wait_behind_admitted_ones() {
    let slots = Slots::new(Registry::new(), SlotPool::new(2, 2), SlotPool::new(1, 1), 1);
    let (_overtook, queued) =
        (slots.take("a", Origin::LocalDispatch).unwrap(), slots.take("a", Origin::Queue).unwrap());
    slots.set_backlog(Backlog::Any);
    let mut admitted = polled(Box::pin(slots.wait("a", Origin::LocalDispatch)));
    let next = polled(Box::pin(slots.wait("a", Origin::Queue)));
    drop(queued);
    let next = next.await;
    drop(next);
    assert!(admitted.as_mut().now_or_never().is_none(), "the rest is left to the queue");
    slots.set_backlog(Backlog::none());
    drop(admitted.await);
}

#[test]
fn admitted_calls_leave_slots_to_queued_ones_of_the_same_tool_alone() {
    let slots = Slots::new(Registry::new(), SlotPool::new(4, 4), SlotPool::new(1, 1), 1);
    slots.set_backlog(Backlog::Of(HashSet::from(["full".to_owned()])));
    let take = |tool| slots.take(tool, Origin::LocalDispatch);
    let of_full: Vec<_> = std::iter::from_fn(|| take("full")).collect();
    assert_eq!(of_full.len(), 2);
    drop(of_full);
    let of_other: Vec<_> = std::iter::from_fn(|| take("other")).collect();
    assert_eq!(of_other.len(), 4);
}

#[test]
fn half_of_the_slots_are_expected_for_calls_that_overtake() {
    let slots = Slots::new(Registry::new(), SlotPool::new(4, 4), SlotPool::new(1, 1), 1);
    let expected = |tool| slots.expected_free_within(tool, Duration::from_millis(50));
    assert_eq!(expected("full"), None, "no call has ended yet");
    slots.inner.lock().average_hold = Duration::from_millis(10);
    assert_eq!(expected("full"), Some(20));
    slots.set_backlog(Backlog::Of(HashSet::from(["full".to_owned()])));
    assert_eq!((expected("full"), expected("other")), (Some(10), Some(20)));
}

/// Polls it once, so that it waits.
fn polled<F: Future + ?Sized>(mut waits: Pin<Box<F>>) -> Pin<Box<F>> {
    assert!(waits.as_mut().now_or_never().is_none());
    waits
}

#[test]
fn nothing_is_claimed_if_the_exclusions_of_a_full_kind_are_too_many() {
    let mut inner = Inner::new(SlotPool::new(1, 1), SlotPool::new(1, 1), 1);
    let left: Vec<String> = (0..MAX_EXCEPT).map(|number| format!("left{number}")).collect();
    assert!(inner.next_claim(true, left.clone()).is_some_and(|spec| spec.except_tools == left));
    assert!(inner.take(Kind::CpuBound, "computes", Origin::Queue));
    assert_eq!(inner.next_claim(true, left.clone()), None);
    inner.leave(Kind::CpuBound, "computes");
    assert!(inner.next_claim(true, left).is_some());
}

//! What the claims of a runner showed of the queue, and which new calls may overtake it.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::coordination::backlog::Backlog;

/// How long a queued call can have waited at most while others overtake it.
pub(super) const MAX_OVERTAKEN: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct KnownQueue {
    pub backlog: Backlog,
    /// Until then, no queued call of this tool has waited for [`MAX_OVERTAKEN`].
    overtaken_until: HashMap<String, Instant>,
}

impl KnownQueue {
    /// The queue had these calls to claim at this time, each with its tool and how long it had
    /// waited. Older calls of a tool are claimed first.
    pub fn claimed(&mut self, at: Instant, calls: impl Iterator<Item = (String, Duration)>) {
        let mut longest: HashMap<String, Duration> = HashMap::new();
        for (tool, waited) in calls {
            let longest = longest.entry(tool).or_default();
            *longest = waited.max(*longest);
        }
        self.overtaken_until.retain(|_, until| at < *until);
        let until = |waited| at + MAX_OVERTAKEN.saturating_sub(waited);
        self.overtaken_until.extend(longest.into_iter().map(|(tool, waited)| (tool, until(waited))));
    }

    /// Whether a call of this tool, if that is quick, may overtake them now.
    pub fn may_overtake(&self, tool: &str, now: Instant) -> bool {
        self.overtaken_until.get(tool).is_some_and(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(queue: &mut KnownQueue, at: Instant, calls: &[(&str, u64)]) {
        queue.claimed(at, calls.iter().map(|(tool, waited)| ((*tool).to_owned(), Duration::from_millis(*waited))));
    }

    #[test]
    fn queued_calls_of_a_tool_are_overtaken_for_two_seconds_at_most() {
        let (mut queue, begin) = (KnownQueue::default(), Instant::now());
        let after = |ms| begin + Duration::from_millis(ms);
        assert!(!queue.may_overtake("a", begin), "nothing is known of them");
        claimed(&mut queue, begin, &[("a", 100), ("a", 500), ("a", 50)]);
        assert!(queue.may_overtake("a", after(1_499)));
        assert!(!queue.may_overtake("a", after(1_500)));
        // Calls of another tool say nothing about those of this one.
        claimed(&mut queue, after(1_400), &[("b", 0)]);
        assert!(queue.may_overtake("b", after(3_399)) && !queue.may_overtake("a", after(1_500)));
        // The next claim had calls that had waited longer, then none that had.
        claimed(&mut queue, after(1_600), &[("b", 2_500)]);
        assert!(!queue.may_overtake("b", after(1_600)));
        claimed(&mut queue, after(1_700), &[("b", 0)]);
        assert!(queue.may_overtake("b", after(3_600)));
    }
}

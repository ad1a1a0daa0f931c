//! Which transactions were visible at one moment.

use std::collections::HashSet;

/// How many low bits of an event number count events within a transaction. The other bits are the
/// transaction's id.
const ORDINAL_BITS: u32 = 12;

/// Postgres' `pg_snapshot`, read from its text `xmin:xmax:xip,xip…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    oldest_running: i64,
    next: i64,
    running: HashSet<i64>,
}

impl Snapshot {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (oldest, next, running) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            oldest_running: oldest.parse().ok()?,
            next: next.parse().ok()?,
            running: running
                .split(',')
                .filter(|id| !id.is_empty())
                .map(|id| id.parse().ok())
                .collect::<Option<HashSet<i64>>>()?,
        })
    }

    /// Every event that was not visible at this moment has a greater number.
    pub(super) fn cursor(&self) -> i64 {
        (self.oldest_running << ORDINAL_BITS) - 1
    }

    /// Whether the event's transaction had committed at this moment.
    pub(super) fn saw(&self, number: i64) -> bool {
        let transaction = number >> ORDINAL_BITS;
        transaction < self.oldest_running || (transaction < self.next && !self.running.contains(&transaction))
    }

    /// Whether no event from this number on was visible.
    pub(super) fn is_past(&self, number: i64) -> bool {
        number >> ORDINAL_BITS >= self.next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn separates_committed_running_and_future_transactions() {
        let snapshot = Snapshot::parse("10:14:10,12").unwrap();
        let saw: Vec<bool> = (9..=14).map(|transaction| snapshot.saw(transaction << 12 | 5)).collect();
        assert_eq!(saw, [true, false, true, false, true, false]);
        assert_eq!(snapshot.cursor(), (10 << 12) - 1);
        assert!(!snapshot.is_past(13 << 12));
        assert!(snapshot.is_past(14 << 12));
    }

    #[test]
    fn parses_an_idle_snapshot_and_rejects_invalid_text() {
        assert!(Snapshot::parse("7:7:").is_some());
        for text in ["", "7", "7:7", "a:b:", "7:8:x"] {
            assert_eq!(Snapshot::parse(text), None, "{text:?}");
        }
    }
}

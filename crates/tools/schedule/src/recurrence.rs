//! The times of a cron expression in a time zone.
//!
//! When the zone's clocks change, the hour field decides the meaning:
//! - It names hours (`30 2 * * *`): a time of day, once a day. A skipped time occurs when the clock
//!   continues (02:30 at 03:00; several skipped times occur once). A repeated time occurs the first
//!   time.
//! - It begins with `*` (`*/15 * * * *`): elapsed hours. It occurs whenever the clock shows a
//!   matching time: twice in the repeated hour, never in the skipped hour.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, SubsecRound, TimeDelta, TimeZone, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};

use crate::Cron;

/// The largest difference between UTC and local time, including a day that a zone skipped.
const MAX_UTC_DISTANCE: TimeDelta = TimeDelta::hours(40);

/// The zone with this IANA name, in any case. The error suggests similar names.
pub fn zone(name: &str) -> Result<Tz, String> {
    if let Ok(zone) = name.parse() {
        return Ok(zone);
    }
    let lower = name.trim().to_lowercase().replace(' ', "_");
    if let Some(zone) = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(&lower)) {
        return Ok(*zone);
    }
    let shown: String = name.chars().take(60).collect();
    let like: Vec<&str> = TZ_VARIANTS
        .iter()
        .map(|zone| zone.name())
        .filter(|zone| lower.len() >= 3 && zone.to_lowercase().contains(&lower))
        .take(3)
        .collect();
    Err(match like[..] {
        [] => {
            format!("{shown:?} is not an IANA time zone; write a name such as Europe/Berlin, America/New_York or UTC")
        }
        _ => format!("{shown:?} is not an IANA time zone; did you mean {}?", like.join(" or ")),
    })
}

/// A cron expression in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recurrence {
    pub cron: Cron,
    pub zone: Tz,
}

/// The times between two moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastFires {
    /// The latest time.
    pub latest: DateTime<Utc>,
    /// The number of times before it, at most [`PastFires::COUNTED`].
    pub before: u64,
}

impl PastFires {
    /// The maximum of the count.
    pub const COUNTED: u64 = 1000;
}

impl Recurrence {
    /// Returns the first time after this moment, in whole seconds.
    pub fn next(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let after = after.trunc_subsecs(0);
        if self.cron.is_every_hour() { self.next_as_hours_pass(after) } else { self.next_of_day(after) }
    }

    /// Returns the next times, up to `most`.
    pub fn next_times(&self, after: DateTime<Utc>, most: usize) -> Vec<DateTime<Utc>> {
        std::iter::successors(self.next(after), |time| self.next(*time)).take(most).collect()
    }

    /// Returns the times from `first`, which is itself one, until `now`.
    pub fn past(&self, first: DateTime<Utc>, now: DateTime<Utc>) -> PastFires {
        let mut times = std::iter::successors(Some(first), |time| self.next(*time)).take_while(|time| *time <= now);
        let mut latest = times.next().unwrap_or(first);
        let mut before = 0;
        for time in times {
            latest = time;
            before += 1;
            if before == PastFires::COUNTED {
                return PastFires { latest: self.latest(latest, now), before };
            }
        }
        PastFires { latest, before }
    }

    /// The latest time until `now`; `known` is one. Searches back in doubling steps, then forward.
    fn latest(&self, known: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
        let mut back = TimeDelta::seconds(1);
        let mut latest = loop {
            if now - back <= known {
                break known;
            }
            match self.next(now - back) {
                Some(time) if time <= now => break time,
                _ => back = back * 2,
            }
        };
        while let Some(time) = self.next(latest).filter(|time| *time <= now) {
            latest = time;
        }
        latest
    }

    /// Times of day in order are moments in order; some moments can be equal.
    fn next_of_day(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut shown = self.cron.next(self.shown_at(after))?;
        loop {
            let moment = match self.zone.from_local_datetime(&shown) {
                MappedLocalTime::Single(moment) | MappedLocalTime::Ambiguous(moment, _) => moment.to_utc(),
                MappedLocalTime::None => self.end_of_gap(shown),
            };
            if moment > after {
                return Some(moment);
            }
            shown = self.cron.next(shown + TimeDelta::seconds(1))?;
        }
    }

    fn next_as_hours_pass(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let next = self.next_shown(after, self.shown_at(after) + TimeDelta::seconds(1));
        // In the first pass of a repeated hour the second is still to come, and it begins before
        // the clock's current time.
        let again = match self.zone.from_local_datetime(&self.shown_at(after)) {
            MappedLocalTime::Ambiguous(first, second) if first.to_utc() == after => {
                let second_begins = self.change_between(after, second.to_utc());
                self.next_shown(second_begins - TimeDelta::seconds(1), self.shown_at(second_begins))
            }
            _ => None,
        };
        next.into_iter().chain(again).min()
    }

    /// The first moment after `after` at which the clock shows a matching time, from `shown` on.
    fn next_shown(&self, after: DateTime<Utc>, shown: NaiveDateTime) -> Option<DateTime<Utc>> {
        let mut shown = self.cron.next(shown)?;
        loop {
            let from = match self.zone.from_local_datetime(&shown) {
                MappedLocalTime::Single(moment) if moment > after => return Some(moment.to_utc()),
                MappedLocalTime::Ambiguous(first, _) if first > after => return Some(first.to_utc()),
                MappedLocalTime::Ambiguous(_, second) if second > after => return Some(second.to_utc()),
                MappedLocalTime::None => self.shown_at(self.end_of_gap(shown)),
                _ => shown + TimeDelta::seconds(1),
            };
            shown = self.cron.next(from)?;
        }
    }

    /// The local time.
    fn shown_at(&self, moment: DateTime<Utc>) -> NaiveDateTime {
        moment.with_timezone(&self.zone).naive_local()
    }

    /// The moment at which the clock continues after a skipped time.
    fn end_of_gap(&self, skipped: NaiveDateTime) -> DateTime<Utc> {
        let middle = skipped.and_utc();
        first(middle - MAX_UTC_DISTANCE, middle + MAX_UTC_DISTANCE, |moment| self.shown_at(moment) > skipped)
    }

    /// The first moment in (from, to] with the offset of `to`, which is not that of `from`.
    fn change_between(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> DateTime<Utc> {
        let offset = |moment: DateTime<Utc>| self.zone.offset_from_utc_datetime(&moment.naive_utc()).fix();
        let before = offset(from);
        first(from, to, |moment| offset(moment) != before)
    }
}

/// The first second in (from, to] for which `is_there` is true. It is true for `to`, and false for
/// `from`.
fn first(from: DateTime<Utc>, to: DateTime<Utc>, is_there: impl Fn(DateTime<Utc>) -> bool) -> DateTime<Utc> {
    let (mut without, mut with) = (from, to);
    while with - without > TimeDelta::seconds(1) {
        let middle = without + TimeDelta::seconds((with - without).num_seconds() / 2);
        if is_there(middle) {
            with = middle;
        } else {
            without = middle;
        }
    }
    with
}

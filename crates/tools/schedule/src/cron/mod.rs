//! Cron expressions with five or six fields, and the local times that they match.
//! [`crate::Recurrence`] handles time zones and changes of their clocks.

mod days;
mod field;

use std::str::FromStr;
use std::time::Duration;

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use days::Days;
use field::{HOUR, MINUTE, MONTH, SECOND};

/// The most bytes of an expression.
const LONGEST: usize = 256;

/// The Gregorian calendar repeats after this many years. A day that does not occur in them never
/// occurs.
const CYCLE: i32 = 400;

/// Why a cron expression is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error(
        "is empty; write five fields (minute, hour, day of month, month, day of week), such as \"0 9 * * MON-FRI\""
    )]
    Empty,
    #[error("has more than {LONGEST} characters")]
    TooLong,
    #[error(
        "has {0} fields; expected five (minute, hour, day of month, month, day of week), or six with seconds first"
    )]
    Fields(usize),
    #[error("{0:?} is not a supported shorthand; use @yearly, @monthly, @weekly, @daily or @hourly")]
    Nickname(String),
    /// One field is invalid.
    #[error("{field}: {text:?} {why}")]
    Field { field: &'static str, text: String, why: String },
    #[error("matches no existing date (day of month {month_day:?} in month {month:?})")]
    Never { month_day: String, month: String },
}

/// A parsed cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    days: Days,
    every_hour: bool,
}

impl FromStr for Cron {
    type Err = CronError;

    /// Names of months and days in any case. `*`, `a`, `a-b`, `/n`, lists; `L`, `L-n`, `LW`, `nW`
    /// in the day of month; `d#n`, `dL` in the day of week; `?` for `*` in both. If both day fields
    /// restrict the day, one of them is enough, as in crontab(5).
    fn from_str(text: &str) -> Result<Self, CronError> {
        if text.len() > LONGEST {
            return Err(CronError::TooLong);
        }
        let text = match text.trim() {
            name if name.starts_with('@') => nickname(name)?,
            text => text,
        };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let (second, minute, hour, month_day, month, week_day) = match fields[..] {
            [] => return Err(CronError::Empty),
            [minute, hour, month_day, month, week_day] => ("0", minute, hour, month_day, month, week_day),
            [second, minute, hour, month_day, month, week_day] => (second, minute, hour, month_day, month, week_day),
            _ => return Err(CronError::Fields(fields.len())),
        };
        let cron = Self {
            seconds: SECOND.bits(second)?,
            minutes: MINUTE.bits(minute)?,
            hours: HOUR.bits(hour)?,
            months: MONTH.bits(month)?,
            days: Days::read(month_day, week_day)?,
            every_hour: hour.starts_with('*'),
        };
        match cron.next_date(NaiveDate::default()) {
            Some(_) => Ok(cron),
            None => Err(CronError::Never { month_day: month_day.to_owned(), month: month.to_owned() }),
        }
    }
}

fn nickname(name: &str) -> Result<&'static str, CronError> {
    match name.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        "@monthly" => Ok("0 0 1 * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@hourly" => Ok("0 * * * *"),
        _ => Err(CronError::Nickname(name.chars().take(40).collect())),
    }
}

impl Cron {
    /// Whether it counts elapsed hours (the hour field begins with `*`) instead of times of day.
    pub fn is_every_hour(&self) -> bool {
        self.every_hour
    }

    /// Whether this local time matches, to the second.
    pub fn admits(&self, time: NaiveDateTime) -> bool {
        self.months & (1 << time.month()) != 0 && self.days.admit(time.date()) && self.admits_time(time.time())
    }

    fn admits_time(&self, time: NaiveTime) -> bool {
        self.hours & (1 << time.hour()) != 0
            && self.minutes & (1 << time.minute()) != 0
            && self.seconds & (1 << time.second()) != 0
    }

    /// The first local time that matches, from `from` on.
    pub fn next(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        if self.months & (1 << from.month()) != 0
            && self.days.admit(from.date())
            && let Some(time) = self.next_time(from.time())
        {
            return Some(from.date().and_time(time));
        }
        let date = self.next_date(from.date().succ_opt()?)?;
        Some(date.and_time(self.next_time(NaiveTime::MIN)?))
    }

    fn next_date(&self, from: NaiveDate) -> Option<NaiveDate> {
        let mut date = from;
        while date.year() <= from.year() + CYCLE {
            if self.months & (1 << date.month()) == 0 {
                let (year, month) =
                    if date.month() == 12 { (date.year() + 1, 1) } else { (date.year(), date.month() + 1) };
                date = NaiveDate::from_ymd_opt(year, month, 1)?;
            } else if self.days.admit(date) {
                return Some(date);
            } else {
                date = date.succ_opt()?;
            }
        }
        None
    }

    fn next_time(&self, from: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let least = |bits: u64| bits.trailing_zeros();
        if self.hours & (1 << hour) != 0 {
            if self.minutes & (1 << minute) != 0
                && let Some(second) = at_least(self.seconds, second)
            {
                return NaiveTime::from_hms_opt(hour, minute, second);
            }
            if let Some(minute) = at_least(self.minutes, minute + 1) {
                return NaiveTime::from_hms_opt(hour, minute, least(self.seconds));
            }
        }
        NaiveTime::from_hms_opt(at_least(self.hours, hour + 1)?, least(self.minutes), least(self.seconds))
    }

    /// A lower bound of the distance between two matching times, at most a minute.
    pub fn least_distance(&self) -> Duration {
        let within = pairs(self.seconds).map(|(a, b)| b - a).min();
        let minute_follows = pairs(self.minutes).any(|(a, b)| b == a + 1)
            || self.minutes & 1 != 0 && self.minutes & (1 << 59) != 0 && self.hour_follows();
        let over = minute_follows.then(|| 60 - self.seconds.ilog2() + self.seconds.trailing_zeros());
        let seconds = within.into_iter().chain(over).min().unwrap_or(60);
        Duration::from_secs(seconds.min(60).into())
    }

    fn hour_follows(&self) -> bool {
        pairs(self.hours).any(|(a, b)| b == a + 1) || self.hours & 1 != 0 && self.hours & (1 << 23) != 0
    }
}

/// The lowest set bit from this one on.
fn at_least(bits: u64, from: u32) -> Option<u32> {
    let rest = bits.checked_shr(from)?;
    (rest != 0).then(|| from + rest.trailing_zeros())
}

/// The positions of set bits, each with the next.
fn pairs(bits: u64) -> impl Iterator<Item = (u32, u32)> {
    let positions = move || (0..64).filter(move |position| bits & (1 << position) != 0);
    positions().zip(positions().skip(1))
}

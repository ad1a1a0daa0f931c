//! The two day fields of a cron expression: day of month and day of week.

use chrono::{Datelike, NaiveDate};

use super::CronError;
use super::field::{MONTH_DAY, WEEK_DAY};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Days {
    /// Bits 1 to 31.
    of_month: u32,
    /// `L-n`: bit n for n days before the last one.
    from_end: u32,
    /// `nW`: the weekday (Monday to Friday) of the month that is nearest to day n.
    nearest: u32,
    /// `LW`: the last weekday of the month.
    last_weekday: bool,
    /// Bits 0 (Sunday) to 6.
    of_week: u8,
    /// `d#n`: entry n - 1 has the bits of the days of week.
    nth: [u8; 5],
    /// `dL`: the last such weekday of the month.
    last: u8,
    /// One of the fields begins with `*` (or is `?`), so both must match the day. Otherwise one is
    /// enough.
    both: bool,
}

impl Days {
    pub fn read(month_day: &str, week_day: &str) -> Result<Self, CronError> {
        let is_any = |text: &str| text.starts_with(['*', '?']);
        let mut days = Self { both: is_any(month_day) || is_any(week_day), ..Self::default() };
        for item in MONTH_DAY.items(month_day)? {
            days.month_day(item)?;
        }
        for item in WEEK_DAY.items(week_day)? {
            days.week_day(item)?;
        }
        Ok(days)
    }

    fn month_day(&mut self, item: &str) -> Result<(), CronError> {
        let upper = item.to_ascii_uppercase();
        match upper.as_str() {
            "?" => self.of_month |= MONTH_DAY.values("*")? as u32,
            "L" => self.from_end |= 1,
            "LW" | "WL" => self.last_weekday = true,
            other => {
                if let Some(back) = other.strip_prefix("L-") {
                    match back.parse::<u32>() {
                        Ok(back) if (1..=30).contains(&back) => self.from_end |= 1 << back,
                        _ => return Err(MONTH_DAY.wrong(item, "needs a number from 1 to 30 after L-")),
                    }
                } else if let Some(day) = other.strip_suffix('W') {
                    self.nearest |= 1 << MONTH_DAY.value(day)?;
                } else {
                    self.of_month |= MONTH_DAY.values(other)? as u32;
                }
            }
        }
        Ok(())
    }

    fn week_day(&mut self, item: &str) -> Result<(), CronError> {
        let upper = item.to_ascii_uppercase();
        if upper == "?" {
            self.of_week |= WEEK_DAY.values("*")? as u8;
        } else if let Some((day, nth)) = upper.split_once('#') {
            let bit = 1_u8 << (WEEK_DAY.value(day)? % 7);
            match nth.parse::<usize>() {
                Ok(nth) if (1..=5).contains(&nth) => self.nth[nth - 1] |= bit,
                _ if nth == "L" => self.last |= bit,
                _ => return Err(WEEK_DAY.wrong(item, "needs a number from 1 to 5 after #")),
            }
        } else if let Some(day) = upper.strip_suffix('L').filter(|day| !day.is_empty()) {
            self.last |= 1 << (WEEK_DAY.value(day)? % 7);
        } else {
            self.of_week |= WEEK_DAY.values(&upper)? as u8;
        }
        Ok(())
    }

    pub fn admit(&self, date: NaiveDate) -> bool {
        let (by_month, by_week) = (self.admit_in_month(date), self.admit_in_week(date));
        if self.both { by_month && by_week } else { by_month || by_week }
    }

    fn admit_in_month(&self, date: NaiveDate) -> bool {
        let (day, last): (u32, u32) = (date.day(), date.num_days_in_month().into());
        self.of_month & (1 << day) != 0
            || self.from_end & (1 << (last - day)) != 0
            || self.last_weekday && day == nearest_weekday(date, last)
            || (1..=last).any(|wanted| self.nearest & (1 << wanted) != 0 && day == nearest_weekday(date, wanted))
    }

    fn admit_in_week(&self, date: NaiveDate) -> bool {
        let (day, last): (u32, u32) = (date.day(), date.num_days_in_month().into());
        let bit = 1_u8 << date.weekday().num_days_from_sunday();
        self.of_week & bit != 0 || self.nth[(day as usize - 1) / 7] & bit != 0 || day + 7 > last && self.last & bit != 0
    }
}

/// The day from Monday to Friday, in the month of this date, that is nearest to day `wanted`.
fn nearest_weekday(date: NaiveDate, wanted: u32) -> u32 {
    let last: u32 = date.num_days_in_month().into();
    let weekday = date.with_day(wanted).map(|date| date.weekday().num_days_from_monday());
    match weekday {
        Some(5) if wanted == 1 => 3,
        Some(5) => wanted - 1,
        Some(6) if wanted == last => wanted - 2,
        Some(6) => wanted + 1,
        _ => wanted,
    }
}

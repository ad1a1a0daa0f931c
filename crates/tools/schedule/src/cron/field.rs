//! One field of a cron expression and the values that it matches.

use super::CronError;

/// The name of a field and its valid values.
pub(super) struct Field {
    pub name: &'static str,
    pub least: u32,
    pub most: u32,
    /// Names of values; the first is for `names_from`.
    pub names: &'static [&'static str],
    pub names_from: u32,
}

pub(super) const SECOND: Field = Field { name: "second", least: 0, most: 59, names: &[], names_from: 0 };
pub(super) const MINUTE: Field = Field { name: "minute", least: 0, most: 59, names: &[], names_from: 0 };
pub(super) const HOUR: Field = Field { name: "hour", least: 0, most: 23, names: &[], names_from: 0 };
pub(super) const MONTH_DAY: Field = Field { name: "day of month", least: 1, most: 31, names: &[], names_from: 0 };
pub(super) const MONTH: Field = Field {
    name: "month",
    least: 1,
    most: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    names_from: 1,
};
/// Sunday is 0 and 7.
pub(super) const WEEK_DAY: Field = Field {
    name: "day of week",
    least: 0,
    most: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    names_from: 0,
};

impl Field {
    /// The last value before the field wraps around.
    fn end(&self) -> u32 {
        if self.most == 7 { 6 } else { self.most }
    }

    pub fn wrong(&self, text: &str, why: impl Into<String>) -> CronError {
        CronError::Field { field: self.name, text: text.chars().take(40).collect(), why: why.into() }
    }

    fn range(&self) -> String {
        match self.names {
            [] => format!("{} to {}", self.least, self.most),
            [first, .., last] => format!("{} to {} or {first} to {last}", self.least, self.most),
            [only] => (*only).to_owned(),
        }
    }

    /// A number or a name.
    pub fn value(&self, text: &str) -> Result<u32, CronError> {
        let wrong = || self.wrong(text, format!("is not in the range {}", self.range()));
        if let Some(index) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.names_from + index as u32);
        }
        if text.is_empty() || text.len() > 4 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let value: u32 = text.parse().map_err(|_| wrong())?;
        if (self.least..=self.most).contains(&value) { Ok(value) } else { Err(wrong()) }
    }

    /// The values of `*`, `a` and `a-b`, each optionally with `/n`, as bits. A range can wrap
    /// around: `FRI-MON`, `22-2`.
    pub fn values(&self, item: &str) -> Result<u64, CronError> {
        let (base, step) = match item.split_once('/') {
            None => (item, None),
            Some((base, step)) => (base, Some(self.step(item, step)?)),
        };
        let (from, to) = match base.split_once('-') {
            _ if base == "*" => (self.least, self.end()),
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            None => {
                let value = self.value(base)?;
                // `5/15` continues to the end of the field.
                (value, if step.is_some() { self.end().max(value) } else { value })
            }
        };
        let span = self.end() - self.least + 1;
        let length = if to >= from { to - from } else { to + span - from };
        let mut bits = 0;
        for offset in (0..=length).step_by(step.unwrap_or(1) as usize) {
            bits |= 1 << (self.least + (from - self.least + offset) % span);
        }
        Ok(bits)
    }

    fn step(&self, item: &str, step: &str) -> Result<u32, CronError> {
        let longest = self.end() - self.least;
        match step.parse::<u32>() {
            Ok(step) if (1..=longest).contains(&step) => Ok(step),
            Ok(0) => Err(self.wrong(item, "has the step 0; a step is 1 or more")),
            Ok(step) => Err(self.wrong(
                item,
                format!(
                    "has the step {step}, which is longer than the field ({}); each step starts at the field's minimum",
                    self.range()
                ),
            )),
            Err(_) => Err(self.wrong(item, "has no number after the slash; expected a step such as */15")),
        }
    }

    /// The items of a list. None can be empty.
    pub fn items<'t>(&self, text: &'t str) -> Result<Vec<&'t str>, CronError> {
        let items: Vec<&str> = text.split(',').collect();
        if items.contains(&"") { Err(self.wrong(text, "has an empty list item")) } else { Ok(items) }
    }

    /// Parses a field that is a plain list of values and ranges.
    pub fn bits(&self, text: &str) -> Result<u64, CronError> {
        self.items(text)?.into_iter().try_fold(0, |bits, item| Ok(bits | self.values(item)?))
    }
}

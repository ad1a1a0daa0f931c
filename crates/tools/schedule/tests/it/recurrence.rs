//! The times of a cron expression in a zone, mainly around changes of its clocks.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, NaiveDateTime, Offset, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use proptest::prelude::*;
use rcrt_schedule::{Recurrence, zone};

use crate::clock::moment;

fn recurrence(cron: &str, zone: &str) -> Recurrence {
    Recurrence { cron: cron.parse().unwrap(), zone: zone.parse().unwrap() }
}

/// The next times in local time.
fn next(cron: &str, zone: &str, after: &str, most: usize) -> Vec<String> {
    let recurrence = recurrence(cron, zone);
    let times = recurrence.next_times(moment(after), most);
    times.iter().map(|time| time.with_timezone(&recurrence.zone).format("%m-%d %H:%M:%S %:z").to_string()).collect()
}

const FORWARD: &str = "2026-03-28T20:00:00Z";
const BACK: &str = "2026-10-24T20:00:00Z";

#[test]
fn time_of_day_follows_local_time() {
    assert_eq!(
        next("0 9 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3),
        ["03-28 09:00:00 +01:00", "03-29 09:00:00 +02:00", "03-30 09:00:00 +02:00"]
    );
}

#[test]
fn skipped_time_of_day_occurs_when_the_clock_continues() {
    assert_eq!(next("30 2 * * *", "Europe/Berlin", FORWARD, 2), ["03-29 03:00:00 +02:00", "03-30 02:30:00 +02:00"]);
    // Several skipped times occur once, together with a time that the clock shows at that moment.
    assert_eq!(
        next("0,30 2-3 * * *", "Europe/Berlin", FORWARD, 3),
        ["03-29 03:00:00 +02:00", "03-29 03:30:00 +02:00", "03-30 02:00:00 +02:00"]
    );
}

#[test]
fn repeated_time_of_day_occurs_once() {
    assert_eq!(next("30 2 * * *", "Europe/Berlin", BACK, 2), ["10-25 02:30:00 +02:00", "10-26 02:30:00 +01:00"]);
    assert_eq!(
        next("0 1-3 * * *", "Europe/Berlin", BACK, 4),
        ["10-25 01:00:00 +02:00", "10-25 02:00:00 +02:00", "10-25 03:00:00 +01:00", "10-26 01:00:00 +01:00"]
    );
}

#[test]
fn elapsed_hours_omit_the_skipped_hour() {
    assert_eq!(
        next("30 * * * *", "America/New_York", "2026-03-08T05:45:00Z", 3),
        ["03-08 01:30:00 -05:00", "03-08 03:30:00 -04:00", "03-08 04:30:00 -04:00"]
    );
}

#[test]
fn elapsed_hours_occur_twice_in_the_repeated_hour() {
    assert_eq!(
        next("*/30 * * * *", "America/New_York", "2026-11-01T04:45:00Z", 6),
        [
            "11-01 01:00:00 -04:00",
            "11-01 01:30:00 -04:00",
            "11-01 01:00:00 -05:00",
            "11-01 01:30:00 -05:00",
            "11-01 02:00:00 -05:00",
            "11-01 02:30:00 -05:00"
        ]
    );
}

#[test]
fn gaps_of_half_an_hour_and_at_midnight() {
    assert_eq!(next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T10:00:00Z", 1), ["10-04 02:30:00 +11:00"]);
    assert_eq!(
        next("0 0 * * *", "Asia/Beirut", "2026-03-28T10:00:00Z", 2),
        ["03-29 01:00:00 +03:00", "03-30 00:00:00 +03:00"]
    );
}

#[test]
fn skipped_day_occurs_when_the_next_begins() {
    assert_eq!(
        next("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", 2),
        ["12-31 00:00:00 +14:00", "12-31 12:00:00 +14:00"]
    );
}

#[test]
fn next_time_is_after_the_given_one() {
    let every_minute = recurrence("* * * * *", "UTC");
    assert_eq!(every_minute.next(moment("2026-01-01T00:00:00Z")), Some(moment("2026-01-01T00:01:00Z")));
    assert_eq!(every_minute.next(moment("2026-01-01T00:00:59.999Z")), Some(moment("2026-01-01T00:01:00Z")));
}

#[test]
fn zones_are_parsed_by_name() {
    assert_eq!(zone("Europe/Berlin"), Ok(Tz::Europe__Berlin));
    assert_eq!(zone("america/new york"), Ok(Tz::America__New_York));
    assert_eq!(zone("berlin").unwrap_err(), "\"berlin\" is not an IANA time zone; did you mean Europe/Berlin?");
    assert!(zone("+02:00").unwrap_err().contains("such as Europe/Berlin"));
    assert!(zone("").is_err());
}

/// One field: its text, and its values, computed here in another way.
#[derive(Debug, Clone)]
struct CronField {
    text: String,
    values: BTreeSet<u32>,
    is_star: bool,
}

fn part(least: u32, most: u32) -> impl Strategy<Value = CronField> {
    let all = move || (least..=most).collect::<BTreeSet<u32>>();
    let one = move |text: String, values: BTreeSet<u32>| CronField { is_star: text.starts_with('*'), text, values };
    prop_oneof![
        3 => Just(()).prop_map(move |()| one("*".into(), all())),
        1 => (1..=(most - least)).prop_map(move |step| {
            one(format!("*/{step}"), all().into_iter().filter(|value| (value - least).is_multiple_of(step)).collect())
        }),
        3 => (least..=most).prop_map(move |value| one(value.to_string(), BTreeSet::from([value]))),
        2 => (least..=most, least..=most).prop_map(move |(a, b)| {
            let (from, to) = (a.min(b), a.max(b));
            one(format!("{from}-{to}"), all().into_iter().filter(|value| (from..=to).contains(value)).collect())
        }),
        2 => prop::collection::btree_set(least..=most, 2..4).prop_map(move |values| {
            one(values.iter().map(u32::to_string).collect::<Vec<_>>().join(","), values)
        }),
    ]
}

#[derive(Debug, Clone)]
struct Text {
    second: Option<CronField>,
    parts: [CronField; 5],
}

impl Text {
    fn cron(&self) -> String {
        self.second.iter().chain(&self.parts).map(|part| part.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn matches(&self, shown: NaiveDateTime) -> bool {
        let [minute, hour, month_day, month, week_day] = &self.parts;
        let by_month = month_day.values.contains(&shown.day());
        let by_week = week_day.values.contains(&shown.weekday().num_days_from_sunday());
        self.second.as_ref().map_or(shown.second() == 0, |second| second.values.contains(&shown.second()))
            && minute.values.contains(&shown.minute())
            && hour.values.contains(&shown.hour())
            && month.values.contains(&shown.month())
            && if month_day.is_star || week_day.is_star { by_month && by_week } else { by_month || by_week }
    }

    /// A simple model: reads the local time once in every unit and records the matches.
    fn watched(&self, zone: Tz, after: DateTime<Utc>, until: DateTime<Utc>, unit: TimeDelta) -> Vec<DateTime<Utc>> {
        let shown = |moment: DateTime<Utc>| moment.with_timezone(&zone).naive_local();
        let mut came = Vec::new();
        // It begins two days earlier, and knows the latest time that the clock has shown.
        let mut now = after - TimeDelta::days(2);
        let mut latest = shown(now);
        while now < until {
            now += unit;
            let is_time = if self.parts[1].is_star {
                self.matches(shown(now))
            } else {
                let mut is_time = false;
                while latest < shown(now) {
                    latest += unit;
                    is_time |= self.matches(latest);
                }
                is_time
            };
            if is_time && now > after {
                came.push(now);
            }
        }
        came
    }
}

fn text(with_second: bool) -> impl Strategy<Value = Text> {
    let second = if with_second { part(0, 59).prop_map(Some).boxed() } else { Just(None).boxed() };
    // Hours at which clocks change are generated often.
    let early = part(0, 4).prop_filter("a star matches the whole day", |part| !part.is_star);
    let hour = prop_oneof![part(0, 23), early];
    let parts = (part(0, 59), hour, part(1, 31), part(1, 12), part(0, 6));
    (second, parts).prop_map(|(second, (minute, hour, month_day, month, week_day))| Text {
        second,
        parts: [minute, hour, month_day, month, week_day],
    })
}

const ZONES: &[Tz] = &[
    Tz::UTC,
    Tz::Europe__Berlin,
    Tz::Europe__Dublin,
    Tz::America__New_York,
    Tz::America__Sao_Paulo,
    Tz::America__St_Johns,
    Tz::America__Havana,
    Tz::Asia__Beirut,
    Tz::Asia__Kathmandu,
    Tz::Africa__Casablanca,
    Tz::Australia__Lord_Howe,
    Tz::Antarctica__Troll,
    Tz::Pacific__Apia,
];

/// A moment, mostly near a change of the zone's offset.
fn somewhere() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    (prop::sample::select(ZONES), 2009..2036i32, any::<prop::sample::Index>(), -50i64..50, any::<bool>()).prop_map(
        |(zone, year, which, hours, near)| {
            let begin = Utc.with_ymd_and_hms(year, 1, 1, 0, 0, 0).unwrap();
            let offset = |moment: &DateTime<Utc>| zone.offset_from_utc_datetime(&moment.naive_utc()).fix();
            let hour = |n: i64| begin + TimeDelta::hours(n);
            let changes: Vec<_> =
                (0..8760).filter(|n| offset(&hour(*n)) != offset(&hour(n + 1))).map(|n| hour(n + 1)).collect();
            let at = if near && !changes.is_empty() { *which.get(&changes) } else { hour(which.index(8760) as i64) };
            (zone, at + TimeDelta::hours(hours))
        },
    )
}

fn computed(text: &Text, zone: Tz, after: DateTime<Utc>, until: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let recurrence = Recurrence { cron: text.cron().parse().unwrap(), zone };
    std::iter::successors(recurrence.next(after), |time| recurrence.next(*time))
        .take_while(|time| *time <= until)
        .collect()
}

/// Whether such a day exists at all.
fn occurs(text: &Text) -> bool {
    text.cron().parse::<rcrt_schedule::Cron>().is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_the_model_minute_by_minute(text in text(false).prop_filter("never occurs", occurs), (zone, after) in somewhere()) {
        let until = after + TimeDelta::days(4);
        let watched = text.watched(zone, after, until, TimeDelta::minutes(1));
        prop_assert_eq!(computed(&text, zone, after, until), watched, "{} in {}", text.cron(), zone);
    }

    #[test]
    fn past_times_equal_successive_next_times(
        text in text(false).prop_filter("never occurs", occurs), (zone, after) in somewhere(), minutes in 0i64..20_000
    ) {
        let recurrence = Recurrence { cron: text.cron().parse().unwrap(), zone };
        let first = recurrence.next(after).unwrap();
        let now = first + TimeDelta::minutes(minutes);
        let came = computed(&text, zone, after, now);
        let past = recurrence.past(first, now);
        prop_assert_eq!(Some(&past.latest), came.last());
        prop_assert_eq!(past.before, (came.len() as u64 - 1).min(rcrt_schedule::PastFires::COUNTED));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn agrees_with_the_model_second_by_second(text in text(true).prop_filter("never occurs", occurs), (zone, after) in somewhere()) {
        let until = after + TimeDelta::hours(30);
        let watched = text.watched(zone, after, until, TimeDelta::seconds(1));
        prop_assert_eq!(computed(&text, zone, after, until), watched, "{} in {}", text.cron(), zone);
    }

    #[test]
    fn times_keep_the_least_distance(text in text(true).prop_filter("never occurs", occurs)) {
        let least = text.cron().parse::<rcrt_schedule::Cron>().unwrap().least_distance();
        let first = Recurrence { cron: text.cron().parse().unwrap(), zone: Tz::UTC }.next(moment("2026-01-01T00:00:00Z")).unwrap();
        let times = computed(&text, Tz::UTC, first - TimeDelta::seconds(1), first + TimeDelta::hours(26));
        for pair in times.windows(2) {
            prop_assert!(pair[1] - pair[0] >= TimeDelta::from_std(least).unwrap(), "{} {:?}", text.cron(), pair);
        }
    }
}

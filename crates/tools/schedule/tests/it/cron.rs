//! Valid and invalid cron expressions, and the errors for the invalid ones.

use std::fmt::Write;
use std::time::Duration;

use chrono::NaiveDateTime;
use proptest::prelude::*;
use rcrt_schedule::{Cron, CronError};
use rcrt_test_tenant::golden;

fn cron(text: &str) -> Cron {
    text.parse().unwrap_or_else(|error| panic!("{text:?} {error}"))
}

fn shown(text: &str) -> NaiveDateTime {
    text.parse().unwrap()
}

/// The next local times after the first second of this day.
fn next(text: &str, from: &str, most: usize) -> Vec<String> {
    let cron = cron(text);
    let first = cron.next(shown(&format!("{from}T00:00:00")));
    let times = std::iter::successors(first, |time| cron.next(*time + chrono::TimeDelta::seconds(1)));
    times.take(most).map(|time| time.format("%m-%d %a %H:%M:%S").to_string()).collect()
}

#[test]
fn five_fields_use_second_zero_and_six_start_with_seconds() {
    assert_eq!(next("30 9 * * *", "2026-03-01", 2), ["03-01 Sun 09:30:00", "03-02 Mon 09:30:00"]);
    assert_eq!(next("15,45 30 9 * * *", "2026-03-01", 2), ["03-01 Sun 09:30:15", "03-01 Sun 09:30:45"]);
}

#[test]
fn ranges_steps_lists_and_names_in_any_case() {
    assert_eq!(
        next("0 9-17/4 * * mon-Fri", "2026-03-07", 4),
        ["03-09 Mon 09:00:00", "03-09 Mon 13:00:00", "03-09 Mon 17:00:00", "03-10 Tue 09:00:00"]
    );
    assert_eq!(
        next("5/20 0 1 JAN,jul *", "2026-03-01", 3),
        ["07-01 Wed 00:05:00", "07-01 Wed 00:25:00", "07-01 Wed 00:45:00"]
    );
}

#[test]
fn ranges_can_wrap_around() {
    assert_eq!(next("0 0 * * FRI-MON", "2026-03-03", 4).join(" "), next("0 0 * * 5,6,0,1", "2026-03-03", 4).join(" "));
    assert_eq!(
        next("0 22-1 * * *", "2026-03-01", 4),
        ["03-01 Sun 00:00:00", "03-01 Sun 01:00:00", "03-01 Sun 22:00:00", "03-01 Sun 23:00:00"]
    );
}

#[test]
fn sunday_is_0_and_7() {
    for text in ["0 0 * * 0", "0 0 * * 7", "0 0 * * SUN"] {
        assert_eq!(next(text, "2026-03-02", 1), ["03-08 Sun 00:00:00"], "{text}");
    }
    assert_eq!(next("0 0 * * 6-7", "2026-03-02", 2), ["03-07 Sat 00:00:00", "03-08 Sun 00:00:00"]);
}

#[test]
fn day_of_month_or_day_of_week_is_enough_if_both_are_set() {
    assert_eq!(
        next("0 0 13 * FRI", "2026-03-07", 3),
        ["03-13 Fri 00:00:00", "03-20 Fri 00:00:00", "03-27 Fri 00:00:00"]
    );
    assert_eq!(next("0 0 10 * FRI", "2026-03-07", 2), ["03-10 Tue 00:00:00", "03-13 Fri 00:00:00"]);
    // With a star in one of them the other decides, even if the star has a step.
    assert_eq!(next("0 0 */2 * FRI", "2026-03-07", 2), ["03-13 Fri 00:00:00", "03-27 Fri 00:00:00"]);
    assert_eq!(next("0 0 ? * FRI", "2026-03-07", 1), ["03-13 Fri 00:00:00"]);
}

#[test]
fn last_days_and_nearest_weekdays() {
    assert_eq!(next("0 0 L * *", "2026-02-01", 2), ["02-28 Sat 00:00:00", "03-31 Tue 00:00:00"]);
    assert_eq!(next("0 0 L-2 * *", "2026-02-01", 2), ["02-26 Thu 00:00:00", "03-29 Sun 00:00:00"]);
    assert_eq!(next("0 0 LW * *", "2026-02-01", 2), ["02-27 Fri 00:00:00", "03-31 Tue 00:00:00"]);
    // The 15th is a Sunday, then a Sunday, then a Wednesday; the 1st of August 2026 is a Saturday.
    assert_eq!(
        next("0 0 15W * *", "2026-02-01", 3),
        ["02-16 Mon 00:00:00", "03-16 Mon 00:00:00", "04-15 Wed 00:00:00"]
    );
    assert_eq!(next("0 0 1W 8 *", "2026-02-01", 1), ["08-03 Mon 00:00:00"]);
}

#[test]
fn nth_and_last_days_of_week() {
    assert_eq!(next("0 0 * * MON#1", "2026-03-01", 2), ["03-02 Mon 00:00:00", "04-06 Mon 00:00:00"]);
    assert_eq!(next("0 0 * * 5L", "2026-03-01", 2), ["03-27 Fri 00:00:00", "04-24 Fri 00:00:00"]);
    assert_eq!(next("0 0 * * TUE#5", "2026-03-01", 2), ["03-31 Tue 00:00:00", "06-30 Tue 00:00:00"]);
}

#[test]
fn short_names() {
    for (name, text) in [("@daily", "0 0 * * *"), ("@HOURLY", "0 * * * *"), ("@weekly", "0 0 * * 0")] {
        assert_eq!(cron(name), cron(text));
    }
}

#[test]
fn leap_days_are_found_years_ahead() {
    let leap_day = cron("0 12 29 2 *");
    assert_eq!(leap_day.next(shown("2096-03-01T00:00:00")), Some(shown("2104-02-29T12:00:00")));
}

#[test]
fn invalid_expression_names_its_field() {
    let mut output = String::new();
    for text in [
        "",
        "   ",
        "* * * *",
        "* * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * FEV *",
        "* * * * 8",
        "* * * * MONDAY",
        "61 * * * * *",
        "*/0 * * * *",
        "*/90 * * * *",
        "*/x * * * *",
        "*/ * * * *",
        "1,,2 * * * *",
        ", * * * *",
        "1- * * * *",
        "-1 * * * *",
        "1-2-3 * * * *",
        "+5 * * * *",
        "1.5 * * * *",
        "? * * * *",
        "* * 32W * *",
        "* * L-31 * *",
        "* * * * MON#6",
        "* * * * MON#",
        "* * * * L",
        "0 9 every day *",
        "٣ * * * *",
        "@reboot",
        "@every 5m",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 L-30 2 *",
    ] {
        let error = text.parse::<Cron>().expect_err(text);
        writeln!(output, "{text:?}\n    cron: {error}").unwrap();
    }
    assert_eq!("*,".repeat(200).parse::<Cron>(), Err(CronError::TooLong));
    golden(env!("CARGO_MANIFEST_DIR"), "wrong_crons.txt", &output);
}

#[test]
fn impossible_day_of_month_is_accepted_with_a_day_of_week() {
    assert_eq!(next("0 0 30 2 MON", "2026-02-20", 1), ["02-23 Mon 00:00:00"]);
}

#[test]
fn least_distance_between_times() {
    for (text, seconds) in [
        ("* * * * *", 60),
        ("* * * * * *", 1),
        ("*/15 * * * * *", 15),
        ("0,50 * * * * *", 10),
        ("0,50 */2 * * * *", 50),
        ("5,55 59,0 * * * *", 10),
        ("5,55 59,0 3 * * *", 50),
        ("0 0 9 * * *", 60),
    ] {
        assert_eq!(cron(text).least_distance(), Duration::from_secs(seconds), "{text}");
    }
}

proptest! {
    /// Any text is parsed or refused quickly, without a panic.
    #[test]
    fn parsing_any_text_never_panics(text in "[-0-9*/,?LW#@A-Za-z ٣]{0,40}") {
        if let Ok(cron) = text.parse::<Cron>() {
            let from = shown("2026-03-01T00:00:00");
            let next = cron.next(from).unwrap();
            prop_assert!(next >= from && cron.admits(next));
        }
    }
}

//! Reports for programs and people.

use std::time::Duration;

use rcrt_load::report::{duration, number};
use rcrt_load::{Report, Row};

fn report() -> Report {
    let mut report = Report::new("Speed", "make bench");
    report.versions.insert("rcrt".into(), "0.1.0".into());
    report.push(Row::new("floors", "insert", 1234.5, "calls/s"));
    let rate = Row::new("calls", "durable", 617.0, "calls/s").ratio(1234.5, "insert");
    report.push(rate.target("at least 0.3 × insert", true));
    report.push(Row::new("calls", "latency", 9.0, "ms").target("at most 8 ms", false).note("noisy"));
    report.push(Row::missing("peers", "Restate", "no binary for this system").target("below it", true));
    report
}

#[test]
fn a_report_is_read_back_unchanged() {
    let report = report();
    let read: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(read, report);
    assert!(report.machine.processors >= 1);
}

#[test]
fn a_missing_row_is_shown_and_misses_no_target() {
    let report = report();
    let missing = report.find("peers", "Restate").unwrap();
    assert_eq!((missing.value, missing.holds, &missing.ratio), (None, None, &None));
    let short: Vec<&str> =
        report.rows.iter().filter(|row| row.holds == Some(false)).map(|row| row.name.as_str()).collect();
    assert_eq!(short, ["latency"]);
    assert!(report.table().to_string().contains("missing"));
}

#[test]
fn a_page_has_a_table_for_each_section() {
    let page = report().markdown();
    for text in [
        "# Speed\n",
        "`make bench`",
        "rcrt 0.1.0",
        "## floors",
        "## calls",
        "| durable | 617 calls/s | 0.500 × insert | at least 0.3 × insert | yes |",
        "| latency | 9.00 ms |  | at most 8 ms | NO | noisy |",
        "| Restate | missing |",
    ] {
        assert!(page.contains(text), "{text:?} is not in {page}");
    }
}

#[test]
fn a_ratio_to_zero_is_none() {
    assert_eq!(Row::new("a", "b", 1.0, "s").ratio(0.0, "nothing").ratio, None);
}

#[test]
fn numbers_show_significant_digits() {
    for (value, text) in [
        (0.0, "0"),
        (0.001_234, "0.00123"),
        (0.5, "0.500"),
        (1.0, "1.00"),
        (9.999, "10.0"),
        (12.34, "12.3"),
        (99.99, "100"),
        (123.4, "123"),
        (1234.5, "1,234"),
        (1_234_567.0, "1,234,567"),
        (-12_345.0, "-12,345"),
        (f64::NAN, "?"),
    ] {
        assert_eq!(number(value), text, "{value}");
    }
    assert_eq!(duration(Duration::from_micros(45)), "45.0 µs");
    assert_eq!(duration(Duration::from_millis(1500)), "1.50 s");
}

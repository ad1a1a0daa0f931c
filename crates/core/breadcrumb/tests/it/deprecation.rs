use chrono::{Days, NaiveDate, NaiveTime};
use proptest::prelude::*;
use rcrt_breadcrumb::{Deprecation, ToolDefinition};
use serde_json::{Value, json};

use crate::object;

fn read(deprecated: &Value) -> Result<Option<Deprecation>, String> {
    let context = json!({"name": "x", "code": {"language": "typescript", "source": ""}, "deprecated": deprecated});
    let definition = ToolDefinition::read("tool.code.v1", &object(context), None, None);
    definition.map(|definition| definition.deprecated).map_err(|violations| violations.to_string())
}

#[test]
fn a_wrong_field_is_named_with_what_is_right() {
    for (deprecated, message) in [
        (json!({}), "deprecated.since: is required"),
        (json!({"since": "soon"}), "deprecated.since: must be a day such as 2026-01-31"),
        (json!({"since": "2026-1-31"}), "deprecated.since: must be a day such as 2026-01-31"),
        (json!({"since": "2026-02-30"}), "deprecated.since: must be a day such as 2026-01-31"),
        (
            json!({"since": "2026-01-31", "remove_after": "2026-01-31T00:00:00Z"}),
            "deprecated.remove_after: must be a day such as 2026-01-31",
        ),
    ] {
        let refused = read(&deprecated).unwrap_err();
        assert!(refused.contains(message), "{deprecated}: {refused}");
    }
    assert_eq!(read(&Value::Null), Ok(None));
}

fn day() -> impl Strategy<Value = NaiveDate> {
    (2_000_u32..4_000_000).prop_filter_map("a day with four digits in its year", |number| {
        let day = NaiveDate::from_num_days_from_ce_opt(i32::try_from(number).ok()?)?;
        (day.to_string().len() == 10).then_some(day)
    })
}

proptest! {
    #[test]
    fn every_day_is_read_as_it_is_written(since in day(), last in proptest::option::of(day())) {
        let written = json!({"since": since.to_string(), "use": "y", "remove_after": last.map(|day| day.to_string())});
        let found = read(&written).unwrap().unwrap();
        prop_assert_eq!((found.since, found.remove_after), (since, last));
        let back: Deprecation = serde_json::from_value(json!(found)).unwrap();
        prop_assert_eq!(back, found);
    }

    #[test]
    fn a_tool_can_be_called_until_the_end_of_its_last_day(last in day(), seconds in 0_u32..86_400) {
        let found = Deprecation { since: last, replacement: Some("y".into()), remove_after: Some(last) };
        let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds, 0).unwrap();
        prop_assert!(!found.is_over(last.and_time(time).and_utc()));
        prop_assert_eq!(found.removal("x", last.and_time(time).and_utc()), None);
        let refusal = format!("the tool \"x\" was removed after {last}; use y instead");
        prop_assert_eq!(found.removal("x", (last + Days::new(1)).and_time(time).and_utc()), Some(refusal));
        prop_assert!(found.is_over((last + Days::new(1)).and_time(time).and_utc()));
        let endless = Deprecation { remove_after: None, ..found };
        prop_assert!(!endless.is_over(last.and_time(time).and_utc()));
    }
}

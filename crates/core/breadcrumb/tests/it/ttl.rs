//! Times to live, compared with a model that has a clock.

use chrono::{DateTime, TimeDelta, Utc};
use proptest::option;
use proptest::prelude::*;
use rcrt_breadcrumb::{BreadcrumbChanges, Expiry, NewBreadcrumb, TimeToLive, TtlType, ttl_seconds};
use serde_json::{Value, json};

fn moment(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn kinds() -> impl Strategy<Value = Option<TtlType>> {
    option::of(prop::sample::select(TtlType::ALL.to_vec()))
}

fn numbers() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0u64..100).prop_map(Value::from),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!(u64::MAX)),
        Just(json!("2m")),
        Just(json!(null)),
    ]
}

/// Whether a record that was written at `written` and read this often still exists, computed in the
/// simplest way.
fn model(
    (kind, ttl, duration, reads): (Option<TtlType>, Option<i64>, Option<u64>, Option<u64>),
    written: i64,
    now: i64,
    read: u64,
) -> bool {
    let by_time = match (ttl, duration) {
        (Some(end), _) => now < end,
        (None, Some(seconds)) => now < written + seconds as i64,
        (None, None) => true,
    };
    let by_reads = reads.is_none_or(|most| read < most);
    match kind {
        Some(TtlType::Never) => true,
        Some(TtlType::Usage) => by_reads,
        Some(TtlType::Hybrid) => by_time && by_reads,
        Some(TtlType::Datetime | TtlType::Duration) | None => by_time,
    }
}

proptest! {
    #[test]
    fn accepted_ttls_expire_as_in_the_model(
        kind in kinds(), ttl in option::of(1_000i64..2_000), duration in option::of(0u64..500),
        reads in option::of(0u64..5), written in 1_000i64..1_500, later in 0i64..1_000, read in 0u64..6,
    ) {
        let mut config = serde_json::Map::new();
        config.extend(duration.map(|seconds| ("duration".to_owned(), json!(seconds))));
        config.extend(reads.map(|reads| ("max_reads".to_owned(), json!(reads))));
        let taken = TimeToLive::read(ttl.map(moment), kind, Some(&Value::Object(config)));
        if let Ok(taken) = taken {
            let now = written + later;
            let there = taken.ends_at(moment(written)).is_none_or(|end| moment(now) < end)
                && taken.max_reads.is_none_or(|most| read < most);
            prop_assert_eq!(there, model((kind, ttl, duration, reads), written, now, read));
        } else {
            // No valid combination is refused.
            let is_plain = match kind {
                None | Some(TtlType::Datetime) => duration.is_none() && reads.is_none() && (kind.is_none() || ttl.is_some()),
                Some(TtlType::Never) => ttl.is_none() && duration.is_none() && reads.is_none(),
                Some(TtlType::Duration) => reads.is_none() && duration != Some(0) && (ttl.is_some() || duration.is_some()),
                Some(TtlType::Usage) => ttl.is_none() && duration.is_none() && reads.is_some_and(|reads| reads > 0),
                Some(TtlType::Hybrid) => {
                    reads.is_some_and(|reads| reads > 0) && duration != Some(0) && (ttl.is_some() || duration.is_some())
                }
            };
            prop_assert!(!is_plain, "{kind:?} {ttl:?} {duration:?} {reads:?}");
        }
    }

    #[test]
    fn arbitrary_configuration_is_accepted_or_names_the_field(
        kind in kinds(), ttl in option::of(0i64..2_000), duration in option::of(numbers()), reads in option::of(numbers()),
    ) {
        let mut config = serde_json::Map::new();
        config.extend(duration.map(|value| ("duration".to_owned(), value)));
        config.extend(reads.map(|value| ("max_reads".to_owned(), value)));
        match TimeToLive::read(ttl.map(moment), kind, Some(&Value::Object(config))) {
            Ok(taken) => {
                prop_assert_eq!(taken.max_reads.is_some(), kind.is_some_and(TtlType::counts_reads));
                prop_assert!(taken.max_reads != Some(0));
            }
            Err(found) => prop_assert!(
                !found.is_empty() && found.0.iter().all(|one| one.field.starts_with("ttl")),
                "{}", found
            ),
        }
    }

    #[test]
    fn duration_parsing_never_panics(text in "\\PC{0,12}") {
        if let Some(seconds) = ttl_seconds(&json!(text)) {
            prop_assert!(seconds >= 1);
        }
    }
}

#[test]
fn durations_are_seconds_or_strings_with_a_unit() {
    for (text, seconds) in
        [("45s", 45), ("15m", 900), ("2h", 7200), ("24 hours", 86_400), ("30d", 2_592_000), (" 1 week ", 604_800)]
    {
        assert_eq!(ttl_seconds(&json!(text)), Some(seconds), "{text}");
    }
    assert_eq!(ttl_seconds(&json!(60)), Some(60));
    for wrong in
        [json!("60"), json!("h"), json!("1.5h"), json!("-1h"), json!("0s"), json!(0), json!("999999999999999999d")]
    {
        assert_eq!(ttl_seconds(&wrong), None, "{wrong}");
    }
}

#[test]
fn a_duration_runs_from_the_write() {
    let now = Utc::now();
    let record = NewBreadcrumb {
        title: "T".into(),
        ttl_type: Some(TtlType::Duration),
        ttl_config: Some(json!({"duration": 60})),
        ..NewBreadcrumb::default()
    };
    assert_eq!(record.ends_at(now), Some(now + TimeDelta::seconds(60)));
    assert_eq!(record.time_to_live().unwrap().expiry, Expiry::After(60));
}

#[test]
fn only_ttl_fields_reset_the_ttl() {
    assert!(!BreadcrumbChanges { title: Some("x".into()), ..BreadcrumbChanges::default() }.names_ttl());
    assert!(BreadcrumbChanges { ttl_config: Some(json!({})), ..BreadcrumbChanges::default() }.names_ttl());
}

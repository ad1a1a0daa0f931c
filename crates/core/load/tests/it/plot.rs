//! Pictures.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use rcrt_load::Histogram;
use rcrt_load::plot::{Axis, Bars, Lines, PlotError, percentiles};

/// Whether a text is a complete picture without invalid numbers.
fn is_sound(svg: &str) -> bool {
    svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && !svg.contains("NaN") && !svg.contains("inf")
}

#[test]
fn lines_have_names_and_labels() {
    let svg = Lines::new("Latency over <size>", Axis::logarithmic("records"), Axis::linear("ms"))
        .series("p50", vec![(1.0, 2.0), (1000.0, 2.5), (1_000_000.0, 3.0)])
        .series("p99", vec![(1.0, 4.0), (1_000_000.0, 6.0)])
        .svg()
        .unwrap();
    assert!(is_sound(&svg), "{svg}");
    for text in ["p50", "p99", "records", "ms", "Latency over &lt;size&gt;"] {
        assert!(svg.contains(text), "{text} is not in {svg}");
    }
}

#[test]
fn bars_have_names_and_numbers() {
    let svg = Bars::new("Calls per second", "calls/s").bar("rcrt", 1234.0).bar("a peer", 99.0).svg().unwrap();
    assert!(is_sound(&svg), "{svg}");
    for text in ["Calls per second", "rcrt", "a peer", "1,234 calls/s"] {
        assert!(svg.contains(text), "{text} is not in {svg}");
    }
}

#[test]
fn latencies_reach_as_far_right_as_the_number_of_calls() {
    let latency: Histogram = (1..=1000).map(Duration::from_millis).collect();
    let lines = percentiles("Latency", &[("all", &latency)]);
    let points = &lines.series[0].points;
    let (first, last) = (points.first().unwrap(), points.last().unwrap());
    assert_eq!((first.0, last.0), (1.0, 1000.0));
    assert!((last.1 - 999.0).abs() <= 1.0, "{last:?}");
    assert!(is_sound(&lines.svg().unwrap()));
}

#[test]
fn without_points_there_is_no_picture() {
    let nothing = Histogram::new();
    assert_eq!(percentiles("Latency", &[("none", &nothing)]).svg(), Err(PlotError::Nothing));
    assert_eq!(Bars::new("none", "").svg(), Err(PlotError::Nothing));
    let below = Lines::new("below", Axis::logarithmic("x"), Axis::linear("y")).series("a", vec![(0.0, 1.0)]);
    assert_eq!(below.svg(), Err(PlotError::Nothing));
}

proptest! {
    #[test]
    fn any_values_can_be_drawn(
        points in vec((-1e3..1e7_f64, -1e3..1e7_f64), 1..20),
        x_is_logarithmic: bool,
        y_is_logarithmic: bool,
    ) {
        let axis = |is_logarithmic, label| {
            if is_logarithmic { Axis::logarithmic(label) } else { Axis::linear(label) }
        };
        let lines = Lines::new("any", axis(x_is_logarithmic, "x"), axis(y_is_logarithmic, "y")).series("a", points);
        match lines.svg() {
            Ok(svg) => prop_assert!(is_sound(&svg), "{}", svg),
            Err(error) => prop_assert_eq!(error, PlotError::Nothing),
        }
    }
}

use proptest::prelude::*;
use rcrt_breadcrumb::Traceparent;

const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn traceparent_is_parsed_and_formatted() {
    let parsed: Traceparent = GOOD.parse().unwrap();
    assert_eq!(parsed.trace_id.get(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    assert_eq!(parsed.span_id.get(), 0x00f0_67aa_0ba9_02b7);
    assert!(parsed.sampled);
    assert_eq!(parsed.to_string(), GOOD);
    // Only the first flag has a meaning here. A later version may add more fields.
    let later: Traceparent = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-fe-more-of-it".parse().unwrap();
    assert!(!later.sampled);
}

#[test]
fn invalid_traceparents_are_refused() {
    for text in [
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ] {
        assert!(text.parse::<Traceparent>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn parsing_traceparent_never_panics(text in "\\PC{0,80}") {
        let _ = text.parse::<Traceparent>();
    }

    #[test]
    fn traceparent_round_trips(trace in 1u128.., span in 1u64.., sampled: bool) {
        let parsed = Traceparent { trace_id: trace.try_into().unwrap(), span_id: span.try_into().unwrap(), sampled };
        prop_assert_eq!(parsed.to_string().parse::<Traceparent>(), Ok(parsed));
    }
}

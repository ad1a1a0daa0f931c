use rcrt_breadcrumb::{ShadowReport, shadow_share, shadow_tag};

#[test]
fn only_a_draft_with_a_share_in_percent_is_a_shadow() {
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    assert_eq!(shadow_share(&tags(&["tool:draft", &shadow_tag(10)])), Some(10));
    for other in [&["tool:shadow:10"][..], &["tool:draft"], &["tool:draft", "tool:shadow:0"]] {
        assert_eq!(shadow_share(&tags(other)), None, "{other:?}");
    }
    assert_eq!(shadow_share(&tags(&["tool:draft", "tool:shadow:101"])), None);
}

#[test]
fn counts_are_of_one_pair_of_definitions() {
    let of = |version: u32, same, different| ShadowReport {
        definition_hash: version.to_string(),
        same,
        different,
        ..Default::default()
    };
    let mut report = of(1, 30, 0);
    report.add(of(1, 20, 0));
    assert!(report.is_ready());
    report.add(of(1, 0, 1));
    assert_eq!((report.same, report.is_ready()), (50, false));
    report.add(of(2, 1, 0));
    assert_eq!(report, of(2, 1, 0));
}

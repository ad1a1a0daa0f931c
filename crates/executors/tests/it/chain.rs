use executors::Chain;

#[test]
fn marks_hold_for_the_version_that_was_written() {
    let chain = Chain::default().with("first").with("with.dots-and_more").with("first");
    let mut tags = vec!["note".to_owned(), "triggered:older:3".to_owned()];
    chain.mark(&mut tags, 4);
    assert_eq!(tags, ["note", "triggered:first:4", "triggered:with.dots-and_more:4"]);
    assert_eq!(Chain::of(&tags, 4), chain);
    assert!(Chain::of(&tags, 5).is_empty(), "somebody else wrote the next version");
    assert!(Chain::of(&tags, 4).contains("first"));
    assert!(!Chain::of(&tags, 4).contains("second"));
}

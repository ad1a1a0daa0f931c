use rcrt_executors::TriggerChain;
use uuid::Uuid;

#[test]
fn marks_apply_to_the_written_version_only() {
    let chain = TriggerChain::default().with("first").with("with.dots-and_more").with("first");
    let mut tags = vec!["note".to_owned(), "triggered:older:3".to_owned()];
    chain.mark(&mut tags, 4);
    assert_eq!(tags, ["note", "triggered:first:4", "triggered:with.dots-and_more:4"]);
    assert_eq!(TriggerChain::of(&tags, 4), chain);
    assert!(TriggerChain::of(&tags, 5).is_empty(), "another writer wrote the next version");
    assert!(TriggerChain::of(&tags, 4).contains("first"));
    assert!(!TriggerChain::of(&tags, 4).contains("second"));
}

#[test]
fn records_of_a_triggered_call_name_it() {
    let id = Uuid::now_v7();
    let mut tags = vec![format!("triggered-by:{}:2", Uuid::nil())];
    TriggerChain::of_call(id, &["triggered:first:1".to_owned()]).mark(&mut tags, 3);
    assert_eq!(tags, ["triggered:first:3".to_owned(), format!("triggered-by:{id}:3")]);
    assert_eq!(TriggerChain::of(&tags, 3).call(), Some(id));
    assert_eq!(TriggerChain::of(&tags, 4).call(), None);
    // No event led to it.
    assert_eq!(TriggerChain::of_call(id, &[]).call(), None);
}

#[test]
fn nested_requests_are_limited() {
    let mut tags = vec!["workspace:tools".to_owned()];
    let mut count = 0;
    while TriggerChain::of_request(&tags).mark_request(&mut tags).is_ok() {
        count += 1;
        assert_eq!(tags, ["workspace:tools".to_owned(), format!("nested:{count}")]);
    }
    assert_eq!(count, 8);
    let mut tags = vec!["nested:0".to_owned()];
    TriggerChain::default().with("first").mark_request(&mut tags).unwrap();
    assert_eq!(tags, ["triggered:first:1", "nested:1"], "a tool cannot set marks itself");
}

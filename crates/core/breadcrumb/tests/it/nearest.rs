use rcrt_breadcrumb::nearest_names;

#[test]
fn similar_names_are_suggested() {
    let known = ["calculator", "echo", "web_search", "web_fetch"];
    let near = |wanted: &str| nearest_names(wanted, known.into_iter());
    assert_eq!(near("calculater"), ["calculator"]);
    assert_eq!(near("Calculator"), ["calculator"]);
    assert_eq!(near("ecko"), ["echo"]);
    assert_eq!(near("weather"), [""; 0]);
    assert_eq!(near(""), [""; 0]);
}

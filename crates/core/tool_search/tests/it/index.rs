use std::collections::BTreeMap;

use proptest::prelude::*;
use rcrt_breadcrumb::{Catalog, Registration};
use rcrt_tool_search::{Meaning, Question, ToolSearch};
use serde_json::json;
use uuid::Uuid;

use crate::{names, question, search_of, tool};

fn few() -> Vec<Registration> {
    vec![
        tool("create_issue", "mcp:forge", "Opens a new issue in a repository.", &[("title", "Headline")]),
        tool("list_issues", "mcp:forge", "Lists the issues of a repository.", &[("state", "open or closed")]),
        tool("sendMessage", "native", "Writes to a person.", &[("to", "Receiver")]),
        tool("Wetter", "sandbox", "Das Wetter in München, Zürich und 東京.", &[]),
    ]
}

#[test]
fn names_are_split_and_words_are_found_in_other_forms() {
    let search = search_of(few());
    for (text, first) in [
        ("send message", "sendMessage"),
        ("messages", "sendMessage"),
        ("sendmessage", "sendMessage"),
        ("issue creating", "create_issue"),
        ("list-issues", "list_issues"),
        ("headlines", "create_issue"),
        ("closed", "list_issues"),
        ("wetter zurich", "Wetter"),
        ("東京", "Wetter"),
        ("京", "Wetter"),
        ("München's Wetter", "Wetter"),
        ("repositroy of a new isue", "create_issue"),
    ] {
        assert_eq!(names(&search, text).first().map(String::as_str), Some(first), "{text}");
    }
    assert!(names(&search, "how do I").is_empty(), "stop words");
    assert!(names(&search, "xylophone").is_empty());
    assert!(names(&search, "!?").is_empty());
}

#[test]
fn a_code_is_not_found_by_a_similar_one() {
    let search = search_of([tool("explain", "native", "Explains the error E4713.", &[])]);
    assert_eq!(names(&search, "E4713"), ["explain"]);
    assert!(names(&search, "E4714").is_empty());
}

#[test]
fn neighbours_count_more_than_the_same_words_apart() {
    let search = search_of([
        tool("a", "native", "A request to pull the plug.", &[]),
        tool("b", "native", "The plug of a pull request.", &[]),
    ]);
    assert_eq!(names(&search, "pull request"), ["b", "a"]);
}

#[test]
fn changes_are_found_at_once() {
    let mut changed = few();
    let mut search = search_of(changed.clone());
    assert!(names(&search, "translate").is_empty());
    search.insert(tool("babel", "native", "Translates texts.", &[]));
    assert_eq!(names(&search, "translate"), ["babel"]);
    search.insert(tool("babel", "native", "Towers.", &[]));
    assert!(names(&search, "translate").is_empty());
    assert_eq!(search.len(), 5);
    assert!(search.remove("babel") && !search.remove("babel"));
    assert!(names(&search, "tower").is_empty());

    changed.remove(0);
    changed[0].description = "Unchanged, because the version is the same.".into();
    changed[1].tool_version += 1;
    changed[1].description = "Rings a bell.".into();
    changed.push(tool("added", "native", "Adds numbers.", &[]));
    search.set(&Catalog::new(changed, Vec::new()));
    assert!(names(&search, "headline").is_empty());
    assert_eq!(names(&search, "repository"), ["list_issues"]);
    assert_eq!(names(&search, "bell"), ["sendMessage"]);
    assert_eq!(names(&search, "numbers"), ["added"]);
}

#[test]
fn what_cannot_be_called_is_not_found_and_changes_no_score() {
    let open = few();
    let mut all = open.clone();
    for number in 0..20 {
        all.push(tool(&format!("secret_issue_{number}"), "mcp:secret", "Opens an issue of the vault.", &[]));
    }
    let (open, all) = (search_of(open), search_of(all));
    for text in ["open an issue", "vault", "create issue", "vualt isue"] {
        let allows = |tool: &Registration| tool.source.to_string() != "mcp:secret";
        assert_eq!(all.tools(&question(text), allows, 50), open.tools(&question(text), |_| true, 50), "{text}");
    }
}

#[test]
fn a_meaning_finds_what_has_no_word_of_the_question() {
    let tools = few();
    let (issue, message) = (tools[0].tool_id, tools[2].tool_id);
    let search = search_of(tools);
    let mut meaning = Meaning::default();
    meaning.add([(message, 0.6), (issue, 0.1)]);
    let asked = question("drop somebody a line").with_cosines(meaning.clone());
    let found = search.tools(&asked, |_| true, 5);
    assert_eq!(found.len(), 1, "one is near: {found:?}");
    assert_eq!(found[0].name, "sendMessage");
    // The words win where the meaning does not count.
    let asked = |weight: f64| question("create issue").with_cosines(meaning.clone()).with_meaning_weight(weight);
    assert_eq!(search.tools(&asked(0.0), |_| true, 1)[0].name, "create_issue");
    let found = search.tools(&asked(1.0), |_| true, 9);
    assert_eq!(found[0].name, "sendMessage");
    assert!((found[0].score - 0.6).abs() < 1e-9);
    assert_eq!(found.len(), 3, "one has no vector, so its words count: {found:?}");
}

#[test]
fn a_question_is_bounded() {
    for (text, why) in [("", "is required"), (" \n", "is required"), (&"x".repeat(1001), "at most 1000 characters")] {
        let error = Question::new("query", text).unwrap_err().to_string();
        assert!(error.contains("query") && error.contains(why), "{error}");
    }
    let search = search_of(few());
    for text in ["issue ".repeat(166), "a b ".repeat(250), "é".repeat(1000), "東京".repeat(500), "iI".repeat(500)] {
        search.tools(&question(&text), |_| true, 5);
    }
    let many: Vec<String> = (0..150).map(|number| format!("w{number}")).collect();
    assert!(search.tools(&question(&many.join(" ")), |_| true, 5).is_empty());
}

#[test]
fn large_and_deep_definitions_are_bounded() {
    let mut deep = json!({"description": "bottom"});
    for _ in 0..60 {
        deep = json!({"properties": {"down": deep}});
    }
    let wide: serde_json::Map<_, _> =
        (0..5000).map(|number| (format!("field{number}"), json!({"description": "wide"}))).collect();
    let mut tools = few();
    tools[0].parameters = deep;
    tools[1].parameters = json!({"properties": wide});
    tools[1].description = format!("Lists issues. {}", "word ".repeat(100_000));
    let search = search_of(tools);
    assert!(names(&search, "bottom").is_empty());
    assert_eq!(names(&search, "field3"), ["list_issues"]);
    assert!(names(&search, "field4999").is_empty());
}

#[derive(Debug, Clone)]
enum Change {
    Insert(u8, Vec<u8>),
    Remove(u8),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..8_u8, prop::collection::vec(0..12_u8, 0..8)).prop_map(|(name, words)| Change::Insert(name, words)),
        1 => (0..8_u8).prop_map(Change::Remove),
    ]
}

proptest! {
    /// After any changes, the index answers as one that was made from the tools that are left.
    #[test]
    fn an_index_that_changed_equals_a_new_one(changes in prop::collection::vec(change(), 0..40)) {
        const WORDS: [&str; 12] =
            ["mail", "send", "issue", "create", "weather", "rain", "pull", "request", "merge", "file", "read", "disk"];
        let mut changed = ToolSearch::default();
        let mut left = BTreeMap::new();
        for change in changes {
            match change {
                Change::Insert(name, words) => {
                    let text: Vec<&str> = words.iter().map(|word| WORDS[usize::from(*word)]).collect();
                    let one = tool(&format!("t{name}"), "native", &text.join(" "), &[]);
                    changed.insert(one.clone());
                    left.insert(name, one);
                }
                Change::Remove(name) => {
                    prop_assert_eq!(changed.remove(&format!("t{name}")), left.remove(&name).is_some());
                }
            }
        }
        let new = search_of(left.into_values());
        prop_assert_eq!(changed.len(), new.len());
        for text in ["pull request", "create issue merge", "send mail", "rian"] {
            prop_assert_eq!(changed.tools(&question(text), |_| true, 50), new.tools(&question(text), |_| true, 50));
        }
    }

    #[test]
    fn no_text_fails_and_scores_are_shares(text in "\\PC{1,200}", description in "\\PC{0,200}") {
        prop_assume!(!text.trim().is_empty());
        let mut tools = few();
        tools[0].description = description;
        tools[1].tool_id = Uuid::nil();
        let found = search_of(tools).tools(&question(&text), |_| true, 50);
        prop_assert!(found.iter().all(|one| one.score > 0.0 && one.score <= 1.0));
        prop_assert!(found.is_sorted_by(|one, other| one.score >= other.score));
    }
}

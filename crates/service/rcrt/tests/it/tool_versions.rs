//! `rcrt tool history`, `diff`, `rollback`, `retire` and `delete` on one real system.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::constant_tool::{self, answer};
use crate::program::Running;

/// How long a test waits for what follows a write.
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn versions_of_a_tool_are_listed_compared_and_restored() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    unknown_names_and_versions_are_refused(&up, folder.path());
    a_tool_is_rolled_back(&up, folder.path());
    a_change_of_the_title_is_not_another_definition(&up, folder.path());
    an_older_version_can_be_called(&up, folder.path());
    an_invalid_version_is_not_restored(&up, folder.path());
    a_rollback_does_not_rename(&up, folder.path());
    a_rollback_prefers_published_versions(&up, folder.path());
    callers_of_deprecated_tools_are_listed(&up, folder.path());
    a_removed_tool_is_not_offered(&up, folder.path());
    a_retired_tool_comes_back(&up, folder.path());
    a_deleted_tool_does_not_come_back(&up, folder.path());
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// Writes the tool's files and bootstraps them.
fn publish(up: &Running, folder: &Path, name: &str, version: &str, answer: &str) {
    let folder = folder.join(name);
    constant_tool::write(&folder, name, answer, &json!({"version": version}));
    up.run(&["bootstrap", folder.to_str().unwrap()]).ends_with(0);
}

/// Changes the tool's record.
fn patch(up: &Running, name: &str, changes: &Value) {
    constant_tool::patch(up, &up.json(&["tool", "show", name]), changes);
}

/// The version and the state of each row, newest first.
fn states(up: &Running, name: &str) -> Vec<(i64, String)> {
    let rows = up.json(&["tool", "history", name]);
    let row = |row: &Value| (row["version"].as_i64().unwrap(), row["state"].as_str().unwrap().to_owned());
    rows.as_array().unwrap().iter().map(row).collect()
}

/// As [`states`], once the runner has reported on the newest version. Its report follows the write.
fn awaited_states(up: &Running, name: &str, expected: &[(i64, &str)]) {
    let begun = Instant::now();
    while states(up, name) != listed(expected) {
        assert!(begun.elapsed() < PATIENCE, "{name}: {:?}", states(up, name));
    }
}

fn listed(rows: &[(i64, &str)]) -> Vec<(i64, String)> {
    rows.iter().map(|(version, state)| (*version, (*state).to_owned())).collect()
}

fn unknown_names_and_versions_are_refused(up: &Running, folder: &Path) {
    publish(up, folder, "numbers", "1.0.0", "one");
    for command in ["history", "diff", "rollback", "retire", "delete"] {
        let text = up.run(&["tool", command, "numbres"]).ends_with(3).stderr;
        assert!(text.contains("there is no tool named numbres; did you mean numbers?"), "{command}: {text}");
    }
    for command in [&["diff", "numbers", "7"][..], &["diff", "numbers", "1", "7"], &["rollback", "numbers", "7"]] {
        let text = up.run(&[&["tool"], command].concat()).ends_with(3).stderr;
        assert!(text.contains("the tool has no version 7; it has 1"), "{command:?}: {text}");
    }
    up.run(&["tool", "rollback", "numbers", "0"]).ends_with(2);
    let text = up.run(&["tool", "rollback", "numbers"]).ends_with(3).stderr;
    assert!(text.contains("no older version that differs"), "{text}");
    let text = up.run(&["tool", "rollback", "numbers", "1"]).ends_with(2).stderr;
    assert!(text.contains("is the same definition as the current one"), "{text}");
    let text = up.run(&["tool", "diff", "numbers"]).ends_with(3).stderr;
    assert!(text.contains("has no version before 1"), "{text}");
}

fn a_tool_is_rolled_back(up: &Running, folder: &Path) {
    publish(up, folder, "greet", "1.0.0", "good");
    publish(up, folder, "greet", "2.0.0", "bad");
    assert_eq!(states(up, "greet"), listed(&[(2, "current"), (1, "old")]));
    let rows = up.json(&["tool", "history", "greet"]);
    assert_eq!((&rows[0]["tool_version"], &rows[1]["tool_version"]), (&json!("2.0.0"), &json!("1.0.0")));
    assert_ne!(rows[0]["definition_hash"], rows[1]["definition_hash"]);

    let text = up.run(&["tool", "diff", "greet"]).ends_with(0).stdout;
    let place = |line: &str| text.lines().position(|found| found == line).unwrap_or_else(|| panic!("{line}: {text}"));
    assert_eq!(place("--- greet version 1: code.source"), 0);
    assert!(place("-  return { answer: \"good\" };") < place("+  return { answer: \"bad\" };"), "{text}");
    assert!(place("-\"1.0.0\"") < place("+\"2.0.0\""), "{text}");
    let changes = up.json(&["tool", "diff", "greet", "1", "2"])["changes"].clone();
    let fields: Vec<&str> = changes.as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap()).collect();
    assert!(fields.contains(&"code.source") && fields.contains(&"context.version"), "{fields:?}");
    assert!(!fields.contains(&"context.name"), "{fields:?}");
    assert_eq!(up.json(&["tool", "diff", "greet", "2", "2"])["changes"], json!([]));

    let back = up.json(&["tool", "rollback", "greet"]);
    assert_eq!((&back["from"], &back["version"], &back["problem"]), (&json!(1), &json!(3), &Value::Null), "{back}");
    // The runner has the version when the command ends.
    assert_eq!(answer(up, "greet"), "good");
    assert_eq!(states(up, "greet"), listed(&[(3, "current"), (2, "old"), (1, "old")]));
    let rows = up.json(&["tool", "history", "greet"]);
    assert_eq!(rows[0]["definition_hash"], rows[2]["definition_hash"]);
    assert_eq!(back["definition_hash"], rows[0]["definition_hash"]);
    let ran = up.run(&["tool", "rollback", "greet", "2"]).ends_with(0);
    assert!(ran.stdout.contains("greet: version 2 is now version 4"), "{}", ran.stdout);
    assert_eq!(answer(up, "greet"), "bad");
}

fn a_change_of_the_title_is_not_another_definition(up: &Running, folder: &Path) {
    publish(up, folder, "titled", "1.0.0", "first");
    patch(up, "titled", &json!({"title": "Another title"}));
    up.run(&["tool", "rollback", "titled"]).ends_with(3);
    assert_eq!(states(up, "titled"), listed(&[(2, "current"), (1, "old")]));
    let changes = up.json(&["tool", "diff", "titled"])["changes"].clone();
    assert_eq!(changes[0]["field"], "title", "{changes}");
    assert_eq!(changes[0]["diff"], json!(["@@ -1 +1 @@", "-The tool titled", "+Another title"]));
}

fn an_older_version_can_be_called(up: &Running, folder: &Path) {
    publish(up, folder, "pinned", "1.0.0", "one");
    publish(up, folder, "pinned", "2.0.0", "two");
    let call = |more: &[&str]| up.json(&[&["call", "pinned", "{}"], more].concat());
    let pin = up.json(&["tool", "pin", "pinned", "1"]);
    let hash = up.run(&["tool", "pin", "pinned", "1"]).ends_with(0).stdout.trim().to_owned();
    assert_eq!((&pin["version"], &pin["definition_hash"]), (&json!(1), &json!(hash)), "{pin}");
    for (more, answer, version) in [
        (&["--version", "1"][..], "one", 1),
        (&["--definition-hash", &hash], "one", 1),
        (&["--version", "2"], "two", 2),
        (&[], "two", 2),
    ] {
        let response = call(more);
        assert_eq!(response["output"]["answer"], answer, "{more:?}");
        assert_eq!(response["metadata"]["tool_version"], version, "{more:?}");
        assert_eq!(response["metadata"]["definition_hash"] == hash.as_str(), version == 1, "{more:?}");
    }
    let invoked = up.post("/tools/pinned/invoke", &json!({"version": 1}));
    assert_eq!(invoked["output"]["answer"], "one", "{invoked}");
    let current = up.json(&["tool", "pin", "pinned"]);
    assert_eq!(current["version"], 2, "{current}");

    let refused = up.run(&["call", "pinned", "{}", "--version", "9", "--output", "json"]).ends_with(4).json();
    assert_eq!(refused["error_code"], "ToolNotFound", "{refused}");
    assert_eq!(refused["error_details"]["versions"][1]["definition_hash"], hash, "{refused}");
    up.run(&["call", "pinned", "{}", "--version", "0"]).ends_with(2);
    let text = up.run(&["call", "pinned", "{}", "--definition-hash", "abc"]).ends_with(2).stderr;
    assert!(text.contains("--definition-hash: must be sha256:"), "{text}");
    up.run(&["tool", "pin", "pinned", "9"]).ends_with(3);
    up.run(&["tool", "retire", "pinned"]).ends_with(0);
    let text = up.run(&["tool", "pin", "pinned", "1"]).ends_with(2).stderr;
    assert!(text.contains("pinned is retired"), "{text}");
}

fn an_invalid_version_is_not_restored(up: &Running, folder: &Path) {
    publish(up, folder, "broken", "1.0.0", "works");
    let record = up.json(&["tool", "show", "broken"]);
    let mut context = record["context"].clone();
    context["code"]["source"] = json!("export async function execute() {\n  return eval('1');\n}\n");
    patch(up, "broken", &json!({"context": context}));
    awaited_states(up, "broken", &[(2, "broken"), (1, "current")]);
    let text = up.run(&["tool", "history", "broken"]).ends_with(0).stdout;
    assert!(text.contains("BROKEN: code.source:2:"), "{text}");

    up.json(&["tool", "rollback", "broken"]);
    awaited_states(up, "broken", &[(3, "current"), (2, "old"), (1, "old")]);
    let ran = up.run(&["tool", "rollback", "broken", "2"]).ends_with(1);
    assert!(ran.stdout.contains("code.source:2:"), "{}", ran.stdout);
    assert!(ran.stdout.contains("is not valid, so nothing was written"), "{}", ran.stdout);
    let ran = up.run(&["tool", "rollback", "broken", "2", "--output", "json"]).ends_with(1).json();
    assert_eq!(ran["written"], false, "{ran}");
    assert_eq!(states(up, "broken").len(), 3);
    assert_eq!(answer(up, "broken"), "works");
}

fn a_rollback_prefers_published_versions(up: &Running, folder: &Path) {
    publish(up, folder, "drafted", "1.0.0", "one");
    let mut context = up.json(&["tool", "show", "drafted"])["context"].clone();
    for (version, tags) in [("2.0.0", vec!["tool:draft"]), ("3.0.0", vec![])] {
        context["version"] = json!(version);
        patch(up, "drafted", &json!({"context": context, "tags": tags}));
    }
    assert_eq!(states(up, "drafted"), listed(&[(3, "current"), (2, "draft"), (1, "old")]));
    let back = up.json(&["tool", "rollback", "drafted"]);
    assert_eq!((&back["from"], &back["draft"]), (&json!(1), &json!(false)), "{back}");
    let text = up.run(&["tool", "rollback", "drafted", "2"]).ends_with(0).stdout;
    assert!(text.contains("version 2 is now version 5, a draft: nothing changes for others"), "{text}");
}

fn a_rollback_does_not_rename(up: &Running, folder: &Path) {
    publish(up, folder, "before", "1.0.0", "same");
    let mut context = up.json(&["tool", "show", "before"])["context"].clone();
    context["name"] = json!("after");
    patch(up, "before", &json!({"context": context}));
    let text = up.run(&["tool", "rollback", "after", "1"]).ends_with(2).stderr;
    assert!(text.contains("version 1 has another name than after"), "{text}");
    up.run(&["tool", "rollback", "after"]).ends_with(3);
}

fn callers_of_deprecated_tools_are_listed(up: &Running, folder: &Path) {
    assert_eq!(up.json(&["tool", "deprecations"]), json!([]));
    for name in ["ending", "unused"] {
        publish(up, folder, name, "1.0.0", "still here");
        let mut context = up.json(&["tool", "show", name])["context"].clone();
        context["deprecated"] = json!({"since": "2020-01-31", "use": "greet"});
        patch(up, name, &json!({"context": context}));
    }
    assert_eq!(answer(up, "ending"), "still here");
    assert_eq!(answer(up, "ending"), "still here");
    // The catalog follows the runner.
    let begun = Instant::now();
    let found = loop {
        let found = up.json(&["tool", "deprecations"]);
        assert!(begun.elapsed() < PATIENCE, "{found}");
        if found.as_array().unwrap().len() == 2 {
            break found;
        }
    };
    assert_eq!((&found[0]["name"], &found[1]["name"]), (&json!("ending"), &json!("unused")), "{found}");
    assert_eq!(found[0]["deprecated"], json!({"since": "2020-01-31", "use": "greet"}));
    assert_eq!(found[0]["callers"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found[0]["callers"][0]["calls"], 2, "{found}");
    assert_eq!(found[1]["callers"], json!([]));
    let text = up.run(&["tool", "deprecations"]).ends_with(0).stdout;
    assert!(text.lines().any(|line| line.starts_with("ending") && line.contains("greet")), "{text}");
    let text = up.run(&["tool", "show", "ending"]).ends_with(0).stdout;
    assert!(text.contains("Deprecated since 2020-01-31; use greet instead"), "{text}");
}

fn a_removed_tool_is_not_offered(up: &Running, folder: &Path) {
    publish(up, folder, "removed", "1.0.0", "still here");
    let deprecated = json!({"since": "2020-01-31", "use": "greet", "remove_after": "2020-12-31"});
    let folder = folder.join("removed");
    constant_tool::write(&folder, "removed", "gone", &json!({"version": "2.0.0", "deprecated": deprecated}));
    let ran = up.run(&["bootstrap", folder.to_str().unwrap()]).ends_with(0);
    let warning = "removed.json: the tool \"removed\" was removed after 2020-12-31; use greet instead";
    assert!(ran.stdout.contains(warning) || ran.stderr.contains(warning), "{}{}", ran.stdout, ran.stderr);

    let response = up.run(&["call", "removed", "{}", "--output", "json"]).ends_with(4).json();
    assert_eq!(response["error_details"]["use"], "greet", "{response}");
    // The catalog follows the runner.
    let begun = Instant::now();
    let is_offered = |listed: Value| {
        let tools = listed.get("tools").unwrap_or(&listed);
        tools.as_array().unwrap().iter().any(|tool| tool["name"] == "removed")
    };
    while is_offered(up.json(&["tool", "list", "--format", "rcrt"])) {
        assert!(begun.elapsed() < PATIENCE);
    }
    let rows = up.json(&["tool", "list"]);
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "removed").unwrap();
    assert_eq!(row["deprecated"], deprecated);
    let text = up.run(&["tool", "list"]).ends_with(0).stdout;
    assert!(text.contains("REMOVED after 2020-12-31; use greet instead"), "{text}");
    let found = up.json(&["tool", "deprecations"]);
    assert!(found.as_array().unwrap().iter().any(|tool| tool["name"] == "removed"), "{found}");
}

fn a_retired_tool_comes_back(up: &Running, folder: &Path) {
    publish(up, folder, "seasonal", "1.0.0", "summer");
    up.run(&["tool", "retire", "seasonal"]).ends_with(0);
    let response = up.run(&["call", "seasonal", "{}", "--output", "json"]).ends_with(4).json();
    assert_eq!(response["error_code"], "ToolNotFound", "{response}");
    assert_eq!(states(up, "seasonal"), listed(&[(2, "retired"), (1, "old")]));
    let text = up.run(&["tool", "retire", "seasonal"]).ends_with(2).stderr;
    assert!(text.contains("seasonal is already retired"), "{text}");

    // Its file does not bring it back, nor does one of another folder.
    let tools = folder.join("seasonal");
    let other = folder.join("elsewhere");
    constant_tool::write(&other, "seasonal", "winter", &json!({}));
    for (folder, flags) in [(&tools, "with --overwrite\n"), (&other, "with --overwrite --adopt\n")] {
        let text = up.run(&["bootstrap", folder.to_str().unwrap()]).ends_with(1).stderr;
        assert!(text.contains("the tool seasonal was retired") && text.contains(flags), "{text}");
        assert_eq!(states(up, "seasonal"), listed(&[(2, "retired"), (1, "old")]));
    }

    up.run(&["tool", "rollback", "seasonal"]).ends_with(0);
    assert_eq!(answer(up, "seasonal"), "summer");
    assert_eq!(states(up, "seasonal"), listed(&[(3, "current"), (2, "retired"), (1, "old")]));
    let text = up.run(&["tool", "rollback", "seasonal", "2"]).ends_with(2).stderr;
    assert!(text.contains("version 2 of seasonal is not a tool: its schema name is tool.retired.v1"), "{text}");

    up.run(&["tool", "retire", "seasonal"]).ends_with(0);
    up.run(&["bootstrap", other.to_str().unwrap(), "--overwrite"]).ends_with(1);
    up.run(&["bootstrap", other.to_str().unwrap(), "--overwrite", "--adopt"]).ends_with(0);
    assert_eq!(answer(up, "seasonal"), "winter");
}

fn a_deleted_tool_does_not_come_back(up: &Running, folder: &Path) {
    publish(up, folder, "gone", "1.0.0", "first");
    publish(up, folder, "gone", "2.0.0", "second");
    let deleted = up.json(&["tool", "delete", "gone"]);
    assert_eq!((&deleted["versions"], &deleted["deleted"]), (&json!(2), &json!(true)), "{deleted}");
    up.run(&["tool", "history", "gone"]).ends_with(3);
    up.run(&["tool", "rollback", "gone"]).ends_with(3);
    let response = up.run(&["call", "gone", "{}", "--output", "json"]).ends_with(4).json();
    assert_eq!(response["error_code"], "ToolNotFound", "{response}");
}

//! `rcrt bootstrap` of several folders into one real system.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::constant_tool::{self, answer, patch, write_source};
use crate::program::{Ran, Running};

#[test]
fn a_bootstrap_changes_only_what_its_source_wrote() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    the_default_folder_is_the_source_of_the_included_records(&up, folder.path());
    folders_of_the_same_name_are_two_sources(&up, folder.path());
    a_named_source_can_move(&up, folder.path());
    a_rollback_is_kept(&up, folder.path());
    a_changed_record_is_not_pruned(&up, folder.path());
    a_tool_is_in_a_folder_only_once(&up, folder.path());
    a_tool_that_the_runner_refuses_fails_the_command(&up, folder.path());
    a_watched_folder_is_applied_at_each_change(&up, folder.path());
    a_tool_whose_example_fails_replaces_nothing(&up, folder.path());
    drafts_are_reported_and_can_be_changed_after_their_publication(&up, folder.path());
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

fn tool(folder: PathBuf, name: &str, answer: &str) -> PathBuf {
    constant_tool::write(&folder, name, answer, &json!({"permissions": {"net": false}}));
    folder
}

fn bootstrap(up: &Running, folder: &Path, more: &[&str]) -> Ran {
    up.run(&[&["bootstrap", folder.to_str().unwrap(), "--output", "json"], more].concat())
}

/// What happened to each file.
#[track_caller]
fn done(ran: &Ran) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let files = ran.json()["files"].as_array().unwrap().clone();
    files.iter().map(|file| format!("{} {}", text(&file["path"]), text(&file["what"]))).collect()
}

fn the_default_folder_is_the_source_of_the_included_records(up: &Running, folder: &Path) {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for more in [&[][..], &["bootstrap-breadcrumbs"], &["--source", "bootstrap-breadcrumbs"]] {
        let mut command = up.command(&[&["bootstrap", "--output", "json"], more].concat());
        let ran = Ran::of(command.current_dir(&checkout).output().unwrap()).ends_with(0);
        let done = done(&ran);
        assert!(done.len() > 50 && done.iter().all(|file| file.ends_with(" unchanged")), "{more:?}: {done:?}");
    }
    // Another folder cannot have its name, so it cannot remove the included records.
    let mine = tool(folder.join("mine"), "mine", "here");
    let taken = ["--source", "bootstrap-breadcrumbs", "--prune", "--dry-run"];
    let ran = up.run(&[&["bootstrap", mine.to_str().unwrap()], &taken[..]].concat()).ends_with(2);
    assert!(ran.stderr.contains("choose another --source"), "{}", ran.stderr);
}

fn folders_of_the_same_name_are_two_sources(up: &Running, folder: &Path) {
    let one = tool(folder.join("one/tools"), "first", "one");
    let two = tool(folder.join("two/tools"), "second", "two");
    let created = bootstrap(up, &one, &[]).ends_with(0);
    assert_eq!(done(&created), ["first.json created"]);
    assert_eq!(created.json()["files"][0]["runner"]["state"], "offered", "{}", created.stdout);
    assert_eq!(done(&bootstrap(up, &two, &["--prune"]).ends_with(0)), ["second.json created"]);
    assert_eq!((answer(up, "first"), answer(up, "second")), (json!("one"), json!("two")));
    let table = up.run(&["tool", "list"]).ends_with(0).stdout;
    assert!(table.contains(" one/tools ") && table.contains(" two/tools "), "{table}");

    // The second folder has a tool of the first one too.
    tool(two.clone(), "first", "two");
    let ran = bootstrap(up, &two, &[]).ends_with(1);
    assert_eq!(done(&ran), ["first.json refused", "second.json unchanged"]);
    let finding = ran.json()["files"][0]["findings"][0].as_str().unwrap().to_owned();
    let path = one.canonicalize().unwrap();
    assert!(finding.contains(path.to_str().unwrap()) && finding.contains("--adopt"), "{finding}");
    assert_eq!(answer(up, "first"), "one");
    let adopted = bootstrap(up, &two, &["--adopt"]).ends_with(0);
    assert_eq!(done(&adopted), ["first.json updated", "second.json unchanged"]);
    assert_eq!(answer(up, "first"), "two");
    // It now belongs to the second folder, so the first one neither changes nor removes it.
    assert_eq!(done(&bootstrap(up, &one, &["--prune"]).ends_with(1)), ["first.json refused"]);
    assert_eq!(answer(up, "first"), "two");

    // A record that was written by hand belongs to no source.
    let own = json!({"title": "By hand", "schema_name": "note.v1", "context": {"n": 1}}).to_string();
    let id = up.json(&["crumb", "create", &own])["id"].as_str().unwrap().to_owned();
    let notes = folder.join("notes");
    std::fs::create_dir(&notes).unwrap();
    std::fs::write(notes.join("note.json"), own.replace(":1", ":2")).unwrap();
    assert_eq!(done(&bootstrap(up, &notes, &[]).ends_with(1)), ["note.json refused"]);
    assert_eq!(up.json(&["crumb", "get", &id])["context"]["n"], 1);
    assert_eq!(done(&bootstrap(up, &notes, &["--adopt"]).ends_with(0)), ["note.json updated"]);
    assert_eq!(up.json(&["crumb", "get", &id])["context"]["n"], 2);
}

fn a_named_source_can_move(up: &Running, folder: &Path) {
    let old = tool(folder.join("old"), "moved", "here");
    let named = ["--source", "my-source"];
    assert_eq!(done(&bootstrap(up, &old, &named).ends_with(0)), ["moved.json created"]);
    let new = tool(folder.join("new"), "moved", "here");
    assert_eq!(done(&bootstrap(up, &new, &named).ends_with(0)), ["moved.json unchanged"]);
    for name in ["moved.json", "moved.ts"] {
        std::fs::remove_file(new.join(name)).unwrap();
    }
    assert_eq!(done(&bootstrap(up, &new, &["--source", "my-source", "--prune"]).ends_with(0)), ["moved.json removed"]);
    bootstrap(up, &old, &["--source", "a/b"]).ends_with(2);
}

/// Changes the record as `PATCH` does.
fn a_rollback_is_kept(up: &Running, folder: &Path) {
    let tools = tool(folder.join("rolled"), "rolled", "good");
    bootstrap(up, &tools, &[]).ends_with(0);
    let good = up.json(&["tool", "show", "rolled"]);
    write_source(&tools, "rolled", "bad");
    assert_eq!(done(&bootstrap(up, &tools, &[]).ends_with(0)), ["rolled.json updated"]);
    let bad = up.json(&["tool", "show", "rolled"]);
    // Everything is restored, also the tags that bootstrap wrote.
    patch(up, &bad, &json!({"context": good["context"], "tags": good["tags"]}));

    for more in [&[][..], &["--adopt"], &["--dry-run"]] {
        let ran = bootstrap(up, &tools, more).ends_with(1);
        assert_eq!(done(&ran), ["rolled.json kept"]);
        assert!(ran.json()["files"][0]["findings"][0].as_str().unwrap().contains("--overwrite"), "{}", ran.stdout);
    }
    assert_eq!(up.json(&["tool", "show", "rolled"])["context"]["code"], good["context"]["code"]);
    assert_eq!(done(&bootstrap(up, &tools, &["--overwrite"]).ends_with(0)), ["rolled.json updated"]);
    assert_eq!(answer(up, "rolled"), "bad");

    // If the file follows the rollback, later changes of the file are applied.
    let bad = up.json(&["tool", "show", "rolled"]);
    patch(up, &bad, &json!({"context": good["context"]}));
    write_source(&tools, "rolled", "good");
    bootstrap(up, &tools, &[]).ends_with(0);
    assert_eq!(done(&bootstrap(up, &tools, &[]).ends_with(0)), ["rolled.json unchanged"]);
    write_source(&tools, "rolled", "better");
    assert_eq!(done(&bootstrap(up, &tools, &[]).ends_with(0)), ["rolled.json updated"]);
}

fn a_changed_record_is_not_pruned(up: &Running, folder: &Path) {
    let tools = tool(folder.join("pruned"), "pruned", "first");
    bootstrap(up, &tools, &[]).ends_with(0);
    let record = up.json(&["tool", "show", "pruned"]);
    patch(up, &record, &json!({"description": "Changed by hand"}));
    for name in ["pruned.json", "pruned.ts"] {
        std::fs::remove_file(tools.join(name)).unwrap();
    }
    for more in [&["--prune"][..], &["--prune", "--dry-run"]] {
        let ran = bootstrap(up, &tools, more).ends_with(1);
        assert_eq!(done(&ran), ["pruned.json kept"]);
        assert!(ran.json()["files"][0]["findings"][0].as_str().unwrap().contains("--overwrite"), "{}", ran.stdout);
    }
    assert_eq!(answer(up, "pruned"), "first");
    assert_eq!(done(&bootstrap(up, &tools, &["--prune", "--overwrite"]).ends_with(0)), ["pruned.json removed"]);
}

fn a_tool_is_in_a_folder_only_once(up: &Running, folder: &Path) {
    let tools = tool(folder.join("twice"), "twice", "one");
    for end in ["json", "ts"] {
        std::fs::copy(tools.join(format!("twice.{end}")), tools.join(format!("again.{end}"))).unwrap();
    }
    let ran = bootstrap(up, &tools, &[]).ends_with(1);
    assert!(ran.stdout.contains("again.json has the tool \\\"twice\\\" too"), "{}", ran.stdout);
}

/// The command allows a host that the runner does not. A tool of a curator would wait for it.
fn a_tool_that_the_runner_refuses_fails_the_command(up: &Running, folder: &Path) {
    let tools = folder.join("inside");
    constant_tool::write(&tools, "inside", "never", &json!({"permissions": {"net": ["127.0.0.1:9"]}}));
    let allowed = ["--allow-private-host", "inside=127.0.0.1"];
    let writer = up.json(&["token", "--agent", "writer", "--role", "emitter,subscriber"]);
    let bootstrap = ["bootstrap", tools.to_str().unwrap(), allowed[0], allowed[1]];
    let ran = up.run_as(&writer, &[&bootstrap[..], &["--output", "json"]].concat()).ends_with(1);
    assert_eq!(done(&ran), ["inside.json created"]);
    let verdict = ran.json()["files"][0]["runner"].clone();
    assert_eq!(verdict["state"], "refused", "{verdict}");
    assert!(verdict["problem"].as_str().unwrap().contains("127.0.0.1:9"), "{verdict}");
    let ran = up.run_as(&writer, &bootstrap).ends_with(1);
    assert!(ran.stderr.contains("error: inside.json: the runner refuses version 1:"), "{}", ran.stderr);
}

fn a_watched_folder_is_applied_at_each_change(up: &Running, folder: &Path) {
    let tools = tool(folder.join("watched"), "watched", "one");
    let mut command = up.command(&["bootstrap", tools.to_str().unwrap(), "--watch", "--output", "json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        line["files"][0].clone()
    };
    assert_eq!(next()["what"], "created");
    write_source(&tools, "watched", "two");
    assert_eq!(next()["what"], "updated");
    assert_eq!(answer(up, "watched"), "two");
    // An error does not end it.
    std::fs::write(tools.join("watched.ts"), "this is not a program").unwrap();
    let refused = next();
    assert_eq!(refused["what"], "refused", "{refused}");
    assert!(refused["findings"][0].as_str().unwrap().contains("watched.ts:1:"), "{refused}");
    assert_eq!(answer(up, "watched"), "two");
    write_source(&tools, "watched", "three");
    assert_eq!(next()["what"], "updated");
    assert_eq!(answer(up, "watched"), "three");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn a_tool_whose_example_fails_replaces_nothing(up: &Running, folder: &Path) {
    let tools = folder.join("checked");
    let example = json!({"description": "Always good", "input": {}, "output": {"answer": "good"}});
    constant_tool::write(&tools, "checked", "bad", &json!({"examples": [example]}));
    let refused = |more: &[&str]| {
        let ran = bootstrap(up, &tools, more).ends_with(1);
        assert_eq!(done(&ran), ["checked.json refused"]);
        let finding = ran.json()["files"][0]["findings"][0].as_str().unwrap().to_owned();
        for part in ["checked.json: the example \"Always good\" fails:", "$.answer", "\"good\"", "\"bad\""] {
            assert!(finding.contains(part), "{finding}");
        }
    };
    refused(&[]);
    up.run(&["tool", "show", "checked"]).ends_with(3);
    write_source(&tools, "checked", "good");
    assert_eq!(done(&bootstrap(up, &tools, &[]).ends_with(0)), ["checked.json created"]);
    write_source(&tools, "checked", "bad");
    refused(&["--dry-run"]);
    refused(&["--overwrite", "--adopt"]);
    assert_eq!(answer(up, "checked"), "good");
    assert_eq!(done(&bootstrap(up, &tools, &["--no-examples"]).ends_with(0)), ["checked.json updated"]);
    assert_eq!(answer(up, "checked"), "bad");
}

fn drafts_are_reported_and_can_be_changed_after_their_publication(up: &Running, folder: &Path) {
    up.run(&["tenant", "set", "--publish", "curator"]).ends_with(0);
    let writer = up.json(&["token", "--agent", "drafter", "--role", "emitter,subscriber"]);
    let tools = tool(folder.join("drafted"), "drafted", "one");
    let path = tools.to_str().unwrap();
    let bootstrap = || up.run_as(&writer, &["bootstrap", path, "--output", "json"]).ends_with(0);
    let state = |ran: &Ran| ran.json()["files"][0]["runner"]["state"].clone();
    let created = bootstrap();
    assert_eq!((done(&created), state(&created)), (vec!["drafted.json created".to_owned()], json!("draft")));
    let warnings = created.json()["warnings"].to_string();
    assert!(warnings.contains("rcrt tool publish NAME"), "{warnings}");

    up.run(&["tool", "publish", "drafted"]).ends_with(0);
    let unchanged = bootstrap();
    assert_eq!((done(&unchanged), state(&unchanged)), (vec!["drafted.json unchanged".to_owned()], json!("offered")));
    write_source(&tools, "drafted", "two");
    let updated = bootstrap();
    assert_eq!((done(&updated), state(&updated)), (vec!["drafted.json updated".to_owned()], json!("draft")));
    assert_eq!(answer(up, "drafted"), "one");
    up.run(&["tenant", "set", "--publish", "examples"]).ends_with(0);
}

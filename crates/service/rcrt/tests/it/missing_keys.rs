//! A data folder without the key of the database's secrets.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::constant_tool;
use crate::program::{Ran, Running, rcrt};

const START: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

fn run_on(data: &Path, arguments: &[&str]) -> Ran {
    Ran::of(rcrt().args(arguments).arg("--data").arg(data).current_dir(data.parent().unwrap()).output().unwrap())
}

/// The ids of the secrets' keys with this field.
fn ids(data: &Path, field: &str) -> Vec<String> {
    let rows = run_on(data, &["keys", "list", "-o", "json"]).ends_with(0).json();
    let rows = rows.as_array().unwrap().iter().filter(|row| row["kind"] == "secrets" && row[field] == true);
    rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_folder_without_the_key_of_secrets_is_refused_and_gets_no_new_key() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let up = Running::start(&data, &START);
    up.run_with_stdin(&["secret", "set", "API_KEY"], "kept encrypted").ends_with(0);
    let id = ids(&data, "in_use").remove(0);
    assert!(ids(&data, "missing").is_empty());
    assert_eq!(up.stop().0.code(), Some(0));

    let (file, kept) = (data.join("keys/secrets.key"), folder.path().join("kept.key"));
    std::fs::rename(&file, &kept).unwrap();
    let says = [&*id, "API_KEY", file.to_str().unwrap(), "does not exist", "--lose-secrets"];
    for arguments in
        [&START[..], &["server", "--listen", "127.0.0.1:0"], &["keys", "rotate", "secrets"], &["keys", "rewrap"]]
    {
        let ran = run_on(&data, arguments).ends_with(1);
        for part in says {
            assert!(ran.stderr.contains(part), "{arguments:?}: {part} is not in {}", ran.stderr);
        }
        assert!(!file.exists(), "{arguments:?} created a key");
    }
    assert_eq!(ids(&data, "missing"), [&*id]);
    // A token needs no key of secrets.
    run_on(&data, &["token", "--operator"]);
    assert!(!file.exists());

    // The key of another server.
    std::fs::write(&file, [9; 32]).unwrap();
    for arguments in [&START[..], &["keys", "rotate", "secrets", "--drop-old"], &["keys", "rewrap"]] {
        let ran = run_on(&data, arguments).ends_with(1);
        assert!(ran.stderr.contains(&id) && ran.stderr.contains("API_KEY"), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("is another key"), "{arguments:?}: {}", ran.stderr);
        assert_eq!(std::fs::read(&file).unwrap(), [9; 32], "{arguments:?}");
    }
    std::fs::copy(&kept, &file).unwrap();
    let up = Running::start(&data, &START);
    a_call_without_its_key_is_not_retryable(&up, folder.path(), &id);
    assert_eq!(up.stop().0.code(), Some(0));

    let ran = run_on(&data, &["keys", "rewrap", "--lose-secrets"]).ends_with(0);
    assert!(ran.stdout.contains("the secret API_KEY is lost"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("the secret OTHER"), "{}", ran.stdout);
    let up = Running::start(&data, &START);
    let left = up.json(&["secret", "list"]);
    assert_eq!((left.as_array().unwrap().len(), &left[0]["name"]), (1, &json!("OTHER")), "{left}");
    assert_eq!(up.stop().0.code(), Some(0));
}

/// The key is replaced while the server runs. A write of a secret makes the server notice it.
fn a_call_without_its_key_is_not_retryable(up: &Running, folder: &Path, id: &str) {
    constant_tool::write(&folder.join("tools"), "keyed", "done", &json!({"required_secrets": ["API_KEY"]}));
    up.run(&["bootstrap", "tools"]).ends_with(0);
    up.run(&["secret", "grant", "API_KEY", "keyed"]).ends_with(0);
    up.run(&["secret", "set", "API_KEY", "--keep-value", "--host", "api.example.com"]).ends_with(0);
    assert_eq!(constant_tool::answer(up, "keyed"), "done");

    // A server notices a file that is put there, not one that is overwritten.
    let other = folder.join("other.key");
    std::fs::write(&other, [9; 32]).unwrap();
    std::fs::rename(&other, up.data.join("keys/secrets.key")).unwrap();
    up.run_with_stdin(&["secret", "set", "OTHER"], "under the new key").ends_with(0);
    let response = up.run(&["call", "keyed", "{}", "--output", "json"]).ends_with(4).json();
    let error = response["error"].as_str().unwrap();
    assert_eq!((&response["error_code"], &response["is_retryable"]), (&json!("ExecutionFailed"), &json!(false)));
    assert!(error.contains("API_KEY") && error.contains(id) && error.contains("ask the operator"), "{error}");

    let ran = up.run(&["doctor", "-o", "json"]).ends_with(1);
    let stored: Value = ran.json()["stored"].clone();
    assert_eq!(stored["missing_keys"], json!([id]), "{stored}");
    let text = up.run(&["doctor"]).ends_with(1).stdout;
    assert!(text.contains(id), "{text}");
}

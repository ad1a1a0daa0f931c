//! The work of an operator on a running system: backup and restore, export and import, key
//! rotation, tenants.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt};

#[test]
fn backup_export_key_rotation_and_restore_of_a_running_system() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    up.run_with_stdin(&["secret", "set", "API_KEY"], "kept encrypted").ends_with(0);
    let kept = up.json(&["crumb", "create", r#"{"title": "kept"}"#])["id"].as_str().unwrap().to_owned();
    let first_token = token(&up);

    rotates_keys(&up, &first_token);
    // A file name without a folder is in the current folder.
    let backup = || up.run(&["backup", "all.rcrt", "--include-key", "all.key"]);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            (0..10).for_each(|_| {
                up.json(&["crumb", "create", r#"{"title": "meanwhile", "tags": ["meanwhile"]}"#]);
            });
        });
        backup().ends_with(0);
        writing.join().unwrap();
    });
    let rights = |file: &str| folder.path().join(file).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((rights("all.rcrt"), rights("all.key")), (0o600, 0o600));
    let again = backup().ends_with(1);
    assert!(again.stderr.contains("all.rcrt already exists; name another file"), "{}", again.stderr);
    let exported = exports_and_imports(&up, folder.path());
    only_the_operator_creates_tenants(&up);
    assert_eq!(up.stop().0.code(), Some(0));

    restores_the_backup(folder.path(), &kept, exported);
}

fn rotates_keys(up: &Running, first_token: &str) {
    up.run(&["keys", "rotate", "secrets"]).ends_with(0);
    up.run(&["keys", "rotate", "tokens"]).ends_with(0);
    let rows = up.json(&["keys", "list"]);
    let in_use = rows.as_array().unwrap().iter().filter(|row| row["in_use"] == true).count();
    assert_eq!((rows.as_array().unwrap().len(), in_use), (4, 2), "{rows}");
    assert_eq!(decrypted(up, first_token), "kept encrypted");
    let called = up.run(&["call", "calculator", r#"{"expression": "2 * 21"}"#]).ends_with(0);
    assert!(called.stdout.contains("42"), "{}", called.stdout);
}

/// Returns the number of exported records.
fn exports_and_imports(up: &Running, folder: &Path) -> u64 {
    let report = up.json(&["export", "--file", "all.jsonl", "--versions"]);
    let records = report["records"].as_u64().unwrap();
    let report = up.json(&["import", "all.jsonl"]);
    assert_eq!((&report["created"], &report["skipped"]), (&json!(0), &json!(records)), "{report}");
    let text = std::fs::read_to_string(folder.join("all.jsonl")).unwrap();
    // These records change every minute, so an import could restore an old version.
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(!lines.any(|line| line["record"]["schema_name"] == "tool.runner.v1"));
    let cut = &text[..text.len() / 2];
    std::fs::write(folder.join("cut.jsonl"), cut).unwrap();
    let ran = up.run(&["import", "cut.jsonl"]);
    assert!(ran.status != 0 && ran.stderr.contains("line"), "{} {}", ran.status, ran.stderr);
    records
}

fn only_the_operator_creates_tenants(up: &Running) {
    let id = "0190a1b2-0000-7000-8000-00000000beef";
    let curator = token(up);
    let body = json!({"name": "second"});
    let path = format!("/tenants/{id}");
    assert_eq!(request_json(up, &curator, Method::POST, &path, &body).0, 403);
    let operator = up.run(&["token", "--operator"]).ends_with(0).stdout.trim().to_owned();
    let (status, made) = request_json(up, &operator, Method::POST, &path, &body);
    assert!((200..300).contains(&status), "{status} {made}");
    let (_, all) = request_json(up, &operator, Method::GET, "/tenants", &Value::Null);
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    let (_, own) = request_json(up, &curator, Method::GET, "/tenants", &Value::Null);
    assert_eq!(own.as_array().unwrap().len(), 1, "{own}");
}

fn restores_the_backup(folder: &Path, kept: &str, exported: u64) {
    let restored = folder.join("restored");
    let restore = |arguments: &[&str]| {
        Ran::of(
            rcrt().arg("restore").args(arguments).arg("--data").arg(&restored).current_dir(folder).output().unwrap(),
        )
    };
    let ran = restore(&["all.rcrt"]).ends_with(1);
    let sentence = "with --key-file. If the key is lost, --accept-unverified restores the backup without this check";
    assert!(ran.stderr.contains(sentence), "{}", ran.stderr);

    let mut bytes = std::fs::read(folder.join("all.rcrt")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.join("broken.rcrt"), bytes).unwrap();
    let ran = restore(&["broken.rcrt", "--key-file", "all.key"]);
    assert_eq!(ran.status, 1, "a changed file is refused: {}", ran.stderr);

    // A changed manifest with a correct checksum does not match the HMAC; a file of the old format
    // has none.
    for forge in [forged as fn(&Path) -> Vec<u8>, of_the_old_format] {
        std::fs::write(folder.join("forged.rcrt"), forge(&folder.join("all.rcrt"))).unwrap();
        let ran = restore(&["forged.rcrt", "--key-file", "all.key"]);
        assert!(ran.status == 1 && ran.stderr.contains("nothing was written"), "{}", ran.stderr);
    }
    let ran = restore(&["forged.rcrt", "--key-file", "all.key"]);
    assert!(ran.stderr.contains("--accept-unverified"), "the option for unverified backups is named: {}", ran.stderr);

    restore(&["all.rcrt", "--key-file", "all.key"]).ends_with(0);
    let up = Running::start(&restored, &["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(up.json(&["crumb", "get", kept])["title"], "kept");
    assert_eq!(decrypted(&up, &token(&up)), "kept encrypted");
    let report = up.json(&["import", folder.join("all.jsonl").to_str().unwrap()]);
    assert_eq!(report["created"].as_u64().unwrap() + report["skipped"].as_u64().unwrap(), exported, "{report}");
    assert_eq!(up.json(&["crumb", "list", "--tag", "meanwhile"]).as_array().unwrap().len(), 10);
    let ran = up.run(&["keys", "rotate", "secrets", "--drop-old"]).ends_with(0);
    assert!(ran.stderr.contains("warning: backups from before this rotation need the deleted key"), "{}", ran.stderr);
    assert_eq!(decrypted(&up, &token(&up)), "kept encrypted");
    assert_eq!(up.stop().0.code(), Some(0));
    let again = restore(&["all.rcrt", "--key-file", "all.key"]).ends_with(1);
    assert!(again.stderr.contains("--replace"), "{}", again.stderr);
}

/// Returns the head and archive of a backup, with one text of the manifest replaced, and its old
/// trailer.
fn changed(path: &Path, old: &str, new: &str) -> (Vec<u8>, Vec<u8>) {
    let mut bytes = std::fs::read(path).unwrap();
    let trailer = bytes.split_off(bytes.len() - 131);
    let at = bytes.windows(old.len()).position(|window| window == old.as_bytes()).unwrap();
    bytes.splice(at..at + old.len(), new.bytes());
    (bytes, trailer)
}

fn sum_of(bytes: &[u8]) -> String {
    let sum = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    format!("\n{}\n", rcrt_breadcrumb::hex(sum.as_ref()))
}

fn forged(path: &Path) -> Vec<u8> {
    let (mut bytes, trailer) = changed(path, "\"event_horizon\":", "\"event_horizon\":1");
    let sum = sum_of(&bytes);
    bytes.extend(sum.as_bytes());
    bytes.extend(&trailer[66..]);
    bytes
}

fn of_the_old_format(path: &Path) -> Vec<u8> {
    let (mut bytes, _) = changed(path, "\"format\":2", "\"format\":1");
    let sum = sum_of(&bytes);
    bytes.extend(sum.as_bytes());
    bytes
}

fn token(up: &Running) -> String {
    std::fs::read_to_string(up.data.join("token")).unwrap().trim().to_owned()
}

/// The value of the only secret.
fn decrypted(up: &Running, token: &str) -> String {
    let (_, secrets) = request_json(up, token, Method::GET, "/secrets", &Value::Null);
    let path = format!("/secrets/{}/decrypt", secrets[0]["id"].as_str().unwrap());
    let (_, answer) = request_json(up, token, Method::POST, &path, &json!({"reason": "to check that it exists"}));
    answer["value"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn request_json(up: &Running, token: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let request = reqwest::Client::new().request(method, format!("{}{path}", up.api())).bearer_auth(token);
    let request = if body.is_null() { request } else { request.json(body) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    })
}

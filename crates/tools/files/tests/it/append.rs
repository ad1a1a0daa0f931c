//! Appending to files.

use rcrt_breadcrumb::ErrorCode::{ExecutionFailed, InvalidArguments, ResourceExhausted};
use serde_json::json;

use crate::fixture::{Fixture, refused};

#[tokio::test]
async fn text_is_appended_to_an_existing_file() {
    let fixture = Fixture::new().await;
    fixture.put("log.txt", "one\n");
    let first = fixture.append("log.txt", "two\n").await.unwrap();
    assert_eq!(first, json!({ "path": "log.txt", "appended_bytes": 4, "bytes": 8 }));
    fixture.append("log.txt", "thrëë").await.unwrap();
    assert_eq!(fixture.text("log.txt"), "one\ntwo\nthrëë");
}

#[tokio::test]
async fn append_does_not_create_files() {
    let fixture = Fixture::new().await;
    let failure = refused(fixture.append("log.txt", "x").await, ExecutionFailed, "there is no file log.txt");
    assert!(failure.message.contains("write_file makes a new file"), "{}", failure.message);
    assert_eq!(fixture.names(), [""; 0]);
    fixture.put("folder/x", "");
    refused(fixture.append("folder", "x").await, ExecutionFailed, "folder is a folder");
    refused(fixture.append("folder/", "x").await, InvalidArguments, "names a folder");
}

#[tokio::test]
async fn concurrent_appends_do_not_interleave() {
    let fixture = Fixture::new().await;
    fixture.put("log.txt", "");
    let lines: Vec<String> = (0..20).map(|n| format!("{n:03} {}\n", "x".repeat(5000))).collect();
    let calls = lines.iter().map(|line| fixture.append("log.txt", line));
    for ended in futures::future::join_all(calls).await {
        ended.unwrap();
    }
    let mut found: Vec<String> = fixture.text("log.txt").split_inclusive('\n').map(str::to_owned).collect();
    found.sort();
    assert_eq!(found, lines);
}

#[tokio::test]
async fn file_with_hard_links_is_not_changed() {
    let fixture = Fixture::new().await;
    std::fs::hard_link(fixture.outer().join("secret.txt"), fixture.at("mine.txt")).unwrap();
    refused(fixture.append("mine.txt", "x").await, ExecutionFailed, "2 hard links");
    assert_eq!(fixture.text("mine.txt"), "the secret");
}

#[tokio::test]
async fn file_size_is_limited() {
    let fixture = Fixture::new().await;
    let path = fixture.put("big.txt", "");
    std::fs::File::options().write(true).open(path).unwrap().set_len(256 * 1024 * 1024).unwrap();
    refused(fixture.append("big.txt", "x").await, ResourceExhausted, "cannot grow beyond");
}

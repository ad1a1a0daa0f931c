//! Appending to files.

use rcrt_breadcrumb::ErrorCode::{ExecutionFailed, InvalidArguments, ResourceExhausted};
use serde_json::json;

use crate::desk::{Desk, refused};

#[tokio::test]
async fn text_is_appended_to_an_existing_file() {
    let desk = Desk::new().await;
    desk.put("log.txt", "one\n");
    let first = desk.append("log.txt", "two\n").await.unwrap();
    assert_eq!(first, json!({ "path": "log.txt", "appended_bytes": 4, "bytes": 8 }));
    desk.append("log.txt", "thrëë").await.unwrap();
    assert_eq!(desk.text("log.txt"), "one\ntwo\nthrëë");
}

#[tokio::test]
async fn append_does_not_create_files() {
    let desk = Desk::new().await;
    let failure = refused(desk.append("log.txt", "x").await, ExecutionFailed, "there is no file log.txt");
    assert!(failure.message.contains("write_file makes a new file"), "{}", failure.message);
    assert_eq!(desk.names(), [""; 0]);
    desk.put("folder/x", "");
    refused(desk.append("folder", "x").await, ExecutionFailed, "folder is a folder");
    refused(desk.append("folder/", "x").await, InvalidArguments, "names a folder");
}

#[tokio::test]
async fn concurrent_appends_do_not_interleave() {
    let desk = Desk::new().await;
    desk.put("log.txt", "");
    let lines: Vec<String> = (0..20).map(|n| format!("{n:03} {}\n", "x".repeat(5000))).collect();
    let calls = lines.iter().map(|line| desk.append("log.txt", line));
    for ended in futures::future::join_all(calls).await {
        ended.unwrap();
    }
    let mut found: Vec<String> = desk.text("log.txt").split_inclusive('\n').map(str::to_owned).collect();
    found.sort();
    assert_eq!(found, lines);
}

#[tokio::test]
async fn file_with_hard_links_is_not_changed() {
    let desk = Desk::new().await;
    std::fs::hard_link(desk.outer().join("secret.txt"), desk.at("mine.txt")).unwrap();
    refused(desk.append("mine.txt", "x").await, ExecutionFailed, "2 hard links");
    assert_eq!(desk.text("mine.txt"), "the secret");
}

#[tokio::test]
async fn file_size_is_limited() {
    let desk = Desk::new().await;
    let path = desk.put("big.txt", "");
    std::fs::File::options().write(true).open(path).unwrap().set_len(256 * 1024 * 1024).unwrap();
    refused(desk.append("big.txt", "x").await, ResourceExhausted, "cannot grow beyond");
}

//! Writing whole files.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rcrt_breadcrumb::ErrorCode::{ExecutionFailed, InvalidArguments, ResourceExhausted};
use serde_json::json;

use crate::fixture::{Fixture, refused};

#[tokio::test]
async fn file_is_created_with_its_folders_and_replaced_whole() {
    let fixture = Fixture::new().await;
    let made = fixture.write("a/b/c.txt", "first text\n").await.unwrap();
    assert_eq!(made, json!({ "path": "a/b/c.txt", "bytes": 11, "created": true }));
    let again = fixture.write("a/b/c.txt", "é").await.unwrap();
    assert_eq!(again, json!({ "path": "a/b/c.txt", "bytes": 2, "created": false }));
    assert_eq!(fixture.text("a/b/c.txt"), "é");
    assert_eq!(fixture.write("empty", "").await.unwrap()["bytes"], 0);
    assert_eq!(fixture.names(), ["a", "empty"]);
}

#[tokio::test]
async fn nearly_full_disk_is_not_written_to() {
    let fixture = Fixture::limited(u64::MAX, 0).await;
    fixture.put("log.txt", "old");
    let failure = refused(fixture.write("new.txt", "x").await, ResourceExhausted, "--min-free-disk-mb");
    assert_eq!((failure.is_retryable, failure.details.unwrap()["limit"].clone()), (true, json!("free_disk_bytes")));
    refused(fixture.append("log.txt", "x").await, ResourceExhausted, "--min-free-disk-mb");
    assert_eq!(fixture.names(), ["log.txt"]);
    assert_eq!(fixture.read_all("log.txt").await.unwrap(), "old");
    Fixture::limited(1, 0).await.write("new.txt", "x").await.unwrap();
}

#[tokio::test]
async fn full_folder_is_not_written_to() {
    let fixture = Fixture::limited(0, 100_000).await;
    fixture.write("log.txt", &"x".repeat(50_000)).await.unwrap();
    let failure = refused(fixture.write("new.txt", &"x".repeat(60_000)).await, ResourceExhausted, "--workdir-mb");
    assert_eq!(failure.details.unwrap(), json!({"limit": "workdir_bytes", "allowed": 100_000}));
    refused(fixture.append("log.txt", &"x".repeat(60_000)).await, ResourceExhausted, "--workdir-mb");
    assert_eq!((fixture.names(), fixture.text("log.txt").len()), (vec!["log.txt".to_owned()], 50_000));
    fixture.append("log.txt", "x").await.unwrap();
}

#[tokio::test]
async fn file_mode_is_preserved() {
    let fixture = Fixture::new().await;
    let path = fixture.put("run.sh", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    fixture.write("run.sh", "new").await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    refused(fixture.write("run.sh", "newer").await, ExecutionFailed, "write-protected");
    assert_eq!(fixture.text("run.sh"), "new");
}

#[tokio::test]
async fn paths_that_are_not_files_are_refused() {
    let fixture = Fixture::new().await;
    fixture.put("folder/x", "");
    refused(fixture.write("folder", "x").await, ExecutionFailed, "folder is a folder");
    for path in ["folder/", ".", "..", "folder/..", "folder/."] {
        refused(fixture.write(path, "x").await, InvalidArguments, "names a folder");
    }
    refused(fixture.write("folder/x/y", "x").await, ExecutionFailed, "is a file, not a folder");
    refused(fixture.write(&format!("{}.txt", "x".repeat(300)), "x").await, InvalidArguments, "255");
    assert_eq!(fixture.names(), ["folder"]);
}

#[tokio::test]
async fn other_hard_link_keeps_its_text() {
    let fixture = Fixture::new().await;
    let inside = fixture.at("mine.txt");
    std::fs::hard_link(fixture.outer().join("secret.txt"), &inside).unwrap();
    fixture.write("mine.txt", "mine").await.unwrap();
    assert_eq!(std::fs::read_to_string(fixture.outer().join("secret.txt")).unwrap(), "the secret");
    assert_eq!(fixture.text("mine.txt"), "mine");
    assert_eq!(std::fs::metadata(inside).unwrap().nlink(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_reader_sees_the_old_or_the_new_text() {
    let fixture = Fixture::new().await;
    let (old, new) = ("a".repeat(2_000_000), "b".repeat(2_000_000));
    let path = fixture.put("big.txt", &old);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            loop {
                let is_last = done.load(std::sync::atomic::Ordering::SeqCst);
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text == old || text == new, "{} characters, expected the old or the new text", text.len());
                seen += 1;
                if is_last {
                    return seen;
                }
            }
        });
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            handle.block_on(async {
                for _ in 0..5 {
                    fixture.write("big.txt", &new).await.unwrap();
                    fixture.write("big.txt", &old).await.unwrap();
                }
            });
        });
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
    });
}

#[tokio::test]
async fn text_cannot_have_the_name_of_a_binary_file() {
    let fixture = Fixture::new().await;
    fixture.put("kept.txt", "kept");
    for (path, kind) in [
        ("report.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("deep/REPORT.DOCX", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        ("a.pdf", "application/pdf"),
        ("a.png", "image/png"),
        ("a.zip", "application/zip"),
    ] {
        let failure = refused(fixture.write(path, "plain text").await, ExecutionFailed, kind);
        assert!(failure.message.contains("write_file writes text"), "{}", failure.message);
        assert_eq!(failure.details.unwrap()["type"], kind);
        refused(fixture.append(path, "plain text").await, ExecutionFailed, kind);
    }
    assert_eq!(fixture.names(), ["kept.txt"]);
    for path in ["a.md", "docx", "a.docx.txt", "a.svg", "a.ts", "notes.zip.md"] {
        fixture.write(path, "plain text").await.unwrap();
    }
}

#[tokio::test]
async fn binary_files_are_not_overwritten() {
    let fixture = Fixture::new().await;
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    for (path, details) in
        [("p.png", json!({ "type": "image/png" })), ("named.txt", json!({ "type": "image/png", "bytes": png.len() }))]
    {
        fixture.put(path, png);
        for ended in [fixture.write(path, "text").await, fixture.append(path, "text").await] {
            let failure = refused(ended, ExecutionFailed, "image/png");
            assert_eq!(failure.details.as_ref(), Some(&details));
        }
        assert_eq!(std::fs::read(fixture.at(path)).unwrap(), png);
    }
    // A link with a text name is judged by its target.
    std::os::unix::fs::symlink("new.docx", fixture.at("link.txt")).unwrap();
    fixture.put("new.docx", "");
    refused(fixture.write("link.txt", "text").await, ExecutionFailed, "wordprocessingml");
    assert_eq!(fixture.text("new.docx"), "");
    // Text in an old encoding is text.
    fixture.put("old.txt", b"Stra\xdfe und Stra\xdfen in K\xf6ln");
    fixture.write("old.txt", "Stra\u{df}e").await.unwrap();
}

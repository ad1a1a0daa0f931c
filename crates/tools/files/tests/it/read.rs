//! Text: whole, in ranges, in encodings; and binary files.

use std::fmt::Write;

use rcrt_breadcrumb::ErrorCode::{ExecutionFailed, InvalidArguments};
use rcrt_test_tenant::golden;
use serde_json::json;

use crate::fixture::{Fixture, refused};

#[tokio::test]
async fn whole_file_is_returned_unchanged() {
    let fixture = Fixture::new().await;
    for text in ["", "one", "one\n", "a\r\nb\r\n", "\n\n", "tabs\tand ünïcödé 🦀\n"] {
        fixture.put("notes/a.txt", text);
        assert_eq!(fixture.read_all("notes/a.txt").await.unwrap(), text);
    }
    fixture.put("notes/a.txt", "one\ntwo\n");
    let (_, metadata) = fixture.call("read_file", json!({ "path": "notes/a.txt" })).await.unwrap();
    assert_eq!(
        metadata["file"],
        json!({ "path": "notes/a.txt", "bytes": 8, "type": "text/plain", "encoding": "utf-8", "first_line": 1,
            "last_line": 2, "total_lines": 2 })
    );
}

#[tokio::test]
async fn path_in_the_folder_can_be_absolute_or_have_dots() {
    let fixture = Fixture::new().await;
    let path = fixture.put("notes/a.txt", "here");
    for path in
        [path.to_str().unwrap(), "./notes/a.txt", "notes/../notes/a.txt", "notes//a.txt", "/jailed/work/notes/a.txt"]
    {
        assert_eq!(fixture.read_all(path).await.unwrap(), "here", "{path}");
    }
}

#[tokio::test]
async fn range_is_described_with_where_it_continues() {
    let fixture = Fixture::new().await;
    let lines: Vec<String> = (1..=10).map(|line| format!("line {line}\n")).collect();
    fixture.put("ten.txt", lines.concat());
    fixture.put("long.txt", format!("{}\nend", "ä".repeat(30)));
    let mut output = String::new();
    for input in [
        json!({ "path": "ten.txt", "max_lines": 3 }),
        json!({ "path": "ten.txt", "start_line": 4, "max_lines": 3 }),
        json!({ "path": "ten.txt", "start_line": 9 }),
        json!({ "path": "ten.txt", "max_lines": 10 }),
        json!({ "path": "ten.txt", "max_chars": 10 }),
        json!({ "path": "ten.txt", "start_line": 2, "start_char": 3, "max_chars": 4 }),
        json!({ "path": "long.txt", "max_chars": 20 }),
        json!({ "path": "long.txt", "start_line": 1, "start_char": 20 }),
        json!({ "path": "long.txt", "start_line": 2 }),
    ] {
        writeln!(output, "=== {input}\n{}", fixture.read(input.clone()).await.unwrap()).unwrap();
    }
    golden(env!("CARGO_MANIFEST_DIR"), "parts.txt", &output);
}

#[tokio::test]
async fn consecutive_ranges_form_the_file() {
    let fixture = Fixture::new().await;
    let text: String = (0..400).map(|n| if n % 7 == 0 { "\n".to_owned() } else { format!("wörd{n} ") }).collect();
    fixture.put("a.txt", &text);
    let (mut read, mut next) = (String::new(), json!({ "start_line": 1, "start_char": 0 }));
    while !next.is_null() {
        let mut input = json!({ "path": "a.txt", "max_chars": 101, "max_lines": 5 });
        input.as_object_mut().unwrap().extend(next.as_object().unwrap().clone());
        let (output, metadata) = fixture.call("read_file", input).await.unwrap();
        let part = output.as_str().unwrap();
        let note = part.rfind("\n[").unwrap();
        // The note is on a line by itself, after an added line break if the range ends within a
        // line.
        let ends_in_line = metadata["file"]["next"]["start_char"].as_u64().is_some_and(|char| char > 0);
        let is_last_without_end = metadata["file"]["next"].is_null() && !text.ends_with('\n');
        read.push_str(&part[..if ends_in_line || is_last_without_end { note } else { note + 1 }]);
        next = metadata["file"]["next"].clone();
    }
    assert_eq!(read, text);
}

/// Without a session the runner truncates a result above the caller's limit. The last line must not
/// be cut off.
#[tokio::test]
async fn continuation_note_fits_the_limit_of_the_caller() {
    let fixture = Fixture::new().await;
    let lines: Vec<String> = (1..=90_000).map(|line| format!("line {line} ü\n")).collect();
    fixture.put("lines.txt", lines.concat());
    fixture.put("one.txt", "ü".repeat(1_100_000));
    for (asked, session, takes, given) in [
        (None, None, None, 50_000),
        (Some(400_000), None, None, 63_000),
        (None, None, Some(1_000), 700),
        (Some(900), None, Some(1_000), 700),
        (Some(100), None, Some(1_000), 100),
        (Some(150_000), None, Some(200_000), 150_000),
        (Some(900_000), None, Some(200_000), 199_000),
        (None, Some("s1"), None, 50_000),
        (None, Some("s1"), Some(1_000), 50_000),
        (Some(400_000), Some("s1"), None, 400_000),
    ] {
        for path in ["lines.txt", "one.txt"] {
            let mut input = json!({ "path": path });
            if let Some(asked) = asked {
                input["max_chars"] = asked.into();
            }
            let mut call = fixture.prepared("read_file", input.clone());
            call.request.session = session.map(str::to_owned);
            call.request.max_result_chars = takes;
            let (output, metadata) = fixture.answer("read_file", call).await.unwrap();
            let text = output.as_str().unwrap();
            let (count, next) = (text.chars().count() as u64, &metadata["file"]["next"]);
            assert!(count >= given, "{input} {takes:?}: {count}");
            assert!(session.is_some() || count <= takes.unwrap_or(64_000), "{input} {takes:?}: {count}");
            let says = format!("; the file continues at start_line {}", next["start_line"]);
            let note = text.lines().last().unwrap();
            assert!(note.contains(&says) && note.ends_with(']'), "{input} {takes:?}: {note}");
        }
    }
    // The range fits into a response, whatever the caller's limit is.
    fixture.put("one.txt", format!("{}{}", "x".repeat(70_000), "\u{1}".repeat(1_000_000)));
    let mut call = fixture.prepared("read_file", json!({ "path": "one.txt", "max_chars": 1_000_000 }));
    call.request.max_result_chars = Some(4_000_000);
    let (output, _) = fixture.answer("read_file", call).await.unwrap();
    assert!(output.to_string().len() < rcrt_breadcrumb::MAX_RECORD_BYTES - 256 * 1024);
}

#[tokio::test]
async fn range_past_the_end_is_reported_with_the_size() {
    let fixture = Fixture::new().await;
    fixture.put("a.txt", "one\ntwo");
    fixture.put("b.txt", "one\ntwo\n");
    fixture.put("empty.txt", "");
    for (path, line, says) in [
        ("a.txt", 3, "has 2 lines"),
        ("b.txt", 3, "has 2 lines"),
        ("empty.txt", 2, "has 0 lines"),
        ("a.txt", 99, "has 2 lines"),
    ] {
        refused(fixture.read(json!({ "path": path, "start_line": line })).await, InvalidArguments, says);
    }
    let past = fixture.read(json!({ "path": "a.txt", "start_line": 2, "start_char": 4 })).await;
    refused(past, InvalidArguments, "line 2 of a.txt has 3 characters");
}

#[tokio::test]
async fn other_encodings_are_decoded_and_named() {
    let fixture = Fixture::new().await;
    let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    for (bytes, encoding) in [
        (b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe 1\nzwei".to_vec(), "utf-8"),
        ([b"\xff\xfe".to_vec(), utf16("Grüße 1\nzwei", u16::to_le_bytes)].concat(), "utf-16le"),
        ([b"\xfe\xff".to_vec(), utf16("Grüße 1\nzwei", u16::to_be_bytes)].concat(), "utf-16be"),
        (b"Gr\xfc\xdfe 1\nzwei".to_vec(), "windows-1252 (guessed)"),
    ] {
        fixture.put("a.txt", bytes);
        let (output, metadata) = fixture.call("read_file", json!({ "path": "a.txt" })).await.unwrap();
        assert_eq!((output.as_str(), &metadata["file"]["encoding"]), (Some("Grüße 1\nzwei"), &json!(encoding)));
        let second = fixture.read(json!({ "path": "a.txt", "start_line": 2 })).await.unwrap();
        assert_eq!(second, "zwei\n[line 2, the end of the file]", "{encoding}");
    }
    // Later bytes that are invalid in the encoding are counted, and the text after them is still
    // decoded.
    fixture.put("a.txt", [&b"x".repeat(70_000)[..], b"\xff\xe2\x82 and on"].concat());
    let mut call = fixture.prepared("read_file", json!({ "path": "a.txt", "max_chars": 100_000 }));
    call.request.session = Some("s1".into());
    let (output, metadata) = fixture.answer("read_file", call).await.unwrap();
    assert!(output.as_str().unwrap().ends_with("x\u{fffd}\u{fffd} and on"));
    assert_eq!(metadata["file"]["replaced_characters"], 2);
}

#[tokio::test]
async fn binary_file_is_refused_with_its_type() {
    let fixture = Fixture::new().await;
    for (name, bytes, kind) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "image/png"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        ("a.pdf", b"%PDF-1.7\n% all in letters", "application/pdf"),
        ("a.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "application/gzip"),
        ("a.zip", b"PK\x03\x04\x14\0\0\0\0\0", "application/zip"),
        ("a.bin", b"\0\x01\x02", "application/octet-stream"),
    ] {
        fixture.put(name, bytes);
        let failure = refused(fixture.read_all(name).await, ExecutionFailed, "is binary");
        assert!(failure.message.contains(kind), "{}", failure.message);
        assert_eq!(failure.details.unwrap(), json!({ "type": kind, "bytes": bytes.len() }));
        assert!(!failure.is_retryable);
    }
    // Binary after a long text prefix.
    fixture.put("late.txt", [&b"text\n".repeat(9_000)[..], b"\0\0"].concat());
    refused(fixture.read_all("late.txt").await, ExecutionFailed, "is binary");
}

#[tokio::test]
async fn missing_file_is_reported_with_the_existing_ones() {
    let fixture = Fixture::new().await;
    refused(
        fixture.read_all("a.txt").await,
        ExecutionFailed,
        "there is no file a.txt; the working folder contains nothing",
    );
    fixture.put("notes/plan.md", "");
    fixture.put("log.txt", "");
    refused(fixture.read_all("plan.md").await, ExecutionFailed, "the working folder contains log.txt, notes/");
    refused(fixture.read_all("notes/plan").await, ExecutionFailed, "the folder notes contains plan.md");
    refused(fixture.read_all("no/such/plan").await, ExecutionFailed, "the working folder contains");
    refused(fixture.read_all("notes").await, ExecutionFailed, "notes is a folder; it contains plan.md");
    refused(fixture.read_all(".").await, ExecutionFailed, "is a folder; it contains log.txt, notes/");
    refused(fixture.read_all("log.txt/x").await, ExecutionFailed, "is a file, not a folder");
    for name in 0..150 {
        fixture.put(&format!("many/{name:03}"), "");
    }
    refused(fixture.read_all("many").await, ExecutionFailed, "099 and 50 more");
}

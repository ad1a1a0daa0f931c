//! Hostile content in a working folder where untrusted programs run.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rcrt_breadcrumb::ErrorCode::{Cancelled, ExecutionFailed, InvalidArguments, PermissionDenied};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, refused};
use crate::word_documents::{archive, document, paragraph, part, root_relations, table};

/// Asserts that each tool is refused the path, and that the secret beside the folder is unchanged.
async fn no_tool_reaches(fixture: &Fixture, path: &str) {
    for ended in [
        fixture.read_all(path).await.map(Into::into),
        fixture.write(path, "overwritten").await,
        fixture.append(path, "overwritten").await,
    ] {
        let failure = ended.expect_err(path);
        assert!(
            matches!(failure.code, PermissionDenied | InvalidArguments | ExecutionFailed) && !failure.is_retryable,
            "{path}: {failure:?}"
        );
        assert!(!failure.message.contains("the secret"), "{path}: {}", failure.message);
    }
    assert_eq!(std::fs::read_to_string(fixture.outer().join("secret.txt")).unwrap(), "the secret");
    let mut beside: Vec<_> =
        std::fs::read_dir(fixture.outer()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    beside.sort();
    assert_eq!(beside, ["secret.txt", "work"], "{path}");
}

#[tokio::test]
async fn paths_out_of_the_folder_are_refused() {
    let fixture = Fixture::new().await;
    fixture.put("a/b.txt", "");
    let secret = fixture.outer().join("secret.txt");
    for path in [
        "../secret.txt",
        "a/../../secret.txt",
        "a/../../work/../secret.txt",
        "./../secret.txt",
        "..",
        "../new.txt",
        "../new/deep.txt",
        "a/../../new/deep.txt",
        "//etc/passwd",
        "/etc/passwd",
        "/proc/self/environ",
        "/jailed/work/../secret.txt",
        "/jailed/secret.txt",
        "/jailed/workshop",
        secret.to_str().unwrap(),
        fixture.outer().join("work/../secret.txt").to_str().unwrap(),
        fixture.outer().join("work/../new.txt").to_str().unwrap(),
    ] {
        no_tool_reaches(&fixture, path).await;
    }
    for path in ["../secret.txt", "/etc/passwd"] {
        refused(fixture.read_all(path).await, PermissionDenied, "outside of the working folder");
    }
    refused(fixture.read_all("a\0b").await, InvalidArguments, "NUL");
}

#[tokio::test]
async fn set_id_program_is_not_appended_to() {
    let fixture = Fixture::new().await;
    for mode in [0o4755, 0o2755, 0o6755] {
        let path = fixture.put("program", "#!/bin/sh\n");
        set_mode(&path, mode);
        refused(fixture.append("program", "id").await, PermissionDenied, "set-user-id");
        assert_eq!((fixture.text("program").as_str(), mode_of(&path)), ("#!/bin/sh\n", mode));
        // A replacement is an ordinary file.
        fixture.write("program", "echo").await.unwrap();
        assert_eq!((fixture.text("program").as_str(), mode_of(&path)), ("echo", 0o755));
    }
}

#[tokio::test]
async fn working_folder_is_private_to_its_user() {
    let fixture = Fixture::new().await;
    fixture.write("new.txt", "x").await.unwrap();
    assert_eq!(mode_of(&fixture.outer().join("work")), 0o700);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn links_out_of_the_folder_are_refused() {
    let fixture = Fixture::new().await;
    let secret = fixture.outer().join("secret.txt");
    symlink(&secret, fixture.at("absolute")).unwrap();
    symlink("../secret.txt", fixture.at("relative")).unwrap();
    symlink("..", fixture.at("up")).unwrap();
    symlink(fixture.outer(), fixture.at("folder")).unwrap();
    symlink("relative", fixture.at("twice")).unwrap();
    symlink("../new.txt", fixture.at("dangling")).unwrap();
    symlink("/proc/self/root", fixture.at("root")).unwrap();
    symlink("/proc/self/fd/0", fixture.at("descriptor")).unwrap();
    symlink("circle", fixture.at("circle")).unwrap();
    let absolute_root = format!("root{}", secret.display());
    for path in [
        "absolute",
        "relative",
        "up/secret.txt",
        "up/new.txt",
        "up/new/deep.txt",
        "folder/secret.txt",
        "folder/new.txt",
        "twice",
        "dangling",
        &absolute_root,
        "descriptor",
        "circle",
        "circle/x",
    ] {
        no_tool_reaches(&fixture, path).await;
    }
    refused(fixture.read_all("circle").await, ExecutionFailed, "links form a cycle");
    for path in
        ["absolute", "relative", "up/new.txt", "up/new/deep.txt", "folder/new.txt", "folder/a/b.txt", "root/tmp/x"]
    {
        refused(fixture.write(path, "x").await, PermissionDenied, "is outside of the working folder");
    }
}

#[tokio::test]
async fn links_inside_the_folder_are_followed_and_preserved() {
    let fixture = Fixture::new().await;
    let path = fixture.put("real/a.txt", "here");
    symlink("real/a.txt", fixture.at("link")).unwrap();
    symlink("real", fixture.at("folder")).unwrap();
    assert_eq!(fixture.read_all("link").await.unwrap(), "here");
    assert_eq!(fixture.read_all("folder/a.txt").await.unwrap(), "here");
    fixture.write("link", "there").await.unwrap();
    fixture.append("folder/a.txt", "!").await.unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "there!");
    assert!(std::fs::symlink_metadata(fixture.at("link")).unwrap().is_symlink());
    symlink("nothing", fixture.at("dangling")).unwrap();
    refused(fixture.write("dangling", "x").await, ExecutionFailed, "a link whose target does not exist");
}

fn exchange(one: &Path, other: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// Folders are repeatedly replaced by links while the tools run.
#[tokio::test(flavor = "multi_thread")]
async fn folders_that_become_links_concurrently_are_refused() {
    let fixture = Fixture::new().await;
    let (inside, place) = (fixture.at("inside"), fixture.at("place"));
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("secret.txt"), "inside").unwrap();
    symlink(fixture.outer(), &inside).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut turns = 0;
            while !done.load(Ordering::Relaxed) {
                // An atomic exchange, so that one of them always exists.
                exchange(&inside, &place);
                turns += 1;
            }
            turns
        });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                for _ in 0..150 {
                    if let Ok(text) = fixture.read_all("place/secret.txt").await {
                        assert!(!text.contains("the secret"), "{text}");
                    }
                    // Writes can succeed or fail; they stay inside the folder in any case.
                    let _ = fixture.write("place/secret.txt", "inside").await;
                    let _ = fixture.append("place/secret.txt", "!").await;
                    let _ = fixture.write("place/new.txt", "inside").await;
                }
            });
        });
        done.store(true, Ordering::Relaxed);
        assert!(swapper.join().unwrap() > 0);
    });
    assert_eq!(std::fs::read_to_string(fixture.outer().join("secret.txt")).unwrap(), "the secret");
    let mut beside: Vec<_> =
        std::fs::read_dir(fixture.outer()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    beside.sort();
    assert_eq!(beside, ["secret.txt", "work"]);
}

#[tokio::test]
async fn special_files_are_neither_opened_nor_waited_for() {
    let fixture = Fixture::new().await;
    let pipe = fixture.at("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(fixture.at("socket")).unwrap();
    for (path, says) in [("pipe", "is a pipe"), ("socket", "is a socket")] {
        refused(fixture.read_all(path).await, ExecutionFailed, says);
        refused(fixture.append(path, "x").await, ExecutionFailed, says);
        refused(fixture.write(path, "x").await, ExecutionFailed, "is not a regular file");
    }
    // Only a superuser can create devices, and not everywhere.
    let device = rustix::fs::makedev(1, 5);
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        fixture.at("zero"),
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::RWXU,
        device,
    );
    if made.is_ok() {
        refused(fixture.read_all("zero").await, ExecutionFailed, "is a device");
        refused(fixture.append("zero", "x").await, ExecutionFailed, "is a device");
    }
}

#[tokio::test]
async fn huge_file_is_read_in_parts_and_reading_stops_with_the_call() {
    let fixture = Fixture::new().await;
    // A sparse file of 300 GB: one line of text, then only NULs.
    let path = fixture.put("huge.txt", "first line\n".repeat(10_000));
    std::fs::File::options().write(true).open(path).unwrap().set_len(300_000_000_000).unwrap();
    let part = fixture.read(json!({ "path": "huge.txt", "max_lines": 1 })).await.unwrap();
    assert_eq!(part, "first line\n[line 1; the file continues at start_line 2]");
    let call = fixture.prepared("read_file", json!({ "path": "huge.txt", "start_line": 1_000_000_000 }));
    let cancelled = CancellationToken::new();
    let (ended, ()) = tokio::join!(fixture.execute(call, cancelled.clone()), async {
        tokio::task::yield_now().await;
        cancelled.cancel();
    });
    refused(ended.result, Cancelled, "cancelled");
    // The thread that read it has stopped; otherwise the runtime of this test would wait for it
    // forever.
}

#[tokio::test]
async fn cancelled_write_leaves_no_file() {
    let fixture = Fixture::new().await;
    fixture.put("a.txt", "old");
    for _ in 0..20 {
        let input = json!({ "path": "a.txt", "content": "x".repeat(3_000_000) });
        let cancelled = CancellationToken::new();
        let call = fixture.prepared("write_file", input);
        let (_, ()) = tokio::join!(fixture.execute(call, cancelled.clone()), async {
            tokio::task::yield_now().await;
            cancelled.cancel();
        });
    }
    // The blocking threads run in parallel, so poll until each has noticed its cancellation.
    let mut names = fixture.names();
    while names != ["a.txt"] {
        tokio::task::yield_now().await;
        names = fixture.names();
    }
    let text = fixture.text("a.txt");
    assert!(text == "old" || text.len() == 3_000_000, "{} bytes", text.len());
}

#[tokio::test]
async fn oversized_documents_are_refused() {
    let fixture = Fixture::new().await;
    let zeros = vec![b' '; 80 * 1024 * 1024];
    let bomb = part("document", "<w:body>").replace("</w:document>", "");
    let bomb = [bomb.as_bytes(), &zeros].concat();
    let parts = [("_rels/.rels", root_relations().into_bytes()), ("word/document.xml", bomb)];
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let bytes = archive(&parts);
    assert!(bytes.len() < 200_000, "it is not a bomb: {} bytes", bytes.len());
    fixture.put("bomb.docx", bytes);
    refused(fixture.read_all("bomb.docx").await, ExecutionFailed, "unpacked it has more than");
    // The unpacked size is allowed, the text is too long.
    fixture.put("long.docx", document(&paragraph(&"x".repeat(20 * 1024 * 1024))));
    refused(fixture.read_all("long.docx").await, ExecutionFailed, "its text has more than");
    // In a part other than the text.
    let relations = crate::word_documents::relations(&[("rId1", "styles", "styles.xml", false)]);
    let styles = [part("styles", "").replace("</w:styles>", "").as_bytes(), &zeros].concat();
    let document = part("document", "<w:body/>");
    fixture.put(
        "styles.docx",
        archive(&[
            ("_rels/.rels", root_relations().as_bytes()),
            ("word/document.xml", document.as_bytes()),
            ("word/_rels/document.xml.rels", relations.as_bytes()),
            ("word/styles.xml", &styles),
        ]),
    );
    refused(fixture.read_all("styles.docx").await, ExecutionFailed, "unpacked it has more than");
}

#[tokio::test]
async fn documents_with_entities_or_deep_xml_are_refused() {
    let fixture = Fixture::new().await;
    let with_document =
        |xml: String| archive(&[("_rels/.rels", root_relations().as_bytes()), ("word/document.xml", xml.as_bytes())]);
    let laughs: String =
        (1..10).map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10))).collect();
    let laughs = format!("<!DOCTYPE d [<!ENTITY l0 \"ha\">{laughs}]><d>&l9;</d>");
    let outside = "<!DOCTYPE d [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><d>&x;</d>".to_owned();
    for xml in [laughs, outside] {
        fixture.put("a.docx", with_document(xml));
        refused(fixture.read_all("a.docx").await, ExecutionFailed, "document type definition");
    }
    fixture.put("a.docx", with_document(part("document", "<w:body><w:p><w:r><w:t>&x;</w:t></w:r></w:p></w:body>")));
    refused(fixture.read_all("a.docx").await, ExecutionFailed, "undefined entity");
    let deep = format!("{}{}", "<w:tbl><w:tr><w:tc>".repeat(50_000), "</w:tc></w:tr></w:tbl>".repeat(50_000));
    fixture.put("a.docx", document(&deep));
    refused(fixture.read_all("a.docx").await, ExecutionFailed, "more than 256 deep");
    for xml in ["", "<", "<a", "<a>", "<a></b>", "no xml", "<w:document><w:body></w:document>"] {
        fixture.put("a.docx", with_document(xml.to_owned()));
        let ended = fixture.read_all("a.docx").await;
        assert!(ended.is_err() || ended.as_deref() == Ok(""), "{xml:?}: {ended:?}");
    }
}

#[tokio::test]
async fn crafted_documents_take_linear_time() {
    let fixture = Fixture::new().await;
    let attributes: String = (0..200_000).map(|n| format!(" a{n}=\"1\"")).collect();
    let wide: Vec<String> = (0..3000).map(|_| "x".to_owned()).collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    let narrow: Vec<&[&str]> = std::iter::repeat_n(&["y"][..], 3000).collect();
    let rows: Vec<&[&str]> = std::iter::once(&wide[..]).chain(narrow).collect();
    fixture.put("a.docx", document(&format!("<w:p><w:pPr><w:pStyle{attributes}/></w:pPr></w:p>{}", table(&rows))));
    let text = fixture.read_all("a.docx").await.unwrap();
    assert!(text.len() < 100_000, "{} bytes", text.len());
}

#[tokio::test]
async fn archives_that_are_not_documents_are_refused() {
    let fixture = Fixture::new().await;
    for (bytes, says) in [
        (archive(&[("a.txt", b"text")]), "_rels/.rels is missing"),
        (archive(&[("_rels/.rels", b"<Relationships/>")]), "officeDocument is missing"),
        (archive(&[("_rels/.rels", root_relations().as_bytes())]), "word/document.xml is missing"),
        (b"PK\x03\x04 and nothing more\0".to_vec(), "it is not a Word archive"),
        (document("").into_iter().take(300).collect(), "it is not a Word archive"),
    ] {
        fixture.put("a.docx", bytes);
        refused(fixture.read_all("a.docx").await, ExecutionFailed, says);
    }
    // Relations to external parts are not followed.
    let root = crate::word_documents::relations(&[("rId1", "officeDocument", "../../../../etc/passwd", false)]);
    fixture.put("a.docx", archive(&[("_rels/.rels", root.as_bytes())]));
    refused(fixture.read_all("a.docx").await, ExecutionFailed, "etc/passwd is missing");
}

/// An archive directory with a million entries would take more memory than the file has bytes.
#[tokio::test]
async fn archive_with_too_many_entries_is_refused() {
    let fixture = Fixture::new().await;
    let mut directory = Vec::new();
    let count = 60_000_u32;
    for n in 0..count {
        let name = format!("{n:0>160}");
        directory.extend(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        directory.extend((name.len() as u16).to_le_bytes());
        directory.extend([0; 16]);
        directory.extend(name.as_bytes());
    }
    let mut bytes = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0a".to_vec();
    let start = bytes.len() as u32;
    let size = directory.len() as u32;
    assert!(size > 8 * 1024 * 1024);
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend((count as u16).to_le_bytes());
    bytes.extend((count as u16).to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    fixture.put("a.docx", bytes);
    refused(fixture.read_all("a.docx").await, ExecutionFailed, "it is not a Word archive: i/o error: too large");
}

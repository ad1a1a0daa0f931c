//! A package index on loopback, like PyPI, with a user and a password.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// The password of the index, which must not be disclosed.
pub const SECRET: &str = "the-index-password";
/// `ada:` and the password, in base64.
const CREDENTIALS: &str = "YWRhOnRoZS1pbmRleC1wYXNzd29yZA==";

/// Packages with one module of the same name, which prints its name.
const PACKAGES: [&str; 6] = ["once_a", "once_b", "netless", "kept", "shared", "plain"];

/// The bytes of the package `large` in one file, and of `many` in several files.
pub const LARGE: usize = 60_000_000;
const PARTS: usize = 30;

pub struct Index {
    pub port: u16,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Index {
    /// The index of this process. Writes the settings with which pip finds it.
    pub fn shared(settings: &Path) -> &'static Self {
        static SHARED: OnceLock<Index> = OnceLock::new();
        SHARED.get_or_init(|| {
            let index = Self::start();
            let url = format!("http://ada:{SECRET}@127.0.0.1:{}/simple", index.port);
            std::fs::write(settings, format!("[global]\nindex-url = {url}\ntimeout = 600\nretries = 0\n")).unwrap();
            index
        })
    }

    fn start() -> Self {
        let files = Arc::new(files());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let index = Self { port: listener.local_addr().unwrap().port(), paths: Arc::default() };
        let paths = index.paths.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, paths) = (files.clone(), paths.clone());
                thread::spawn(move || serve(stream, &files, &paths));
            }
        });
        index
    }

    /// How often a path with this name was requested.
    pub fn asked(&self, name: &str) -> usize {
        let named = name.replace('_', "-");
        let is_named = |path: &&String| path.contains(name) || path.contains(&named);
        self.paths.lock().unwrap().iter().filter(is_named).count()
    }
}

fn serve(stream: TcpStream, files: &BTreeMap<String, Vec<u8>>, paths: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let path = head.first()?.split(' ').nth(1)?.to_owned();
        paths.lock().unwrap().push(path.clone());
        let is_known = head.iter().any(|line| line.ends_with(&format!("Basic {CREDENTIALS}")));
        let (status, body) = if is_known { answer(&path, files) } else { ("401 Unauthorized", Vec::new()) };
        if path.contains("never-there") {
            // Requested, and never responded to.
            loop {
                thread::park();
            }
        }
        let kind = if path.starts_with("/simple/") { "text/html" } else { "application/octet-stream" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&body).ok()?;
    }
}

fn answer(path: &str, files: &BTreeMap<String, Vec<u8>>) -> (&'static str, Vec<u8>) {
    if let Some(content) = path.strip_prefix("/files/").and_then(|name| files.get(name)) {
        return ("200 OK", content.clone());
    }
    let name = path.trim_start_matches("/simple/").trim_end_matches('/').replace('-', "_");
    let links: Vec<String> = files
        .keys()
        .filter(|file| file.starts_with(&format!("{name}-")))
        .map(|file| format!("<a href=\"/files/{file}\">{file}</a>"))
        .collect();
    if links.is_empty() { ("404 Not Found", Vec::new()) } else { ("200 OK", links.join("\n").into_bytes()) }
}

fn files() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in PACKAGES {
        files.insert(format!("{name}-1.0-py3-none-any.whl"), wheel(name));
    }
    files.insert("large-1.0-py3-none-any.whl".into(), archive("large", vec![("large.py".into(), comment(LARGE))]));
    let modules = (0..PARTS).map(|number| (format!("many/a{number}.py"), comment(LARGE / PARTS))).collect();
    files.insert("many-1.0-py3-none-any.whl".into(), archive("many", modules));
    files.insert("broken-1.0-py3-none-any.whl".into(), b"no archive at all".to_vec());
    files.insert("source_only-1.0.tar.gz".into(), Vec::new());
    files
}

/// Python code of this length that does nothing.
fn comment(bytes: usize) -> String {
    format!("#{}\n", "x".repeat(bytes - 2))
}

/// A wheel with a module that prints its name.
fn wheel(name: &str) -> Vec<u8> {
    archive(name, vec![(format!("{name}.py"), format!("NAME = '{name}'\n"))])
}

/// A wheel: an archive of the modules and three metadata files.
fn archive(name: &str, modules: Vec<(String, String)>) -> Vec<u8> {
    let info = format!("{name}-1.0.dist-info");
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let record: Vec<String> = modules.iter().map(|(path, _)| format!("{path},,\n")).collect();
    let record = record.concat();
    let about = [
        (format!("{info}/METADATA"), format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")),
        (
            format!("{info}/WHEEL"),
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_owned(),
        ),
        (format!("{info}/RECORD"), format!("{record}{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")),
    ];
    for (path, text) in modules.into_iter().chain(about) {
        archive.start_file(path, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

//! Detects binary files, and creates the failure for a caller that would write text into one.

use std::io::{self, Read};
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rcrt_breadcrumb::ToolFailure;
use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::docx;
use crate::failure::{failed, of_io, shown};
use crate::folder::ToolPath;
use crate::read::kind::{self, Kind, SAMPLE};

/// File extensions of binary formats, each with its media type. Extensions that text files also use
/// (`.ts`, `.svg`, `.obj`, `.bin`) are not listed.
const NAMED: [(&str, &str); 46] = [
    ("docx", docx::TYPE),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("doc", "application/msword"),
    ("xls", "application/vnd.ms-excel"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("pdf", "application/pdf"),
    ("epub", "application/epub+zip"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("bmp", "image/bmp"),
    ("ico", "image/vnd.microsoft.icon"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("heic", "image/heic"),
    ("avif", "image/avif"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("m4a", "audio/mp4"),
    ("mp4", "video/mp4"),
    ("mov", "video/quicktime"),
    ("mkv", "video/x-matroska"),
    ("webm", "video/webm"),
    ("avi", "video/x-msvideo"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("tgz", "application/gzip"),
    ("bz2", "application/x-bzip2"),
    ("xz", "application/x-xz"),
    ("zst", "application/zstd"),
    ("7z", "application/x-7z-compressed"),
    ("rar", "application/vnd.rar"),
    ("tar", "application/x-tar"),
    ("jar", "application/java-archive"),
    ("wasm", "application/wasm"),
    ("woff2", "font/woff2"),
    ("parquet", "application/vnd.apache.parquet"),
    ("sqlite", "application/vnd.sqlite3"),
];

/// Refuses to write text to a name of a binary format: the file would not be valid.
pub fn refuse_name(tool: &str, tool_path: &ToolPath, path: &Path) -> Result<(), ToolFailure> {
    let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else { return Ok(()) };
    match NAMED.iter().find(|(named, _)| extension.eq_ignore_ascii_case(named)) {
        None => Ok(()),
        Some((_, kind)) => {
            let what = format!("{} has the name of a binary file ({kind})", shown(&tool_path.text));
            Err(refused(tool, &what, kind, json!({"type": kind})))
        }
    }
}

/// Refuses to replace or extend a binary file with text. `path` leads to a regular file.
pub fn refuse_content(tool: &str, tool_path: &ToolPath, dir: &Dir, path: &Path) -> Result<(), ToolFailure> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    let (sample, bytes) = match sample(dir, path, &options) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(of_io(&tool_path.text, "cannot be inspected", &error)),
    };
    let kind = match kind::of(&sample, path) {
        Kind::Text(_) => return Ok(()),
        Kind::Document => docx::TYPE,
        Kind::Binary(kind) => kind,
    };
    let what = format!("{} is binary ({kind}, {bytes} bytes)", shown(&tool_path.text));
    Err(refused(tool, &what, kind, json!({"type": kind, "bytes": bytes})))
}

fn sample(dir: &Dir, path: &Path, options: &OpenOptions) -> io::Result<(Vec<u8>, u64)> {
    let file = dir.open_with(path, options)?;
    let bytes = file.metadata()?.len();
    let mut sample = Vec::new();
    file.take(SAMPLE).read_to_end(&mut sample)?;
    Ok((sample, bytes))
}

fn refused(tool: &str, what: &str, kind: &str, details: Value) -> ToolFailure {
    let does = if tool == "append_file" { "appends" } else { "writes" };
    let instead = if kind == docx::TYPE {
        "write markdown under a name such as .md, or create the document with a program (execute_python_script)"
    } else {
        "use the name of a text file, such as .txt or .md, or create the file with a program (execute_python_script)"
    };
    failed(format!("{what}; {tool} {does} text: {instead}")).with_details(details)
}

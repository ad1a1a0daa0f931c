//! `read_file`: the text of a file, or a range of it.

mod decode;
pub(crate) mod kind;
mod range;

use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::fs::OpenOptions;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::blocking::{CancelFlag, CancellableReader, blocking};
use crate::docx;
use crate::failure::{failed, invalid, of_io, shown};
use crate::folder::{ToolPath, WorkingFolder};
use decode::{Decoder, Encoding};
use kind::{Kind, SAMPLE};
use range::{FilePart, Problem, Range};

/// Characters of a result that a caller gets by default.
const TAKEN_AT_ONCE: u64 = 64_000;
/// Characters that fit into a response's record in the longest JSON spelling, six bytes for each.
const MOST: u64 = rcrt_breadcrumb::MAX_RECORD_BYTES as u64 / 7;

pub struct ReadFile(pub Arc<WorkingFolder>);

#[derive(Deserialize)]
struct Input {
    path: String,
    #[serde(flatten)]
    range: Range,
}

#[async_trait]
impl NativeTool for ReadFile {
    fn name(&self) -> &'static str {
        "read_file"
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let mut input: Input = read_input(call)?;
        input.range.check()?;
        // With a session, a result that is too large for its caller is stored. Otherwise the runner
        // would cut off the line at the end.
        if call.request.session.is_none() {
            input.range = input.range.within(taken_at_once(call));
        }
        let folder = self.0.clone();
        let (text, facts) = blocking(move |stop| read(&folder, &input, stop)).await?;
        metadata.insert("file".into(), facts);
        Ok(text.into())
    }
}

/// How many characters of a result this call's caller gets.
fn taken_at_once(call: &ToolCall) -> u64 {
    call.request.max_result_chars.unwrap_or(TAKEN_AT_ONCE).min(MOST)
}

/// The text, and metadata of the file.
fn read(folder: &WorkingFolder, input: &Input, stop: &CancelFlag) -> Result<(String, Value), ToolFailure> {
    let tool_path = folder.tool_path(&input.path)?;
    let dir = folder.open()?;
    let what = "cannot be read";
    let cannot = |error: std::io::Error| of_io(&tool_path.text, what, &error);
    let mut file = tool_path.open(&dir, OpenOptions::new().read(true), what)?;
    let bytes = file.metadata().map_err(cannot)?.len();
    let mut sample = Vec::new();
    file.by_ref().take(SAMPLE).read_to_end(&mut sample).map_err(cannot)?;
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    let file = CancellableReader::new(file.into_std(), stop);
    let (part, format, encoding) = match kind::of(&sample, &tool_path.path) {
        Kind::Text(encoding) => {
            let mut decoder = Decoder::new(BufReader::with_capacity(64 * 1024, file), encoding);
            let part = input.range.read(&mut decoder).map_err(|problem| read_failure(&tool_path, bytes, problem))?;
            (part, "text/plain", Some(encoding))
        }
        Kind::Document => {
            let text = docx::markdown(file, bytes).map_err(|error| {
                failed(format!("{} cannot be read as a Word document: {error}", shown(&tool_path.text)))
            })?;
            let mut decoder = Decoder::new(Cursor::new(text.into_bytes()), Encoding::Utf8 { mark: 0 });
            let part = input.range.read(&mut decoder).map_err(|problem| read_failure(&tool_path, bytes, problem))?;
            (part, docx::TYPE, None)
        }
        Kind::Binary(kind) => return Err(binary(&tool_path, bytes, kind)),
    };
    let facts = facts(&tool_path, bytes, format, encoding, &part);
    Ok((part.into_text(), facts))
}

fn facts(tool_path: &ToolPath, bytes: u64, format: &str, encoding: Option<Encoding>, part: &FilePart) -> Value {
    let mut facts = json!({
        "path": tool_path.text,
        "bytes": bytes,
        "type": format,
        "first_line": part.first_line,
        "last_line": part.last_line,
    });
    if let Some(encoding) = encoding {
        facts["encoding"] = encoding.name().into();
    }
    if part.replaced > 0 {
        facts["replaced_characters"] = part.replaced.into();
    }
    match part.next {
        Some(next) => facts["next"] = json!({"start_line": next.line, "start_char": next.char}),
        None => facts["total_lines"] = part.last_line.into(),
    }
    facts
}

fn read_failure(tool_path: &ToolPath, bytes: u64, problem: Problem) -> ToolFailure {
    match problem {
        Problem::Io(error) => of_io(&tool_path.text, "cannot be read", &error),
        Problem::Binary => binary(tool_path, bytes, "application/octet-stream"),
        Problem::PastEnd { lines } => {
            let message =
                format!("start_line: {} has {lines} lines, so there is nothing to read", shown(&tool_path.text));
            invalid(message)
        }
        Problem::PastLine { line, chars } => invalid(format!(
            "start_char: line {line} of {} has {chars} characters, so there is nothing to read",
            shown(&tool_path.text)
        )),
    }
}

fn binary(tool_path: &ToolPath, bytes: u64, kind: &str) -> ToolFailure {
    let message =
        format!("{} is binary ({kind}, {bytes} bytes); read_file reads text and .docx", shown(&tool_path.text));
    failed(message).with_details(json!({"type": kind, "bytes": bytes}))
}

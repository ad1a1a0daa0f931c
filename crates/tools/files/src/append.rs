//! `append_file`: adds text to the end of an existing file.

use std::io::Write;
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::fs::{MetadataExt, OpenOptions, PermissionsExt};
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::binary;
use crate::blocking::{CancelFlag, blocking};
use crate::failure::{failed, of_io, shown};
use crate::folder::WorkingFolder;

const NAME: &str = "append_file";
/// The maximum size of a file after an append, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// The set-user-id and set-group-id bits of a mode.
const SET_ID: u32 = 0o6000;

pub struct AppendFile(pub Arc<WorkingFolder>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    path: String,
    content: String,
}

#[async_trait]
impl InputTool for AppendFile {
    const NAME: &'static str = NAME;
    type Input = Input;

    async fn run(&self, input: Input, _call: &ToolCall) -> Result<Value, ToolFailure> {
        let folder = self.0.clone();
        blocking(move |stop| append(&folder, &input, stop)).await
    }
}

fn append(folder: &WorkingFolder, input: &Input, stop: &CancelFlag) -> Result<Value, ToolFailure> {
    let tool_path = folder.tool_path(&input.path)?;
    tool_path.check_is_file()?;
    binary::refuse_name(NAME, &tool_path, &tool_path.path)?;
    let dir = folder.open_for(input.content.len() as u64)?;
    let path = shown(&tool_path.text);
    if tool_path.metadata(&dir)?.is_none() {
        let missing = tool_path.missing(&dir);
        return Err(failed(format!("{}; write_file makes a new file", missing.message)));
    }
    let what = "cannot be appended to";
    let mut file = tool_path.open(&dir, OpenOptions::new().append(true), what)?;
    let cannot = |error: std::io::Error| of_io(&tool_path.text, what, &error);
    let before = file.metadata().map_err(cannot)?;
    if before.nlink() > 1 {
        let message = format!(
            "{path} has {} hard links, and an append would change all of them; write_file replaces only this one",
            before.nlink()
        );
        return Err(failed(message));
    }
    // If the process is privileged, the kernel does not clear these bits on a write.
    if before.permissions().mode() & SET_ID != 0 {
        let message =
            format!("{path} has the set-user-id or set-group-id bit, so it is not changed; remove that bit first");
        return Err(ToolFailure::new(ErrorCode::PermissionDenied, message));
    }
    let added = input.content.len() as u64;
    if before.len().saturating_add(added) > MAX_BYTES {
        let message = format!("{path} has {} bytes and cannot grow beyond {MAX_BYTES}", before.len());
        return Err(ToolFailure::new(ErrorCode::ResourceExhausted, message));
    }
    let target = dir.canonicalize(&tool_path.path).map_err(cannot)?;
    binary::refuse_name(NAME, &tool_path, &target)?;
    binary::refuse_content(NAME, &tool_path, &dir, &target)?;
    stop.check().map_err(cannot)?;
    // One write, so that concurrent appends do not interleave.
    file.write_all(input.content.as_bytes()).and_then(|()| file.sync_all()).map_err(cannot)?;
    let bytes = file.metadata().map_err(cannot)?.len();
    Ok(json!({"path": tool_path.text, "appended_bytes": added, "bytes": bytes}))
}

//! `write_file`: writes the whole text of a file.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::fs::Dir;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::atomic;
use crate::binary;
use crate::blocking::{CancelFlag, blocking};
use crate::failure::{failed, of_io, shown};
use crate::folder::{ToolPath, WorkingFolder};

const NAME: &str = "write_file";

pub struct WriteFile(pub Arc<WorkingFolder>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    path: String,
    content: String,
}

#[async_trait]
impl InputTool for WriteFile {
    const NAME: &'static str = NAME;
    type Input = Input;

    async fn run(&self, input: Input, _call: &ToolCall) -> Result<Value, ToolFailure> {
        let folder = self.0.clone();
        blocking(move |stop| write(&folder, &input, stop)).await
    }
}

fn write(folder: &WorkingFolder, input: &Input, stop: &CancelFlag) -> Result<Value, ToolFailure> {
    let tool_path = folder.tool_path(&input.path)?;
    tool_path.check_is_file()?;
    binary::refuse_name(NAME, &tool_path, &tool_path.path)?;
    let dir = folder.open_for(input.content.len() as u64)?;
    let cannot = |error: std::io::Error| of_io(&tool_path.text, "cannot be written", &error);
    if let Some(parent) = tool_path.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        dir.create_dir_all(parent).map_err(|error| tool_path.escapes_folder(&dir).unwrap_or_else(|| cannot(error)))?;
    }
    let target = target(&dir, &tool_path)?;
    binary::refuse_name(NAME, &tool_path, &target)?;
    let before = match dir.metadata(&target) {
        Ok(metadata) if metadata.is_file() => Some(metadata),
        Ok(metadata) if metadata.is_dir() => return Err(failed(format!("{} is a folder", shown(&tool_path.text)))),
        Ok(_) => return Err(failed(format!("{} is not a regular file, so it is not changed", shown(&tool_path.text)))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(cannot(error)),
    };
    let permissions = before.as_ref().map(cap_std::fs::Metadata::permissions);
    if permissions.as_ref().is_some_and(cap_std::fs::Permissions::readonly) {
        return Err(failed(format!("{} is write-protected", shown(&tool_path.text))));
    }
    if before.is_some() {
        binary::refuse_content(NAME, &tool_path, &dir, &target)?;
    }
    atomic::replace(&dir, &target, input.content.as_bytes(), permissions, stop).map_err(cannot)?;
    Ok(json!({"path": tool_path.text, "bytes": input.content.len(), "created": before.is_none()}))
}

/// The target of a link, else the path: a link stays, and its target is written.
fn target(dir: &Dir, tool_path: &ToolPath) -> Result<PathBuf, ToolFailure> {
    match dir.symlink_metadata(&tool_path.path) {
        Ok(metadata) if metadata.is_symlink() => match dir.canonicalize(&tool_path.path) {
            Ok(target) => Ok(target),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(failed(format!("{} is a link whose target does not exist", shown(&tool_path.text))))
            }
            Err(error) => Err(of_io(&tool_path.text, "cannot be written", &error)),
        },
        Ok(_) => Ok(tool_path.path.clone()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(tool_path.path.clone()),
        Err(error) => Err(of_io(&tool_path.text, "cannot be written", &error)),
    }
}

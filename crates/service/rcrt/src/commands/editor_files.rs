//! The files that let an editor check the tools of a folder.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

const SETTINGS: (&str, &str) = ("tsconfig.json", include_str!("../editor/tsconfig.json"));
const GLOBALS: (&str, &str) = ("rcrt.d.ts", rcrt_typescript::GLOBALS);

/// Writes the files and returns those that changed. The settings belong to the author, so existing
/// ones stay. So does a file of another origin with the name of the globals.
pub fn write(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let settings = folder.join(SETTINGS.0);
    match OpenOptions::new().write(true).create_new(true).open(&settings) {
        Ok(mut file) => {
            file.write_all(SETTINGS.1.as_bytes()).with_context(|| unwritable(&settings))?;
            written.push(settings);
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| unwritable(&settings)),
    }
    let globals = folder.join(GLOBALS.0);
    let is_outdated = match std::fs::read_to_string(&globals) {
        Ok(text) => text != GLOBALS.1 && text.lines().next() == GLOBALS.1.lines().next(),
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", globals.display())),
    };
    if is_outdated {
        std::fs::write(&globals, GLOBALS.1).with_context(|| unwritable(&globals))?;
        written.push(globals);
    }
    Ok(written)
}

fn unwritable(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

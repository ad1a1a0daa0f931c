//! Replaces a file atomically: a reader sees the old text or the new one, and a call that is
//! stopped midway leaves the old one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};

use crate::blocking::CancelFlag;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Writes to a temporary file in the same folder, then renames it. Hard links to the old file keep
/// the old text. `permissions` are those of the old file, if there was one. Its set-id bits are
/// dropped, because the new file belongs to this program's user.
pub fn replace(
    dir: &Dir,
    path: &Path,
    content: &[u8],
    permissions: Option<Permissions>,
    stop: &CancelFlag,
) -> io::Result<()> {
    let unfinished = Unfinished { dir, path: beside(path), is_done: false };
    let mut file = dir.open_with(&unfinished.path, OpenOptions::new().write(true).create_new(true))?;
    // In chunks, so that a cancelled call stops early.
    for piece in content.chunks(1024 * 1024) {
        stop.check()?;
        file.write_all(piece)?;
    }
    if let Some(mut permissions) = permissions {
        permissions.set_mode(permissions.mode() & 0o777);
        file.set_permissions(permissions)?;
    }
    file.sync_all()?;
    stop.check()?;
    dir.rename(&unfinished.path, dir, path)?;
    unfinished.done();
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
    path.with_file_name(format!(".unfinished-{}-{count}-{since:x}", std::process::id()))
}

/// Deletes the temporary file if it was not renamed.
struct Unfinished<'d> {
    dir: &'d Dir,
    path: PathBuf,
    is_done: bool,
}

impl Unfinished<'_> {
    fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // The file might not exist.
            let _ = self.dir.remove_file(&self.path);
        }
    }
}

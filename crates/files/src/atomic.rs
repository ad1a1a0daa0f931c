//! Replaces a file atomically: a reader sees the old text or the new one, and a call that is ended
//! midway leaves the old one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};

use crate::blocking::CancelFlag;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Writes beside the file under a name of its own, then gives it the file's name. A hard link of the old file keeps
/// the old text. `permissions` are those of the file before, if there was one: its set-id bits are dropped, because the
/// new file belongs to this program's user.
pub fn replace(
    dir: &Dir,
    path: &Path,
    content: &[u8],
    permissions: Option<Permissions>,
    stop: &CancelFlag,
) -> io::Result<()> {
    let unfinished = Unfinished { dir, path: beside(path), is_done: false };
    let mut file = dir.open_with(&unfinished.path, OpenOptions::new().write(true).create_new(true))?;
    // In pieces: whoever waits no more is not written for.
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

/// Takes away what did not get its name.
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
            // It may never have come to be.
            let _ = self.dir.remove_file(&self.path);
        }
    }
}

//! Files that only their owner can read, written completely or not at all.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

pub(super) const KEY_BYTES: usize = 32;

/// Returns the folder of keys in this data folder, and creates it if needed.
pub(super) fn private_folder(data: &Path) -> anyhow::Result<PathBuf> {
    let folder = data.join("keys");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("the folder {} cannot be created", folder.display()))?;
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700))
        .with_context(|| format!("the permissions of the folder {} cannot be restricted", folder.display()))?;
    Ok(folder)
}

/// Reads the key in this file.
pub(super) fn read(path: &Path) -> anyhow::Result<[u8; KEY_BYTES]> {
    let bytes = std::fs::read(path).with_context(|| format!("the key {} cannot be read", path.display()))?;
    match <[u8; KEY_BYTES]>::try_from(bytes) {
        Ok(key) => Ok(key),
        Err(bytes) => bail!(
            "the key {} has {} bytes instead of {KEY_BYTES}; restore the original file (a new key could not decrypt old \
             secrets)",
            path.display(),
            bytes.len()
        ),
    }
}

/// Creates a random key in this file. Keeps a key that exists or that another process creates
/// meanwhile.
pub(super) fn create(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let mut bytes = [0_u8; KEY_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system returned no random bytes"))?;
    put(path, &bytes).with_context(|| format!("the key {} cannot be created", path.display()))
}

/// Writes a key to a new file.
pub(super) fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    write_private(&draft, bytes)?;
    let linked = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(sync_folder(path)?),
    }
}

/// Replaces a file that only its owner can read. Readers see the old content or the new one, never
/// a part.
pub fn replace_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    write_private(&draft, bytes)?;
    std::fs::rename(&draft, path)
}

fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // The draft of a killed process can have other permissions, so remove it first.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    // A file name without a folder is in the current folder.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

//! Postgres insists on owning its cluster. A folder that root first used with user namespaces and later without (or the other
//! way round) is handed over; an ordinary user gets a sentence instead.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

use nix::unistd::Uid;

use crate::account::Account;
use crate::{PostgresError, at};

pub(crate) fn adopt(folder: &Path, account: &Account) -> Result<(), PostgresError> {
    let Ok(found) = folder.symlink_metadata() else { return Ok(()) };
    let (uid, gid) = account.owner();
    if found.uid() == uid {
        return Ok(());
    }
    if !Uid::effective().is_root() {
        return Err(PostgresError::ForeignOwner { path: folder.to_owned(), owner: found.uid() });
    }
    give(folder, uid, gid)
}

fn give(path: &Path, uid: u32, gid: u32) -> Result<(), PostgresError> {
    lchown(path, Some(uid), Some(gid)).map_err(at("change the owner of", path))?;
    if path.symlink_metadata().map_err(at("read", path))?.is_dir() {
        for entry in std::fs::read_dir(path).map_err(at("list", path))? {
            give(&entry.map_err(at("list", path))?.path(), uid, gid)?;
        }
    }
    Ok(())
}

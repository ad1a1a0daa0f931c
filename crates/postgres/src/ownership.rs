//! Postgres insists on owning its cluster. A folder that root first used with user namespaces and later without (or the other
//! way round) is handed over. What anybody else owns is never touched: its owner could not use it afterwards.

use std::io::ErrorKind;

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

use nix::unistd::Uid;

use crate::account::{self, Account};
use crate::{PostgresError, at};

/// The data folder itself is always the present user's: it is handed to no account.
pub(crate) fn check_data_folder(folder: &Path) -> Result<(), PostgresError> {
    match owner(folder)? {
        Some(owner) if owner != Uid::effective().as_raw() => {
            Err(PostgresError::ForeignOwner { path: folder.to_owned(), owner })
        }
        _ => Ok(()),
    }
}

/// A folder in it is the present user's, or that of an account that root runs Postgres as.
pub(crate) fn check(folder: &Path) -> Result<(), PostgresError> {
    match owner(folder)? {
        Some(owner) if !account::possible_owners().contains(&owner) => {
            Err(PostgresError::ForeignOwner { path: folder.to_owned(), owner })
        }
        _ => Ok(()),
    }
}

pub(crate) fn adopt(folder: &Path, account: &Account) -> Result<(), PostgresError> {
    check(folder)?;
    let (uid, gid) = account.owner();
    match owner(folder)? {
        Some(owner) if owner != uid => give(folder, uid, gid),
        _ => Ok(()),
    }
}

fn owner(folder: &Path) -> Result<Option<u32>, PostgresError> {
    match folder.symlink_metadata() {
        Ok(found) => Ok(Some(found.uid())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at("look at", folder)(error)),
    }
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

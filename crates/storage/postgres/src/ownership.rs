//! Postgres must own its cluster. If root used a folder first with user namespaces and later
//! without, or the other way round, its owner is changed. Folders of other users are never changed,
//! because their owners could not use them afterwards.

use std::io::ErrorKind;

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

use nix::unistd::Uid;

use crate::account::{self, Account};
use crate::{PostgresError, at};

/// Checks that this user owns the data folder. Its owner is never changed.
pub(crate) fn check_data_folder(folder: &Path) -> Result<(), PostgresError> {
    match owner(folder)? {
        Some(owner) if owner != Uid::effective().as_raw() => {
            Err(PostgresError::ForeignOwner { path: folder.to_owned(), owner })
        }
        _ => Ok(()),
    }
}

/// Checks that a folder in the data folder belongs to this user, or to an account that root runs
/// Postgres as.
pub(crate) fn check(folder: &Path) -> Result<(), PostgresError> {
    match owner(folder)? {
        Some(owner) if !account::possible_owners().contains(&owner) => {
            Err(PostgresError::ForeignOwner { path: folder.to_owned(), owner })
        }
        _ => Ok(()),
    }
}

pub(crate) fn set_owner(folder: &Path, account: &Account) -> Result<(), PostgresError> {
    check(folder)?;
    let (uid, gid) = account.owner();
    match owner(folder)? {
        Some(owner) if owner != uid => change_owner(folder, uid, gid),
        _ => Ok(()),
    }
}

fn owner(folder: &Path) -> Result<Option<u32>, PostgresError> {
    match folder.symlink_metadata() {
        Ok(found) => Ok(Some(found.uid())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at("read", folder)(error)),
    }
}

fn change_owner(path: &Path, uid: u32, gid: u32) -> Result<(), PostgresError> {
    lchown(path, Some(uid), Some(gid)).map_err(at("change the owner of", path))?;
    if path.symlink_metadata().map_err(at("read", path))?.is_dir() {
        for entry in std::fs::read_dir(path).map_err(at("list", path))? {
            change_owner(&entry.map_err(at("list", path))?.path(), uid, gid)?;
        }
    }
    Ok(())
}

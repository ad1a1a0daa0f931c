use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use crate::account::Account;
use crate::{PostgresError, at, ownership};

/// What Postgres calls the lock of its socket, which is the longer name of the two.
pub(crate) const LOCK: &str = ".s.PGSQL.5432.lock";

/// A Unix socket's path ends after this many bytes.
const LONGEST_PATH: usize = 107;

/// Makes the private folder for the socket: in the data folder, or where its path is too long, in a short place of its own.
pub(crate) fn prepare(data_dir: &Path, account: &Account) -> Result<PathBuf, PostgresError> {
    let folder = choose(data_dir);
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(at("make the socket's folder", &folder)(error));
        }
        _ => {}
    }
    let found = folder.symlink_metadata().map_err(at("read the socket's folder", &folder))?;
    // In a shared temporary folder somebody else may have been there first, with a link or a folder that they can read.
    ownership::check(&folder)?;
    if !found.is_dir() {
        return Err(PostgresError::ForeignOwner { path: folder, owner: found.uid() });
    }
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))
        .map_err(at("make private the socket's folder", &folder))?;
    ownership::adopt(&folder, account)?;
    Ok(folder)
}

/// Where the socket's folder of this data folder is, which is named without links.
pub(crate) fn choose(data_dir: &Path) -> PathBuf {
    let near = data_dir.join("run");
    if fits(&near) {
        return near;
    }
    let mut hasher = DefaultHasher::new();
    data_dir.hash(&mut hasher);
    let name = format!("rcrt-{}-{:016x}", Uid::effective(), hasher.finish());
    std::env::var_os("XDG_RUNTIME_DIR")
        .map(|folder| Path::new(&folder).join(&name))
        .filter(|folder| folder.is_absolute() && folder.parent().is_some_and(Path::is_dir) && fits(folder))
        .unwrap_or_else(|| Path::new("/tmp").join(&name))
}

fn fits(folder: &Path) -> bool {
    folder.as_os_str().as_bytes().len() + 1 + LOCK.len() <= LONGEST_PATH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_keeps_the_socket_beside_the_data() {
        assert_eq!(choose(Path::new("/srv/data")), Path::new("/srv/data/run"));
    }

    #[test]
    fn a_long_path_gets_a_short_folder_that_is_always_the_same_one() {
        let long = PathBuf::from(format!("/srv/{}", "deep/".repeat(30)));
        let folder = choose(&long);
        assert!(fits(&folder), "{}", folder.display());
        assert_eq!(folder, choose(&long));
        assert_ne!(folder, choose(&long.join("other")));
    }
}

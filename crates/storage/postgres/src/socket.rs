use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use crate::account::Account;
use crate::{PostgresError, at, ownership};

/// The name of Postgres's lock file for its socket. It is longer than the socket's name.
pub(crate) const LOCK: &str = ".s.PGSQL.5432.lock";

/// Maximum length of a Unix socket's path, in bytes.
const LONGEST_PATH: usize = 107;

/// Creates the private folder of the socket: in the data folder, or in a shorter place if that path
/// is too long.
pub(crate) fn prepare(data_dir: &Path, account: &Account) -> Result<PathBuf, PostgresError> {
    let folder = choose(data_dir);
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(at("create the socket's folder", &folder)(error));
        }
        _ => {}
    }
    let found = folder.symlink_metadata().map_err(at("read the socket's folder", &folder))?;
    // In a shared temporary folder, another user may have created a link or a folder first.
    ownership::check(&folder)?;
    if !found.is_dir() {
        return Err(PostgresError::ForeignOwner { path: folder, owner: found.uid() });
    }
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))
        .map_err(at("restrict the permissions of the socket's folder", &folder))?;
    ownership::set_owner(&folder, account)?;
    Ok(folder)
}

/// Returns the socket's folder for this data folder, whose path must be without links.
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
    fn a_short_path_uses_a_socket_in_the_data_folder() {
        assert_eq!(choose(Path::new("/srv/data")), Path::new("/srv/data/run"));
    }

    #[test]
    fn a_long_path_uses_a_short_and_stable_folder() {
        let long = PathBuf::from(format!("/srv/{}", "deep/".repeat(30)));
        let folder = choose(&long);
        assert!(fits(&folder), "{}", folder.display());
        assert_eq!(folder, choose(&long));
        assert_ne!(folder, choose(&long.join("other")));
    }
}

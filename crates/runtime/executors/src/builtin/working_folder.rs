//! What native tools keep in the working folder. Every entry is opened relative to a handle of the
//! folder, so links that are swapped meanwhile lead nowhere else.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, MetadataExt, OpenOptions, PermissionsExt, ReadDir};
use uuid::Uuid;

/// The most files and folders that a working folder can hold.
pub const MAX_ENTRIES: usize = 200_000;
/// The unit of `st_blocks`.
const BLOCK: u64 = 512;
/// The least that an entry takes.
const ENTRY: u64 = 4096;
/// Longer paths may be too long for the system.
const LONG_PATH: usize = 2048;

/// The content of a working folder at one moment.
#[derive(Debug, Default)]
pub struct FolderContent {
    /// Disk space in bytes.
    pub bytes: u64,
    pub entries: usize,
    /// The sizes of files, by the hash of their path.
    sizes: HashMap<u64, u64>,
    /// The files themselves, also if they are renamed.
    files: HashSet<u64>,
}

impl FolderContent {
    /// Reads the folder; at most a little more than [`MAX_ENTRIES`]. Blocks. A folder that does not
    /// exist is empty.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut content = Self::default();
        let Some(root) = or_gone(Dir::open_ambient_dir(folder, ambient_authority()))? else { return Ok(content) };
        walk(&root, &mut |path, metadata| {
            content.bytes += ENTRY.max(metadata.blocks().saturating_mul(BLOCK));
            content.entries += 1;
            content.sizes.insert(hash(&path), metadata.len());
            content.files.insert(identity(metadata));
            Ok(if content.entries > MAX_ENTRIES { Next::Stop } else { Next::Enter })
        })?;
        Ok(content)
    }

    /// Removes the files and folders that appeared since, and cuts files that have grown to their
    /// former size. Blocks. What cannot be removed stays; the error is the last one.
    pub fn remove_newer(&self, folder: &Path) -> io::Result<()> {
        let Some(root) = or_gone(Dir::open_ambient_dir(folder, ambient_authority()))? else { return Ok(()) };
        let mut failed = Ok(());
        let mut new_folders = Vec::new();
        walk(&root, &mut |path, metadata| {
            let size = self.sizes.get(&hash(&path));
            let is_new = size.is_none() && !self.files.contains(&identity(metadata));
            let done = if metadata.is_dir() {
                if !is_new {
                    return Ok(Next::Enter);
                }
                // A deep folder is emptied at the top, where its paths are short.
                if path.as_os_str().len() > LONG_PATH {
                    let top = PathBuf::from(format!(".removed-{}", Uuid::new_v4()));
                    return Ok(match root.rename(path, &root, &top) {
                        Ok(()) => {
                            new_folders.push(top.clone());
                            Next::EnterAt(top)
                        }
                        Err(_) => Next::Skip,
                    });
                }
                new_folders.push(path.to_owned());
                return Ok(Next::Enter);
            } else if is_new {
                root.remove_file(path)
            } else if metadata.is_file() && size.is_some_and(|size| metadata.len() > *size) {
                let file = root.open_with(path, OpenOptions::new().write(true));
                file.and_then(|file| file.set_len(size.copied().unwrap_or_default()))
            } else {
                Ok(())
            };
            if let Err(error) = or_gone(done) {
                failed = Err(error);
            }
            Ok(Next::Enter)
        })?;
        for folder in new_folders.iter().rev() {
            if let Err(error) = or_gone(root.remove_dir(folder)) {
                failed = Err(error);
            }
        }
        failed
    }
}

/// What to do after an entry.
enum Next {
    /// Go on, in the entry if it is a folder.
    Enter,
    /// Go on in the entry, which was moved to this path.
    EnterAt(PathBuf),
    /// Go on beside the entry.
    Skip,
    Stop,
}

/// Calls `seen` with the path and the metadata of each entry, folders before their content. Entries
/// that are removed meanwhile are left out.
fn walk(root: &Dir, seen: &mut dyn FnMut(&Path, &Metadata) -> io::Result<Next>) -> io::Result<()> {
    let mut open = vec![PathBuf::from(".")];
    while let Some(folder) = open.pop() {
        let Some(entries) = list(root, &folder)? else { continue };
        for entry in entries {
            let entry = entry?;
            let Some(metadata) = or_gone(entry.metadata())? else { continue };
            let name = PathBuf::from(entry.file_name());
            let path = if folder == Path::new(".") { name } else { folder.join(name) };
            match seen(&path, &metadata)? {
                Next::Enter if metadata.is_dir() => open.push(path),
                Next::Enter | Next::Skip => {}
                Next::EnterAt(path) => open.push(path),
                Next::Stop => return Ok(()),
            }
        }
    }
    Ok(())
}

/// A program can deny its own user, and so this process, the access to a folder. What another user
/// closed is closed for programs too: `None`.
fn list(root: &Dir, folder: &Path) -> io::Result<Option<ReadDir>> {
    // Opening a folder needs no permission, listing it does.
    let entries = || root.open_dir(folder)?.entries();
    match entries() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let opened = root.set_permissions(folder, cap_std::fs::Permissions::from_mode(0o700));
            if opened.is_ok() { or_gone(entries()) } else { Ok(None) }
        }
        listed => or_gone(listed),
    }
}

fn or_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The number of a removed file can be used again.
fn identity(metadata: &Metadata) -> u64 {
    hash(&(metadata.ino(), metadata.created().ok().map(cap_std::time::SystemTime::into_std)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_what_came_since_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("old/inner")).unwrap();
        for name in ["kept", "old/kept", "old/grown", "moved", "replaced"] {
            fs::write(at(name), "text").unwrap();
        }
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "text").unwrap();
        let before = FolderContent::read(folder.path()).unwrap();
        assert_eq!(before.entries, 7);

        fs::write(at("old/grown"), "text and more").unwrap();
        fs::rename(at("moved"), at("old/inner/moved")).unwrap();
        fs::write(at("other"), "text").unwrap();
        fs::rename(at("other"), at("replaced")).unwrap();
        fs::create_dir_all(at("new/inner")).unwrap();
        fs::write(at("new/inner/file"), vec![b'x'; 100_000]).unwrap();
        std::os::unix::fs::symlink(outside.path(), at("new/link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), at("link")).unwrap();
        let after = FolderContent::read(folder.path()).unwrap();
        assert!((100_000..400_000).contains(&(after.bytes - before.bytes)), "{after:?}");
        before.remove_newer(folder.path()).unwrap();

        assert_eq!(names(folder.path()), ["kept", "old", "replaced"]);
        assert_eq!(names(&at("old")), ["grown", "inner", "kept"]);
        assert_eq!(names(&at("old/inner")), ["moved"]);
        assert_eq!(fs::read_to_string(at("old/grown")).unwrap(), "text");
        assert_eq!(names(outside.path()), ["file"]);
    }

    #[test]
    fn deep_and_closed_folders_are_emptied() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let before = FolderContent::read(folder.path()).unwrap();
        let root = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let mut dir = root.try_clone().unwrap();
        for _ in 0..40 {
            let name = "d".repeat(200);
            dir.create_dir(&name).unwrap();
            dir = dir.open_dir(&name).unwrap();
        }
        dir.write("file", "text").unwrap();
        fs::create_dir_all(folder.path().join("closed/inner")).unwrap();
        fs::set_permissions(folder.path().join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        // Paths in the deepest folder are longer than most systems accept.
        let _ = FolderContent::read(folder.path());
        before.remove_newer(folder.path()).unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn missing_folder_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let content = FolderContent::read(&missing).unwrap();
        assert_eq!((content.bytes, content.entries), (0, 0));
        content.remove_newer(&missing).unwrap();
    }
}

//! The root file system of the jail. It is built beside the machine's root, which is then
//! unmounted.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use nix::mount::{MsFlags, mount};

use super::mounts::{Binds, make_read_only};
use crate::command::CommandSpec;
use crate::protections::empty_root;

/// A folder that exists on every system, where the new root is built. The files below it were
/// opened before.
const SITE: &str = "/tmp";
/// Limits of the root itself, which has folders and small files; in bytes.
const ROOT_BYTES: u64 = 16 * 1024 * 1024;
const ROOT_FILES: u64 = 4096;
/// Limit on the files in `/tmp` and in `/dev/shm`.
const TEMPORARY_FILES: u64 = 65_536;

const LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

pub struct JailRoot {
    root: PathBuf,
}

impl JailRoot {
    pub fn build(order: &CommandSpec, binds: &Binds) -> Result<Self, String> {
        let root = PathBuf::from(SITE);
        let named = |what: &str, error: io::Error| format!("files: {what}: {error}");
        empty_root::keep_to_this_namespace().map_err(|error| named("/", error.into()))?;
        let size = format!("size={ROOT_BYTES},nr_inodes={ROOT_FILES},mode=755");
        memory(&root, &size).map_err(|error| named("the root", error))?;
        let jail_root = Self { root };
        for name in ["/tmp", "/dev/shm"] {
            let size = format!("size={},nr_inodes={TEMPORARY_FILES},mode=1777", order.bounds.temporary);
            jail_root.folder(Path::new(name)).map_err(|error| named(name, error))?;
            memory(&jail_root.within(Path::new(name)), &size).map_err(|error| named(name, error))?;
        }
        jail_root.processes().map_err(|error| named("/proc", error))?;
        for taken in &binds.0 {
            let inside = taken.inside.as_path();
            let made = if taken.is_folder { jail_root.folder(inside) } else { jail_root.file(inside, "") };
            made.and_then(|()| taken.put(&jail_root.within(inside)))
                .map_err(|error| named(&inside.display().to_string(), error))?;
        }
        let own = LINKS.map(|(path, target)| (PathBuf::from(path), PathBuf::from(target)));
        for (path, target) in order.view.links.iter().chain(&own) {
            jail_root.link(path, target).map_err(|error| named(&path.display().to_string(), error))?;
        }
        for (path, content) in &order.view.files {
            jail_root.file(path, content).map_err(|error| named(&path.display().to_string(), error))?;
        }
        Ok(jail_root)
    }

    /// Switches to the new root. There is no way back.
    pub fn enter(self) -> Result<(), String> {
        empty_root::pivot_to(&self.root).map_err(|error| format!("the kernel refuses it: {error}"))?;
        make_read_only(Path::new("/")).map_err(|error| error.to_string())
    }

    /// The path of a jail path while the root is built.
    fn within(&self, path: &Path) -> PathBuf {
        let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
        names.fold(self.root.clone(), |path, name| path.join(name))
    }

    fn processes(&self) -> io::Result<()> {
        let path = self.within(Path::new("/proc"));
        self.folder(Path::new("/proc"))?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(Some("proc"), &path, Some("proc"), flags, None::<&str>)?;
        // It contains the kernel's settings too.
        make_read_only(&path)
    }

    fn folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o755).create(self.within(path))
    }

    fn file(&self, path: &Path, content: &str) -> io::Result<()> {
        self.above(path)?;
        let path = self.within(path);
        fs::write(&path, content)?;
        fs::set_permissions(&path, Permissions::from_mode(0o644))
    }

    fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        self.above(path)?;
        symlink(target, self.within(path))
    }

    fn above(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.folder(parent))
    }
}

/// Mounts an empty in-memory file system.
fn memory(path: &Path, size: &str) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    Ok(mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(size))?)
}

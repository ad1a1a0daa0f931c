//! Removes the machine's files from view: the root becomes an empty read-only file system, and the
//! old root is unmounted from this namespace.

use std::fs;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, chroot, pivot_root};

use super::namespaces::Namespaces;

/// Folders that exist on every system. The empty file system is mounted on one of them for a
/// moment.
const PLACES: [&str; 5] = ["/tmp", "/proc", "/dev", "/sys", "/run"];
/// One page and one inode, the root itself.
const NOTHING: &str = "size=4k,nr_inodes=1,mode=555";

pub fn apply(namespaces: &Namespaces) -> Result<(), String> {
    // Without one, this would change the machine's own mounts.
    namespaces.mount.as_ref().map_err(|_| "it requires a mount namespace".to_owned())?;
    replace().map_err(|error| format!("the kernel refuses it: {error}"))?;
    let left = fs::read_dir("/").map_err(|error| format!("cannot list the root: {error}"))?.count();
    if left == 0 { Ok(()) } else { Err(format!("{left} files are still visible")) }
}

fn replace() -> nix::Result<()> {
    keep_to_this_namespace()?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let mut mounted = Err(nix::Error::ENOENT);
    for mount_point in PLACES.map(Path::new) {
        mounted = mount(Some("tmpfs"), mount_point, Some("tmpfs"), flags, Some(NOTHING)).map(|()| mount_point);
        if mounted.is_ok() {
            break;
        }
    }
    pivot_to(mounted?)
}

/// Mount changes in this namespace do not propagate to others. Requires a private mount namespace.
pub fn keep_to_this_namespace() -> nix::Result<()> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
}

/// Makes `mount_point`, a mount, the root of this namespace, and unmounts the old root.
pub fn pivot_to(mount_point: &Path) -> nix::Result<()> {
    let none: Option<&str> = None;
    chdir(mount_point)?;
    // `pivot_root` stacks the old root on the new one, where it is unmounted. The kernel's initial
    // root file system cannot be moved; without capabilities there is no way back from a changed
    // root either.
    match pivot_root(".", ".") {
        Ok(()) => umount2(".", MntFlags::MNT_DETACH)?,
        Err(_) => {
            mount(Some("."), "/", none, MsFlags::MS_MOVE, none)?;
            chroot(".")?;
        }
    }
    chdir("/")
}

//! Mounts by the kernel's newer calls: each mount of the jail is opened first, restricted, and
//! attached when its target exists.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::libc;

use super::identity::Identity;
use crate::command::FilesystemView;

const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;

/// Devices that programs expect and that give no access to the machine.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// A detached mount: a part of this machine's files that is not attached yet.
pub struct Taken {
    pub inside: PathBuf,
    pub is_folder: bool,
    mount: OwnedFd,
}

/// All files of this machine that the jail shows.
pub struct Binds(pub Vec<Taken>);

impl Binds {
    /// Opens what the view names, with the privileges of this process.
    pub fn take(view: &FilesystemView, identity: Identity) -> Result<Self, String> {
        let mut taken = Vec::new();
        for bind in &view.read_only {
            let flags = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
            taken.push(Taken::new(&bind.outside, &bind.inside, flags, None)?);
        }
        let own_read_only = view.own_read_only.iter().map(|bind| (bind, libc::MOUNT_ATTR_RDONLY));
        for (bind, flags) in own_read_only.chain(view.writable.iter().map(|bind| (bind, 0))) {
            let flags = flags | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
            let mapping = identity.mapping(&bind.outside)?;
            taken.push(Taken::new(&bind.outside, &bind.inside, flags, mapping.as_ref())?);
        }
        for device in DEVICES.map(Path::new) {
            let flags = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
            taken.push(Taken::new(device, device, flags, None)?);
        }
        Ok(Self(taken))
    }
}

impl Taken {
    fn new(outside: &Path, inside: &Path, flags: u64, mapping: Option<&OwnedFd>) -> Result<Self, String> {
        let with_path = |error: &dyn std::fmt::Display| format!("{}: {error}", outside.display());
        let is_folder = fs::metadata(outside).map_err(|error| with_path(&error))?.is_dir();
        let mount = take_tree(outside).map_err(|error| with_path(&error))?;
        set_attributes(&mount, flags, mapping).map_err(|error| match mapping {
            Some(_) => format!("{}: its file system does not support id-mapped mounts: {error}", outside.display()),
            None => with_path(&error),
        })?;
        Ok(Self { inside: inside.to_owned(), is_folder, mount })
    }

    /// Attaches it at a path that exists.
    pub fn put(&self, target: &Path) -> io::Result<()> {
        let target = text(target)?;
        // SAFETY: the kernel reads two null-terminated strings that outlive the call.
        #[allow(unsafe_code)]
        let result = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                self.mount.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                target.as_ptr(),
                MOVE_MOUNT_F_EMPTY_PATH,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Creates a detached mount of `path` and of all mounts below it.
fn take_tree(path: &Path) -> io::Result<OwnedFd> {
    let path = text(path)?;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: the kernel reads a null-terminated string that outlives the call.
    #[allow(unsafe_code)]
    let result = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    let descriptor = i32::try_from(result).map_err(io::Error::other)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just created this descriptor, and nothing else owns it.
    #[allow(unsafe_code)]
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Adds these attributes to a mount and all mounts below it.
fn set_attributes(mount: &OwnedFd, flags: u64, mapping: Option<&OwnedFd>) -> io::Result<()> {
    if let Some(mapping) = mapping {
        // Only the folder itself: the file systems mounted below it might not support it.
        let userns_fd = u64::try_from(mapping.as_raw_fd()).map_err(io::Error::other)?;
        let mapped = libc::mount_attr { attr_set: libc::MOUNT_ATTR_IDMAP, attr_clr: 0, propagation: 0, userns_fd };
        change(mount.as_raw_fd(), c"", 0, &mapped)?;
    }
    let harmless = libc::mount_attr { attr_set: flags, attr_clr: 0, propagation: 0, userns_fd: 0 };
    change(mount.as_raw_fd(), c"", libc::AT_RECURSIVE, &harmless)
}

/// Makes the mount at `path` read-only.
pub fn make_read_only(path: &Path) -> io::Result<()> {
    let attr_set = libc::MOUNT_ATTR_RDONLY;
    let attributes = libc::mount_attr { attr_set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    change(libc::AT_FDCWD, &text(path)?, 0, &attributes)
}

fn change(at: i32, path: &std::ffi::CStr, flags: i32, attributes: &libc::mount_attr) -> io::Result<()> {
    let flags = if path.is_empty() { flags | libc::AT_EMPTY_PATH } else { flags };
    // SAFETY: the kernel reads a null-terminated string, and a structure of the given size.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

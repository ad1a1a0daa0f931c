//! The user of the program. Outside of the jail it is the caller's own user. If that is the
//! superuser, it is nobody, and the folders that it can write to are mapped to nobody: without
//! capabilities the superuser would still own the machine's files, and the limit on processes does
//! not apply to it. Inside the jail it is always user 1000.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::fcntl::{OFlag, openat};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Uid, fork, getegid, geteuid, setgroups, setresgid, setresuid};
use rustix::thread::CapabilitySet;

use super::mounts::Binds;
use crate::command::FilesystemView;
use crate::protections::{keeper, privileges};

/// The user and group inside the jail.
const INSIDE: u32 = 1000;
/// The conventional user and group that own no files.
const NOBODY: u32 = 65534;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The caller's own user.
    Same { user: Uid, group: Gid },
    /// The user nobody; the superuser's folders are mapped to it.
    Nobody,
    /// The superuser, if folders cannot be mapped to nobody.
    Superuser,
}

impl Identity {
    /// Chooses by the privileges of this process.
    pub fn choose() -> Self {
        if geteuid().is_root() && privileges::held_capabilities().contains(CapabilitySet::SYS_ADMIN) {
            return Self::Nobody;
        }
        Self::Same { user: geteuid(), group: getegid() }
    }

    /// Whether the process has privileges on this machine to use before it drops them.
    pub fn is_superuser(self) -> bool {
        matches!(self, Self::Nobody | Self::Superuser)
    }

    /// Opens the files of the view, if the process has the privileges to do so already. Folders
    /// that cannot be mapped to nobody are opened for the superuser.
    pub fn with_permissions(self, view: &FilesystemView, is_counted: bool) -> Result<(Self, Option<Binds>), String> {
        if !self.is_superuser() {
            return Ok((self, None));
        }
        let as_superuser = || Binds::take(view, Self::Superuser).map(|binds| (Self::Superuser, Some(binds)));
        match Binds::take(view, Self::Nobody) {
            Ok(binds) => Ok((Self::Nobody, Some(binds))),
            Err(_) if is_counted => as_superuser(),
            Err(reason) => Err(reason),
        }
        .map_err(|reason| format!("files: {reason}"))
    }

    /// The kernel does not apply the limit on processes to the superuser; a control group does.
    pub fn may_be_bounded(self, is_counted: bool) -> Result<(), String> {
        let is_root = match self {
            Self::Same { user, .. } => user.is_root(),
            Self::Nobody => false,
            Self::Superuser => true,
        };
        if is_root && !is_counted {
            return Err(
                "limit on processes: it applies to the superuser only with control groups, which are not available \
                        here; run this program as an ordinary user"
                    .into(),
            );
        }
        Ok(())
    }

    /// Maps the caller's user, in a user namespace that this process just created.
    pub fn map_ids(self) -> Result<(), String> {
        let Self::Same { user, group } = self else { return Ok(()) };
        let proc = File::open("/proc").map_err(|error| format!("/proc: {error}"))?;
        map_own(&proc, user, group)
    }

    /// Becomes that user permanently, in a user namespace without any other user.
    pub fn switch_to(self, processes: &File) -> Result<(), String> {
        let (user, group) = match self {
            Self::Same { .. } => return Ok(()),
            Self::Nobody => (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY)),
            Self::Superuser => (geteuid(), getegid()),
        };
        setgroups(&[])
            .and_then(|()| setresgid(group, group, group))
            .and_then(|()| setresuid(user, user, user))
            .map_err(|error| format!("the kernel refuses it: {error}"))?;
        // After a change of user the process's files in `/proc` belong to the superuser until it is
        // dumpable again.
        nix::sys::prctl::set_dumpable(true).map_err(|error| error.to_string())?;
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("user namespace: {error}"))?;
        map_own(processes, user, group)
    }

    /// A user namespace in which a mount shows the owner of `folder` as the program's user. `None`
    /// if they are the same.
    pub fn mapping(self, folder: &Path) -> Result<Option<OwnedFd>, String> {
        if self != Self::Nobody {
            return Ok(None);
        }
        let owner = fs::metadata(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        mapped_namespace(owner.uid(), owner.gid()).map(Some)
    }
}

/// Maps the only id that an ordinary user can map: its own.
fn map_own(processes: &File, user: Uid, group: Gid) -> Result<(), String> {
    let write = |file: &str, text: String| -> Result<(), String> {
        let with_file = |error: &dyn std::fmt::Display| format!("{file}: {error}");
        let path = format!("self/{file}");
        let opened = openat(processes, path.as_str(), OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty());
        File::from(opened.map_err(|error| with_file(&error))?)
            .write_all(text.as_bytes())
            .map_err(|error| with_file(&error))
    };
    // An ordinary user can map a group only after `setgroups` is denied.
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{INSIDE} {user} 1"))?;
    write("gid_map", format!("{INSIDE} {group} 1"))
}

/// Creates a user namespace that maps these ids of the disk to nobody. A process must be in it
/// while it is created.
fn mapped_namespace(user: u32, group: u32) -> Result<OwnedFd, String> {
    let (mut ours, mut theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    // SAFETY: this process has one thread, so the child finds no lock held by another.
    #[allow(unsafe_code)]
    let forked = unsafe { fork() }.map_err(|error| error.to_string())?;
    let child = match forked {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            drop(ours);
            if unshare(CloneFlags::CLONE_NEWUSER).is_ok() && theirs.write_all(&[0]).is_ok() {
                let _ = theirs.read(&mut [0]);
            }
            keeper::leave(0)
        }
    };
    drop(theirs);
    let of_child = |file: &str| format!("/proc/{child}/{file}");
    let made = (|| {
        ours.read_exact(&mut [0]).map_err(|_| "user namespace: the kernel refuses it".to_owned())?;
        for (file, id) in [("uid_map", user), ("gid_map", group)] {
            fs::write(of_child(file), format!("{id} {NOBODY} 1")).map_err(|error| format!("{file}: {error}"))?;
        }
        File::open(of_child("ns/user")).map_err(|error| error.to_string())
    })();
    let _ = kill(child, Signal::SIGKILL);
    let _ = waitpid(child, None);
    made.map(OwnedFd::from)
}

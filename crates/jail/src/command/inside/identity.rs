//! Who the program is. On this machine it is the caller's own user, or, if that is the superuser, nobody, to whom the
//! folders that it may write to appear to belong: the superuser without any capability would still own the machine's
//! files, and is not held by the limit on processes. In the jail it is always user 1000.

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
use crate::walls::{capabilities, keeper};

/// The user and group that the program sees itself as.
const INSIDE: u32 = 1000;
/// The user and the group that own nothing, by old custom.
const NOBODY: u32 = 65534;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The caller's own user, whoever that is.
    Same { user: Uid, group: Gid },
    /// Nobody, as whom the superuser's folders can be shown.
    Nobody,
    /// The superuser, where folders cannot be shown as nobody's.
    Superuser,
}

impl Identity {
    /// By the rights that this process has.
    pub fn choose() -> Self {
        if geteuid().is_root() && capabilities::held().contains(CapabilitySet::SYS_ADMIN) {
            return Self::Nobody;
        }
        Self::Same { user: geteuid(), group: getegid() }
    }

    /// Whether there are rights over this machine to be used before they are given away.
    pub fn is_superuser(self) -> bool {
        matches!(self, Self::Nobody | Self::Superuser)
    }

    /// Takes the files of the view, where there are rights to do so already. Folders that cannot be shown as nobody's are
    /// taken as they are, for the superuser.
    pub fn take_with_its_rights(
        self,
        view: &FilesystemView,
        is_counted: bool,
    ) -> Result<(Self, Option<Binds>), String> {
        if !self.is_superuser() {
            return Ok((self, None));
        }
        let as_they_are = || Binds::take(view, Self::Superuser).map(|binds| (Self::Superuser, Some(binds)));
        match Binds::take(view, Self::Nobody) {
            Ok(binds) => Ok((Self::Nobody, Some(binds))),
            Err(_) if is_counted => as_they_are(),
            Err(reason) => Err(reason),
        }
        .map_err(|reason| format!("files: {reason}"))
    }

    /// The kernel does not hold the superuser to a number of processes, a control group does.
    pub fn may_be_bounded(self, is_counted: bool) -> Result<(), String> {
        let is_root = match self {
            Self::Same { user, .. } => user.is_root(),
            Self::Nobody => false,
            Self::Superuser => true,
        };
        if is_root && !is_counted {
            return Err(
                "a bound on processes: the superuser is held to one by control groups alone, and there are none \
                        here; run this program as an ordinary user"
                    .into(),
            );
        }
        Ok(())
    }

    /// For a process in a user namespace that it just made: it and the caller's user are one.
    pub fn map_ids(self) -> Result<(), String> {
        let Self::Same { user, group } = self else { return Ok(()) };
        let proc = File::open("/proc").map_err(|error| format!("/proc: {error}"))?;
        map_own(&proc, user, group)
    }

    /// Becomes that user for good, in a user namespace in which nobody else is.
    pub fn become_it(self, processes: &File) -> Result<(), String> {
        let (user, group) = match self {
            Self::Same { .. } => return Ok(()),
            Self::Nobody => (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY)),
            Self::Superuser => (geteuid(), getegid()),
        };
        setgroups(&[])
            .and_then(|()| setresgid(group, group, group))
            .and_then(|()| setresuid(user, user, user))
            .map_err(|error| format!("the kernel refuses it: {error}"))?;
        // After a change of user a process's own files are the superuser's, until it says that it has no secrets.
        nix::sys::prctl::set_dumpable(true).map_err(|error| error.to_string())?;
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("user namespace: {error}"))?;
        map_own(processes, user, group)
    }

    /// A user namespace by which a mount shows the owner of `folder` as the user that the program will be; `None` where
    /// they are the same.
    pub fn mapping(self, folder: &Path) -> Result<Option<OwnedFd>, String> {
        if self != Self::Nobody {
            return Ok(None);
        }
        let owner = fs::metadata(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        mapped_namespace(owner.uid(), owner.gid()).map(Some)
    }
}

/// Maps the one id that an ordinary user may map: its own.
fn map_own(processes: &File, user: Uid, group: Gid) -> Result<(), String> {
    let write = |file: &str, text: String| -> Result<(), String> {
        let told = |error: &dyn std::fmt::Display| format!("{file}: {error}");
        let path = format!("self/{file}");
        let opened = openat(processes, path.as_str(), OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty());
        File::from(opened.map_err(|error| told(&error))?).write_all(text.as_bytes()).map_err(|error| told(&error))
    };
    // The superuser of the namespace may keep groups, an ordinary user must give up changing them.
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{INSIDE} {user} 1"))?;
    write("gid_map", format!("{INSIDE} {group} 1"))
}

/// Makes a user namespace in which these ids of the disk are nobody's. A process must be in it for a moment.
fn mapped_namespace(user: u32, group: u32) -> Result<OwnedFd, String> {
    let (mut ours, mut theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    // SAFETY: this process has one thread, so the child finds no lock that somebody else held.
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

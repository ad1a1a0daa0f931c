use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};
use tokio::process::Command;

use crate::PostgresError;

/// The users that root switches to. The first one that works is used. Postgres requires that its
/// user is listed in passwd, and a container often has no ordinary user.
const OTHERS: [&str; 2] = ["postgres", "nobody"];

/// The user that Postgres runs as. Postgres refuses to run as root, so root has to switch without
/// moving the data.
#[derive(Debug, Clone)]
pub(crate) enum Account {
    /// The user of this process.
    Own,
    /// Root, mapped to this user in a user namespace. The files stay owned by root.
    Namespace { uid: u32, gid: u32 },
    /// Root without user namespaces: another user, who becomes the owner of the cluster. It keeps
    /// the capability `dac_override`, to reach folders below root's home.
    Other { uid: u32, gid: u32 },
}

impl Account {
    pub(crate) async fn choose() -> Result<Self, PostgresError> {
        if !Uid::effective().is_root() {
            return Ok(Self::Own);
        }
        let missing = "neither the user `postgres` nor `nobody` exists";
        let (mut namespace, mut user) = (missing.to_owned(), missing.to_owned());
        for found in OTHERS.iter().filter_map(|name| User::from_name(name).ok()?) {
            let (uid, gid) = (found.uid.as_raw(), found.gid.as_raw());
            match (Self::Namespace { uid, gid }).works().await {
                Ok(()) => return Ok(Self::Namespace { uid, gid }),
                Err(reason) => namespace = reason,
            }
            match (Self::Other { uid, gid }).works().await {
                Ok(()) => return Ok(Self::Other { uid, gid }),
                Err(reason) => user = reason,
            }
        }
        Err(PostgresError::AsRoot { namespace, user })
    }

    /// The uid and gid that must own the cluster's files.
    pub(crate) fn owner(&self) -> (u32, u32) {
        match self {
            Self::Own | Self::Namespace { .. } => (Uid::effective().as_raw(), nix::unistd::Gid::effective().as_raw()),
            Self::Other { uid, gid } => (*uid, *gid),
        }
    }

    /// A command that runs `program` as this account. The helpers exec without forking, so the
    /// child's pid is the program's.
    pub(crate) fn command(&self, program: &Path, dies_with_us: bool) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        let mut setpriv: Vec<OsString> = Vec::new();
        // The kernel sends the signal when the *thread* that started the child exits. The
        // supervisor's thread lives as long as its server.
        if dies_with_us && on_path("setpriv") {
            setpriv.extend(["--pdeathsig".into(), "INT".into()]);
        }
        match self {
            Self::Own => {}
            Self::Namespace { uid, gid } => {
                words.extend(["unshare".into(), "--user".into()]);
                words.extend([format!("--map-user={uid}").into(), format!("--map-group={gid}").into(), "--".into()]);
            }
            Self::Other { uid, gid } => setpriv.extend([
                format!("--reuid={uid}").into(),
                format!("--regid={gid}").into(),
                "--clear-groups".into(),
                "--inh-caps=+dac_override".into(),
                "--ambient-caps=+dac_override".into(),
                // Otherwise access(2) ignores the capability.
                "--securebits=+no_setuid_fixup".into(),
            ]),
        }
        if !setpriv.is_empty() {
            words.push("setpriv".into());
            words.append(&mut setpriv);
            words.push("--".into());
        }
        words.push(program.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    async fn works(&self) -> Result<(), String> {
        let output = self.command(&PathBuf::from("true"), false).output().await;
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The uids that can own a cluster that this user created with this program.
pub(crate) fn possible_owners() -> Vec<u32> {
    let mut owners = vec![Uid::effective().as_raw()];
    if Uid::effective().is_root() {
        owners.extend(OTHERS.iter().filter_map(|name| Some(User::from_name(name).ok()??.uid.as_raw())));
    }
    owners
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

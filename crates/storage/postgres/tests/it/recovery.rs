use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcrt_postgres::State;
use sqlx::Connection;

use crate::{connect, pid, start};

#[tokio::test]
async fn a_killed_server_restarts_with_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    let mut connection = connect(&postgres).await;
    sqlx::query("CREATE TABLE kept AS SELECT 7 AS number").execute(&mut connection).await.unwrap();
    kill(Pid::from_raw(pid(&postgres)), Signal::SIGKILL).unwrap();

    let mut state = postgres.state();
    state.wait_for(|state| matches!(state, State::Running { starts: 2.., .. })).await.unwrap();
    let number: i32 =
        sqlx::query_scalar("SELECT number FROM kept").fetch_one(&mut connect(&postgres).await).await.unwrap();
    assert_eq!(number, 7);
    postgres.stop().await;
}

#[tokio::test]
async fn a_server_whose_owner_was_killed_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    let (program, sockets) = (postgres.bin_dir().join("postgres"), postgres.socket_dir().to_owned());
    postgres.stop().await;
    let cluster = folder.path().canonicalize().unwrap().join("postgres");
    let mut left = leave_behind(&program, &cluster, &sockets);
    wait_until_serving(&cluster, &mut left).await;
    // Reaped at once, as a process without a parent would be.
    let reaper = std::thread::spawn(move || left.wait().unwrap());

    let steps = std::sync::Mutex::new(Vec::new());
    let options = crate::options(folder.path());
    let postgres = rcrt_postgres::start(options, &|step| steps.lock().unwrap().push(step.to_owned())).await.unwrap();
    connect(&postgres).await.ping().await.unwrap();
    assert!(reaper.join().unwrap().success(), "it was asked to stop, not killed");
    assert!(steps.lock().unwrap()[0].contains("of an earlier run"), "{steps:?}");
    postgres.stop().await;
}

/// In a container whose first process does not reap, a killed server stays a zombie.
#[tokio::test]
async fn a_killed_server_that_is_not_reaped_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    let (program, sockets) = (postgres.bin_dir().join("postgres"), postgres.socket_dir().to_owned());
    postgres.stop().await;
    let cluster = folder.path().canonicalize().unwrap().join("postgres");
    let mut left = leave_behind(&program, &cluster, &sockets);
    wait_until_serving(&cluster, &mut left).await;
    left.kill().unwrap();
    wait_until_zombie(left.id()).await;
    assert!(cluster.join("postmaster.pid").exists() && sockets.join(".s.PGSQL.5432.lock").exists());

    let postgres = start(folder.path()).await;
    connect(&postgres).await.ping().await.unwrap();
    assert!(is_zombie(left.id()), "it was not reaped meanwhile");
    postgres.stop().await;
    left.wait().unwrap();
}

#[tokio::test]
async fn a_surviving_process_of_a_killed_server_is_awaited() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    let (program, sockets) = (postgres.bin_dir().join("postgres"), postgres.socket_dir().to_owned());
    postgres.stop().await;
    let cluster = folder.path().canonicalize().unwrap().join("postgres");
    let mut left = leave_behind(&program, &cluster, &sockets);
    wait_until_serving(&cluster, &mut left).await;
    // A stopped process does not notice that its postmaster was killed.
    let stopped = children(left.id()).pop().unwrap();
    kill(stopped, Signal::SIGSTOP).unwrap();
    left.kill().unwrap();
    wait_until_zombie(left.id()).await;

    let was_waited_for = AtomicBool::new(false);
    let on_step = |step: &str| {
        if step.contains("of a killed Postgres") {
            was_waited_for.store(true, Ordering::Relaxed);
            kill(stopped, Signal::SIGCONT).unwrap();
        }
    };
    let postgres = rcrt_postgres::start(crate::options(folder.path()), &on_step).await.unwrap();
    assert!(was_waited_for.load(Ordering::Relaxed));
    connect(&postgres).await.ping().await.unwrap();
    postgres.stop().await;
    left.wait().unwrap();
}

#[tokio::test]
async fn a_stale_pid_file_with_the_pid_of_another_process_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    let sockets = postgres.socket_dir().to_owned();
    postgres.stop().await;
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    let pid_file = folder.path().join("postgres/postmaster.pid");
    let stale = format!("{}\n/elsewhere\n1\n5432\n/elsewhere\n\n  1  1\nready   \n", bystander.id());
    std::fs::write(&pid_file, &stale).unwrap();
    std::fs::write(sockets.join(".s.PGSQL.5432.lock"), &stale).unwrap();

    let postgres = start(folder.path()).await;
    connect(&postgres).await.ping().await.unwrap();
    postgres.stop().await;
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander was left alone");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_failed_start_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    start(folder.path()).await.stop().await;
    let settings = folder.path().join("postgres/postgresql.conf");
    std::fs::write(&settings, "max_connections = many\n").unwrap();
    let error = rcrt_postgres::start(crate::options(folder.path()), &|_| {}).await.unwrap_err().to_string();
    assert!(error.contains("max_connections"), "{error}");
}

/// Starts a server as a killed owner leaves it, with the folder's lock released.
fn leave_behind(program: &Path, cluster: &Path, sockets: &Path) -> Child {
    let owner = cluster.metadata().unwrap();
    let words: Vec<String> = match (nix::unistd::Uid::effective().is_root(), owner.uid()) {
        (false, _) => Vec::new(),
        (true, 0) => ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"].map(String::from).into(),
        (true, uid) => vec![
            "setpriv".to_owned(),
            format!("--reuid={uid}"),
            format!("--regid={}", owner.gid()),
            "--clear-groups".to_owned(),
            "--inh-caps=+dac_override".to_owned(),
            "--ambient-caps=+dac_override".to_owned(),
            "--securebits=+no_setuid_fixup".to_owned(),
            "--".to_owned(),
        ],
    };
    let mut words = words.into_iter().map(OsString::from).chain([program.into()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command.arg("-D").arg(cluster).args(["-c", "listen_addresses=", "-c"]);
    command.arg(format!("unix_socket_directories={}", sockets.display()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

async fn wait_until_serving(cluster: &Path, server: &mut Child) {
    let pid = server.id();
    let serving = || {
        std::fs::read_to_string(cluster.join("postmaster.pid"))
            .is_ok_and(|text| text.starts_with(&format!("{pid}\n")) && text.contains("\nready"))
    };
    while !serving() {
        assert_eq!(server.try_wait().unwrap(), None, "it exited");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().rsplit_once(") ").unwrap().1.starts_with('Z')
}

async fn wait_until_zombie(pid: u32) {
    while !is_zombie(pid) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn children(pid: u32) -> Vec<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}

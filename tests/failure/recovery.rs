//! The steps of docs/operate/point-in-time-recovery.md.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use futures::StreamExt;
use rcrt_breadcrumb::{EventNumber, Events, NewBreadcrumb, Records, StoreError, SubscribeOptions};
use rcrt_postgres::{DATABASE, SUPERUSER};
use sqlx::{Connection, PgConnection};

use crate::process::{Installation, Rcrt};

const RECOVERY: [&str; 4] = ["restore_command", "recovery_target_time", "recovery_target_action", "hot_standby"];

/// The embedded Postgres of an installation.
struct Embedded<'i> {
    installation: &'i Installation,
    cluster: PathBuf,
}

impl Embedded<'_> {
    fn start_server(&self) -> Rcrt {
        let listen = self.installation.listen.to_string();
        self.installation.start_with(&["server", "--listen", &listen], &[("RCRT_EMBEDDINGS", "off")])
    }

    fn add(&self, settings: &str) {
        let file = self.cluster.join("postgresql.conf");
        fs::OpenOptions::new().append(true).open(file).unwrap().write_all(settings.as_bytes()).unwrap();
    }

    fn remove_recovery_settings(&self) {
        let file = self.cluster.join("postgresql.conf");
        let text = fs::read_to_string(&file).unwrap();
        let is_kept = |line: &&str| !RECOVERY.iter().any(|name| line.starts_with(name));
        fs::write(&file, text.split_inclusive('\n').filter(is_kept).collect::<String>()).unwrap();
    }

    /// The running server's process id and the folder of its socket.
    fn running(&self) -> (u32, String) {
        let file = fs::read_to_string(self.cluster.join("postmaster.pid")).unwrap();
        let lines: Vec<&str> = file.lines().map(str::trim).collect();
        (lines[0].parse().unwrap(), lines[4].to_owned())
    }

    fn base_backup(&self, to: &Path) {
        let (pid, socket) = self.running();
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap().with_file_name("pg_basebackup");
        let mut command = Command::new(program);
        command.args(["--host", &socket, "--username", SUPERUSER, "--checkpoint", "fast", "--pgdata"]).arg(to);
        succeeds(&mut command);
    }

    /// The time of the database.
    async fn now(&self) -> String {
        let socket = self.running().1.replace('/', "%2F");
        let url = format!("postgres://{SUPERUSER}@localhost/{DATABASE}?host={socket}&sslmode=disable");
        let mut connection = PgConnection::connect(&url).await.unwrap();
        sqlx::query_scalar("SELECT clock_timestamp()::text").fetch_one(&mut connection).await.unwrap()
    }
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn note(title: &str) -> NewBreadcrumb {
    NewBreadcrumb { title: title.into(), ..NewBreadcrumb::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_postgres_goes_back_to_a_moment() {
    let (installation, backups) = (Installation::new(), tempfile::tempdir().unwrap());
    let wal = backups.path().join("wal");
    fs::create_dir(&wal).unwrap();
    // If this user is root, Postgres runs as another one.
    for folder in [backups.path(), &wal] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let data = installation.data.path();
    let embedded = Embedded { installation: &installation, cluster: data.join("postgres") };
    let server = embedded.start_server();
    installation.client().await;
    assert_eq!(server.stop().await, Some(0), "{}", installation.log());

    let wal = wal.display();
    embedded.add(&format!(
        "wal_level = replica\nmax_wal_senders = 3\narchive_mode = on\narchive_timeout = 60\n\
         archive_command = 'test ! -f {wal}/%f && cp %p {wal}/%f'\n"
    ));
    let server = embedded.start_server();
    let store = installation.client().await;
    let base = backups.path().join("base");
    embedded.base_backup(&base);
    let kept = store.create(note("Before the mistake"), None).await.unwrap().id;
    let moment = embedded.now().await;
    let mistake = store.create(note("A mistake"), None).await.unwrap().id;
    let mut events = store.events(Some(EventNumber(0))).await.unwrap();
    let lost = loop {
        let event = events.next().await.unwrap().unwrap();
        if event.breadcrumb_id == mistake {
            break event.number;
        }
    };
    drop(events);
    assert_eq!(server.stop().await, Some(0), "{}", installation.log());

    fs::rename(&embedded.cluster, data.join("postgres.broken")).unwrap();
    succeeds(Command::new("cp").arg("-a").arg(&base).arg(&embedded.cluster));
    fs::set_permissions(&embedded.cluster, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(embedded.cluster.join("recovery.signal"), "").unwrap();
    embedded.add(&format!(
        "restore_command = 'cp {wal}/%f %p'\nrecovery_target_time = '{moment}'\nrecovery_target_action = promote\n\
         hot_standby = off\n"
    ));
    let server = embedded.start_server();
    let store = installation.client().await;
    assert_eq!(store.get(kept).await.unwrap().title, "Before the mistake");
    let found = store.get(mistake).await;
    assert!(matches!(found, Err(StoreError::NotFound { .. })), "{found:?}");
    assert_eq!(server.stop().await, Some(0), "{}", installation.log());

    let file = backups.path().join("recovered.rcrt");
    for arguments in [&["backup"][..], &["restore", "--replace"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rcrt"));
        command.args(arguments).arg(&file).env_remove("DATABASE_URL").env("RCRT_DATA", data);
        succeeds(&mut command);
    }
    embedded.remove_recovery_settings();
    let server = embedded.start_server();
    let store = installation.client().await;
    assert_eq!(store.get(kept).await.unwrap().title, "Before the mistake");
    let Err(refused) = store.subscribe(SubscribeOptions::all(Some(lost))).await else {
        panic!("a subscriber that saw what is lost continues");
    };
    assert!(refused.to_string().contains("an event that a restore has undone"), "{refused}");
    assert_eq!(server.stop().await, Some(0), "{}", installation.log());
}

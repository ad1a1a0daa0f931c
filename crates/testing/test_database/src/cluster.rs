//! New Postgres clusters: the one of this process's tests, and those of the systems that they
//! start.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use rcrt_postgres::{Postgres, PostgresOptions};
use tempfile::TempDir;

use crate::cleanup;

static TEMPLATE: OnceLock<TempDir> = OnceLock::new();

/// Puts a new Postgres cluster into a data folder that has none, if `rcrt` with these arguments
/// would. It is a copy: `initdb` takes two seconds of processor time, and this a tenth of one.
pub fn put_cluster_for(arguments: &[&str], data_dir: &Path) {
    let cluster = data_dir.join("postgres");
    if arguments[0] != "up" || arguments.contains(&"--database-url") || cluster.exists() {
        return;
    }
    let template = TEMPLATE.get_or_init(|| std::thread::spawn(make).join().expect("a new cluster"));
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).expect("a data folder");
    let copied = Command::new("cp").arg("-a").arg(template.path().join("postgres")).arg(&cluster).status();
    assert!(copied.is_ok_and(|status| status.success()), "the cluster cannot be copied to {}", cluster.display());
}

fn make() -> TempDir {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (postgres, folder) = start().await;
        postgres.stop().await;
        folder
    })
}

/// A running Postgres with a new cluster in a temporary folder.
pub(crate) async fn start() -> (Postgres, TempDir) {
    // Short, so that the socket's path is.
    let folder = tempfile::Builder::new().prefix("rcrt-test-").tempdir().expect("a temporary folder");
    cleanup::when_this_process_ends(folder.path());
    let options = PostgresOptions {
        data_dir: folder.path().to_owned(),
        cache_dir: rcrt_postgres::default_cache_dir(),
        durable: false,
    };
    let postgres = rcrt_postgres::start(options, &|_| {}).await.expect("a private Postgres for the tests");
    (postgres, folder)
}

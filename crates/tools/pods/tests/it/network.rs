//! Programs run only if their pods reach no network, or if the operator accepts that.

use rcrt_breadcrumb::ErrorCode;
use rcrt_executors::Executor;
use rcrt_test_programs::failed;

use crate::fixture::{Fixture, cluster, is_named, settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_comes_before_the_first_program() {
    let Some(fixture) = Fixture::new().await else { return };
    assert_eq!(fixture.python("print(1)").await.unwrap(), "1\n");
    let created = fixture.cluster.created();
    assert!(is_named(&created[0], "rcrt-probe-") && is_named(&created[1], "rcrt-script-"), "{created:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_program_runs_in_pods_that_reach_the_network() {
    let Some(cluster) = cluster().await else { return };
    cluster.open_network();
    let fixture = Fixture::with(&cluster, settings(&cluster)).await;
    let failure = failed(fixture.python("print(1)").await, ErrorCode::PermissionDenied);
    let port = cluster.url.port().unwrap();
    assert!(failure.message.contains(&format!("127.0.0.1 port {port} (TCP)")), "{failure}");
    assert!(failure.message.contains("--accept-open-network"), "{failure}");
    let definition = rcrt_test_tenant::seeded("execute_python_script");
    assert_eq!(fixture.programs.executor.missing_requirements(&definition).len(), 1);
    assert!(fixture.created().is_empty());
}

/// The wrapper closes what the cluster leaves open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accepted_open_network_is_closed_by_the_wrapper() {
    let Some(cluster) = cluster().await else { return };
    cluster.open_network();
    let mut accepting = settings(&cluster);
    accepting.accept_open_network = true;
    let fixture = Fixture::with(&cluster, accepting).await;
    let port = cluster.url.port().unwrap();
    let script = format!(
        "import errno, socket, subprocess, sys\n\
         ask = \"import socket; socket.create_connection(('127.0.0.1', {port}))\"\n\
         print(subprocess.run([sys.executable, '-c', ask], stderr=subprocess.DEVNULL).returncode)\n\
         try: socket.create_connection(('127.0.0.1', {port}))\n\
         except OSError as error: print(errno.errorcode[error.errno])\n\
         print(len(socket.socketpair()))"
    );
    assert_eq!(fixture.python(&script).await.unwrap(), "1\nEAFNOSUPPORT\n2\n");
}

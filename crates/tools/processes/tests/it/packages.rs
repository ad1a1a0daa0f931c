//! Packages for scripts, from an index on this machine that pip is configured for. Each set is
//! installed once, with the network for that step only, and a failure leaves nothing behind.
//!
//! pip reads its settings from the environment of the whole process. So the parts run in separate
//! processes, with a settings file that names their index.

mod index;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcrt_breadcrumb::ErrorCode;
use rcrt_executors::Executor;
use rcrt_jail::command::Jail;
use rcrt_processes::DiskBounds;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{ROLE, Tools, failed, helper, limited, needs_the_jail, until};
use index::{Index, LARGE, SECRET};

/// The variable with the path of the parts' pip settings.
const SETTINGS: &str = "PIP_CONFIG_FILE";

#[tokio::test]
async fn packages_come_from_the_configured_index() {
    needs_the_jail!();
    let folder = tempfile::tempdir().unwrap();
    let mut parts = tokio::process::Command::new(std::env::current_exe().unwrap());
    parts.args(["packages::part_", "--ignored", "--test-threads=4"]).env(ROLE, "1");
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("PIP_") || name.to_lowercase().ends_with("_proxy"))
    {
        parts.env_remove(name);
    }
    parts.env(SETTINGS, folder.path().join("pip.conf"));
    let output = parts.output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("12 passed"), "{printed}");
}

/// The tools with pip configured for the index; `None` if this is not a process for it.
async fn with_index() -> Option<(Tools, &'static Index)> {
    with_index_and_disk(DiskBounds { min_free: 0, ..DiskBounds::default() }).await
}

async fn with_index_and_disk(disk: DiskBounds) -> Option<(Tools, &'static Index)> {
    std::env::var_os(ROLE)?;
    let index = Index::shared(&PathBuf::from(std::env::var_os(SETTINGS)?));
    Some((Tools::with_disk(Jail::open(helper()).await, &[], disk).await, index))
}

fn with_packages(script: &str, packages: &[&str]) -> Value {
    json!({"script": script, "pip_packages": packages})
}

fn left(tools: &Tools) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(tools.folders.path().join("data/python")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

const TOOL: &str = "execute_python_script";

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_a_set_is_installed_once() {
    let Some((tools, index)) = with_index().await else { return };
    let script = "import once_a, once_b\nprint(once_a.NAME, once_b.NAME)";
    let first = tools.execute(tools.call(TOOL, with_packages(script, &["once_a", "Once.B>=1"]))).await;
    assert_eq!(first.result.unwrap(), "once_a once_b\n");
    assert_eq!(first.metadata["packages"], json!({"set": ["once-a", "once-b>=1"], "installed_now": true}));
    let asked = index.asked("once_a");
    assert!(asked > 0);
    // The same set in another order and spelling is not installed again.
    let again = tools.execute(tools.call(TOOL, with_packages(script, &["once-b >= 1", "ONCE_A", "once_a"]))).await;
    assert_eq!(again.result.unwrap(), "once_a once_b\n");
    assert_eq!(again.metadata["packages"]["installed_now"], false);
    assert_eq!(index.asked("once_a"), asked);
    assert_eq!(left(&tools).len(), 1);
    // A script without packages sees none.
    let none = failed(tools.python("import once_a").await, ErrorCode::ExecutionFailed);
    assert!(none.message.contains("ModuleNotFoundError"), "{none}");
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_the_network_is_there_for_the_installation_alone() {
    let Some((tools, index)) = with_index().await else { return };
    let port = index.port;
    let script = format!(
        "import netless, socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 20)\nexcept OSError as e: print(type(e).__name__)"
    );
    assert_eq!(tools.result(TOOL, with_packages(&script, &["netless"])).await.unwrap(), "ConnectionRefusedError\n");
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_an_environment_is_only_read() {
    let Some((tools, _)) = with_index().await else { return };
    let script = "import os, kept\nfor path in (kept.__file__, os.path.dirname(kept.__file__) + '/new', '/run/python/bin/python'):\n    try: open(path, 'a'); print('open')\n    except OSError as e: print(type(e).__name__)";
    let printed = tools.result(TOOL, with_packages(script, &["kept"])).await.unwrap();
    assert!(!printed.as_str().unwrap().contains("open"), "{printed}");
    assert_eq!(printed.as_str().unwrap().lines().count(), 3);
    assert_eq!(tools.result(TOOL, with_packages("import kept; print(kept.NAME)", &["kept"])).await.unwrap(), "kept\n");
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_a_failed_installation_leaves_nothing() {
    let Some((tools, index)) = with_index().await else { return };
    for (package, words) in
        [("no_such_package", "no matching distribution"), ("broken", ""), ("source_only", "no matching distribution")]
    {
        let failure =
            failed(tools.result(TOOL, with_packages("print(1)", &[package])).await, ErrorCode::ExecutionFailed);
        let printed = format!("{} cannot be installed", package.replace('_', "-"));
        assert!(failure.message.starts_with(&printed), "{failure}");
        assert!(failure.message.to_lowercase().contains(words), "{failure}");
        assert!(!format!("{failure} {:?}", failure.details).contains(SECRET), "{failure}");
        until("nothing left", || left(&tools).is_empty()).await;
    }
    // No code of a source package was run, or even fetched, with the network.
    assert_eq!(index.asked("source_only-1.0.tar.gz"), 0);
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_two_calls_install_once() {
    let Some((tools, index)) = with_index().await else { return };
    let call = || tools.result(TOOL, with_packages("import shared; print(shared.NAME)", &["shared"]));
    let (one, two, three) = tokio::join!(call(), call(), call());
    assert_eq!([one.unwrap(), two.unwrap(), three.unwrap()], ["shared\n"; 3]);
    assert_eq!(index.asked("shared-1.0-py3-none-any.whl"), 1);
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_a_cancelled_installation_leaves_nothing() {
    let Some((tools, index)) = with_index().await else { return };
    let cancel = CancellationToken::new();
    let call = tools.call(TOOL, with_packages("print(1)", &["never_there"]));
    let cancelling = async {
        until("the installer at the index", || index.asked("never_there") > 0).await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(tools.executor.execute(call, cancel.clone()), cancelling);
    failed(output.result, ErrorCode::Cancelled);
    tools.jail.ended().await;
    until("nothing left", || left(&tools).is_empty()).await;
    // The call's time limit applies to the installation too.
    let short =
        limited(tools.call(TOOL, with_packages("print(1)", &["never_there"])), |limits| limits.timeout_ms = 3_000);
    failed(tools.execute(short).await.result, ErrorCode::Timeout);
    tools.jail.ended().await;
    until("nothing left", || left(&tools).is_empty()).await;
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_an_invalid_requirement_never_reaches_pip() {
    let Some((tools, _)) = with_index().await else { return };
    for package in [
        "-r/etc/passwd",
        "--index-url=http://127.0.0.1:1",
        "git+https://example.com/x",
        "./x.whl",
        "x @ file:///etc",
        "",
    ] {
        let failure =
            failed(tools.result(TOOL, with_packages("print(1)", &[package])).await, ErrorCode::InvalidArguments);
        assert!(failure.message.starts_with("pip_packages: "), "{failure}");
    }
    assert_eq!(left(&tools), Vec::<String>::new());
}

const MB: u64 = 1_000_000;

/// An environment without packages is smaller than this.
const BARE: u64 = 30 * MB;

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_a_set_that_is_too_large_is_not_installed() {
    // One is terminated by the file size limit, one by the total size of its files.
    for (package, bound) in [("large", LARGE as u64 / 2), ("many", BARE + LARGE as u64 / 2)] {
        let disk = DiskBounds { packages_set: bound, min_free: 0, ..DiskBounds::default() };
        let Some((tools, _)) = with_index_and_disk(disk).await else { return };
        let failure =
            failed(tools.result(TOOL, with_packages("print(1)", &[package])).await, ErrorCode::ResourceExhausted);
        assert!(failure.message.contains("--packages-set-mb"), "{failure}");
        assert_eq!(failure.details.unwrap(), json!({"limit": "packages_set_bytes", "allowed": bound}));
        tools.jail.ended().await;
        until("nothing left", || left(&tools).is_empty()).await;
    }
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_an_unused_set_is_deleted_for_another() {
    let disk = DiskBounds { packages_total: BARE + LARGE as u64 * 3 / 2, min_free: 0, ..DiskBounds::default() };
    let Some((tools, index)) = with_index_and_disk(disk).await else { return };
    let first = || tools.result(TOOL, with_packages("import large; print(len(large.__file__) > 0)", &["large"]));
    assert_eq!(first().await.unwrap(), "True\n");
    let asked = index.asked("large-1.0-py3-none-any.whl");
    assert_eq!(tools.result(TOOL, with_packages("import many.a0; print(2)", &["many"])).await.unwrap(), "2\n");
    assert_eq!(left(&tools).len(), 1);
    // It is installed again when it is needed again.
    assert_eq!(first().await.unwrap(), "True\n");
    assert_eq!(index.asked("large-1.0-py3-none-any.whl"), asked + 1);
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_a_disk_that_is_full_is_not_filled_further() {
    let disk = DiskBounds { min_free: u64::MAX, ..DiskBounds::default() };
    let Some((tools, index)) = with_index_and_disk(disk).await else { return };
    let before = index.asked("kept");
    let failure = failed(tools.result(TOOL, with_packages("print(1)", &["kept"])).await, ErrorCode::ResourceExhausted);
    assert!(failure.message.contains("--min-free-disk-mb") && failure.is_retryable, "{failure}");
    assert_eq!(index.asked("kept"), before);
    until("nothing left", || left(&tools).is_empty()).await;
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_environments_that_others_can_change_are_not_run() {
    let Some((tools, _)) = with_index().await else { return };
    assert_eq!(tools.result(TOOL, with_packages("print(1)", &["plain"])).await.unwrap(), "1\n");
    let folder = tools.folders.path().join("data/python");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let failure = failed(tools.result(TOOL, with_packages("print(1)", &["plain"])).await, ErrorCode::ExecutionFailed);
    assert!(failure.message.contains("other users can write to"), "{failure}");
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn part_scripts_see_nothing_of_pips_settings() {
    let Some((tools, _)) = with_index().await else { return };
    // The text to find is reversed, so that the search does not find itself.
    let script = "import os, plain\nwanted = os.environ['RCRT_INPUT'][::-1]\nfiles, found = 0, int(wanted in str(os.environ))\nfor top in ('/run', '/etc', '/tmp', '/work'):\n    for base, _, names in os.walk(top):\n        for name in names:\n            try: found += wanted in open(os.path.join(base, name), errors='replace').read()\n            except OSError: continue\n            files += 1\nprint(files > 10, found)";
    let mut input = with_packages(script, &["plain"]);
    input["input_data"] = SECRET.chars().rev().collect::<String>().into();
    input["keep_files"] = true.into();
    // Some of the files are large.
    let call = limited(tools.call(TOOL, input), |limits| limits.memory_mb = 1024);
    assert_eq!(tools.execute(call).await.result.unwrap(), "True 0\n");
}

//! If a restriction is not available, nothing runs: the tools wait and say what is missing.

use rcrt_breadcrumb::{ErrorCode, Implementation};
use rcrt_executors::{BuiltinExecutor, Executor};
use rcrt_jail::command::{Helper, Jail};
use rcrt_processes::{DiskBounds, Settings};
use rcrt_test_tenant::Tenant;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fixture::{failed, helper, needs_the_jail};

/// The helper on a kernel that refuses these system calls.
fn behind(calls: &str) -> Helper {
    Helper { arguments: vec!["behind".into(), calls.into()], ..helper() }
}

#[tokio::test]
async fn each_restriction_is_required() {
    needs_the_jail!();
    let mut cases = vec![
        ("unshare", "namespace"),
        ("mount", "files: "),
        ("open_tree", "files: "),
        ("mount_setattr", "files: "),
        ("pivot_root,chroot", "files: "),
        ("seccomp", "seccomp: "),
        ("close_range", "no inherited descriptors: "),
        ("capset", "no capabilities: "),
        ("prlimit", "resource limits: "),
    ];
    if nix::unistd::geteuid().is_root() {
        cases.push(("setresuid", "ordinary user: "));
    }
    for (calls, wall) in cases {
        let jail = Jail::open(behind(calls)).await;
        let reason = jail.refusal().unwrap_or_else(|| panic!("a jail without {calls} was taken for one"));
        assert!(reason.contains(wall), "{calls}: {reason}");
    }
    // A second restriction on files behind a first one is not required.
    assert_eq!(Jail::open(behind("landlock")).await.refusal(), None);
}

#[tokio::test]
async fn invalid_helper_is_reported() {
    let with = |program: &str| Jail::open(Helper { program: program.into(), arguments: Vec::new() });
    let reason = with("/bin/true").await.refusal().unwrap().to_owned();
    assert!(reason.contains("exited unexpectedly"), "{reason}");
    let reason = with("/no/such/program").await.refusal().unwrap().to_owned();
    assert!(reason.contains("cannot be started"), "{reason}");
}

#[tokio::test]
async fn the_tools_wait_and_run_nothing() {
    let folders = tempfile::tempdir().unwrap();
    let settings = Settings {
        helper: behind("unshare"),
        workdir: folders.path().join("work"),
        environments: folders.path().join("python"),
        network: [].into(),
        disk: DiskBounds::default(),
    };
    let executor = BuiltinExecutor::new().with(rcrt_processes::tools(settings).await);
    let tenant = Tenant::new().await;
    for (tool, input) in
        [("bash", json!({"command": "touch x"})), ("execute_python_script", json!({"script": "open('x', 'w')"}))]
    {
        let definition = rcrt_test_tenant::seeded(tool);
        let waits = executor.missing_requirements(&definition);
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert!(
            waits[0].starts_with("programs can run only in a jail, and this machine does not support one: "),
            "{waits:?}"
        );
        assert!(waits[0].contains("namespace"), "{waits:?}");
        let result = executor.execute(tenant.call(definition, input), CancellationToken::new()).await.result;
        let failure = failed(result, ErrorCode::PermissionDenied);
        assert!(failure.message.contains(&waits[0]), "{failure}");
    }
    assert!(!folders.path().join("work").exists());
}

/// Other runners leave its calls to a scripts manager.
#[tokio::test]
async fn a_tool_that_requires_pods_is_not_run_in_a_jail() {
    needs_the_jail!();
    let tools = crate::fixture::Tools::new().await;
    let mut definition = rcrt_test_tenant::seeded("bash");
    assert_eq!(tools.executor.missing_requirements(&definition), Vec::<String>::new());
    let Implementation::Native(native) = &mut definition.implementation else { panic!("it is code") };
    native.settings.insert("isolation".into(), "pod".into());
    let missing = tools.executor.missing_requirements(&definition);
    assert!(missing.len() == 1 && missing[0].contains("rcrt scripts-manager"), "{missing:?}");
}

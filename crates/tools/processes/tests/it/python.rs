//! Tests of `execute_python_script` that hold only in a jail; `suite.rs` has the others.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::fixture::{Tools, needs_the_jail};

#[tokio::test]
async fn files_persist_only_if_requested() {
    needs_the_jail!();
    let tools = Tools::new().await;
    tools.bash("echo 21 > number.txt").await;
    let script = "import os\nprint(os.getcwd(), sorted(os.listdir('.')), os.path.exists('/work/number.txt'))\n\
                  open('left.txt', 'w').write('x')\nopen('module.py', 'w').write('VALUE = 7')\nimport module\n\
                  print(module.VALUE)";
    for _ in 0..2 {
        assert_eq!(tools.printed(script).await, "/tmp [] False\n7\n");
    }
    let names: Vec<_> = fs::read_dir(tools.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["number.txt"]);
}

#[tokio::test]
async fn python_3_12_runs_if_it_is_installed() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let version = tools.printed("import platform; print(platform.python_version())").await;
    let is_there = |name: &str| {
        let ran = std::process::Command::new(name).args(["-c", "import json, venv"]).output();
        ran.is_ok_and(|output| output.status.success())
    };
    let there = ["python3.12", "/usr/bin/python3.12", "/usr/local/bin/python3.12"].into_iter().any(is_there);
    assert_eq!(version.starts_with("3.12."), there, "{version}");
}

/// Shims of pyenv are there for versions that are not chosen, or no longer installed.
#[tokio::test]
async fn a_python_3_12_that_only_ends_with_an_error_is_not_chosen() {
    needs_the_jail!();
    let shims = tempfile::tempdir().unwrap();
    let shim = shims.path().join("python3.12");
    fs::write(&shim, "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n").unwrap();
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = OsString::from(shims.path());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let again = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "python::python_3_12_runs_if_it_is_installed"])
        .env("PATH", path)
        .output();
    let output = again.await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn script_with_keep_files_uses_the_working_folder() {
    needs_the_jail!();
    let tools = Tools::new().await;
    tools.bash("echo 'def twice(x): return 2 * x' > doubling.py; echo 21 > number.txt").await;
    let script = "import doubling\nprint(doubling.twice(int(open('number.txt').read())))\nopen('out/../result.txt', 'w').write('kept')";
    fs::create_dir(tools.work().join("out")).unwrap();
    let input = json!({"script": script, "keep_files": true});
    assert_eq!(tools.result("execute_python_script", input).await.unwrap(), "42\n");
    assert_eq!(fs::read_to_string(tools.work().join("result.txt")).unwrap(), "kept");
    let mut names: Vec<_> = fs::read_dir(tools.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["doubling.py", "number.txt", "out", "result.txt"]);
}

#[tokio::test]
async fn a_script_has_half_a_processor() {
    needs_the_jail!();
    let locations = rcrt_jail::cgroup::Cgroups::open().0.locations();
    if !locations.iter().any(|location| location.controllers.contains(&"cpu")) {
        // Only control groups enforce a processor share.
        return;
    }
    let tools = Tools::new().await;
    let script = "import time\nbegun = time.perf_counter()\nwhile time.perf_counter() - begun < 2: pass\n\
                  print(time.process_time() / (time.perf_counter() - begun))";
    let share: f64 = tools.printed(script).await.trim().parse().unwrap();
    assert!(share < 0.65, "{share}");
}

//! Tests of `execute_python_script` that hold only in a jail; `suite.rs` has the others.

use std::fs;

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
    assert_eq!(version.starts_with("3.12."), is_there("python3.12") || is_there("/usr/bin/python3.12"), "{version}");
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

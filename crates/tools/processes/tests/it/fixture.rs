//! A jail, a working folder, and shortcuts to call the tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Limits, ToolFailure};
use rcrt_executors::{BuiltinExecutor, Executor, ToolCall, ToolOutput};
use rcrt_jail::command::{CommandLimits, CommandSpec, FilesystemView, Finished, Helper, Jail, PATH};
use rcrt_processes::{DiskBounds, Settings};
use rcrt_test_programs::Programs;
use rcrt_test_tenant::Tenant;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Skips a test if this machine does not support the jail. The tools then wait, which other tests
/// check. If `RCRT_TEST_NEEDS_JAIL` is set, as by `build/test` where it can, that is a failure.
macro_rules! needs_the_jail {
    () => {
        if let Some(reason) = crate::fixture::refusal().await {
            #[allow(clippy::print_stderr)]
            {
                eprintln!("not tried, for this machine gives no jail: {reason}");
            }
            return;
        }
    };
}
pub(crate) use needs_the_jail;

pub async fn refusal() -> Option<String> {
    let reason = Jail::open(helper()).await.refusal()?.to_owned();
    assert!(std::env::var_os("RCRT_TEST_NEEDS_JAIL").is_none(), "{reason}");
    Some(reason)
}

/// The tools for the suite; `None` as in [`needs_the_jail`].
pub async fn programs() -> Option<Programs> {
    if let Some(reason) = refusal().await {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("not tried, for this machine gives no jail: {reason}");
        }
        return None;
    }
    let folders = tempfile::tempdir().unwrap();
    let jail = Arc::new(Jail::open(helper()).await);
    let disk = DiskBounds { min_free: 0, ..DiskBounds::default() };
    let tools = rcrt_processes::tools_in(jail, settings(&folders, &[], disk)).await;
    Some(Programs::new(tools, folders).await)
}

fn settings(folders: &TempDir, network: &[&str], disk: DiskBounds) -> Settings {
    Settings {
        helper: helper(),
        workdir: folders.path().join("data/work"),
        environments: folders.path().join("data/python"),
        network: network.iter().map(|name| (*name).to_owned()).collect(),
        disk,
    }
}

/// Runs a part of a test, which is an ignored test of this binary, as a separate process.
pub fn part(program: &Path, name: &str) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"]).env(ROLE, "1");
    command
}

/// Set for a part of a test. Without it such a part does nothing.
pub const ROLE: &str = "RCRT_TEST_ROLE";

/// How long a test waits for something that must happen. Long, because machines can be slow.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Polls until a condition holds, where no signal exists.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let ended = tokio::time::timeout(PATIENCE, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    ended.await.unwrap_or_else(|_| panic!("never came: {what}"));
}

/// The path of a copy of the helper, for a part of a test whose user cannot access the build's own.
pub const COPIED_HELPER: &str = "RCRT_TEST_HELPER";

pub fn helper() -> Helper {
    let copied = std::env::var_os(COPIED_HELPER).map(PathBuf::from);
    let program = copied.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_jail-helper")));
    Helper { program, arguments: Vec::new() }
}

/// Both tools, with folders that are removed at the end.
pub struct Tools {
    pub jail: Arc<Jail>,
    pub executor: BuiltinExecutor,
    pub folders: TempDir,
    tenant: Tenant,
}

impl Tools {
    pub async fn new() -> Self {
        Self::with(Jail::open(helper()).await, &[]).await
    }

    /// Uses this jail, with the network for the named tools.
    pub async fn with(jail: Jail, network: &[&str]) -> Self {
        Self::with_disk(jail, network, DiskBounds { min_free: 0, ..DiskBounds::default() }).await
    }

    /// Uses these disk limits.
    pub async fn with_disk(jail: Jail, network: &[&str], disk: DiskBounds) -> Self {
        let folders = tempfile::tempdir().unwrap();
        let settings = settings(&folders, network, disk);
        let jail = Arc::new(jail);
        assert_eq!(jail.refusal(), None);
        let executor = BuiltinExecutor::new().with(rcrt_processes::tools_in(jail.clone(), settings).await);
        Self { jail, executor, folders, tenant: Box::pin(Tenant::new()).await }
    }

    pub fn work(&self) -> PathBuf {
        self.folders.path().join("data/work")
    }

    pub fn call(&self, tool: &str, input: Value) -> ToolCall {
        self.tenant.call(rcrt_test_tenant::seeded(tool), input)
    }

    pub async fn execute(&self, call: ToolCall) -> ToolOutput {
        self.executor.execute(call, CancellationToken::new()).await
    }

    pub async fn result(&self, tool: &str, input: Value) -> Result<Value, ToolFailure> {
        self.execute(self.call(tool, input)).await.result
    }

    /// Returns the standard output of a command that must succeed.
    pub async fn bash(&self, command: &str) -> String {
        let result = self.result("bash", json!({"command": command})).await;
        let output = result.unwrap_or_else(|failure| panic!("{command}: {failure} {:?}", failure.details));
        assert_eq!(output["exit_code"], 0, "{command}: {output}");
        output["stdout"].as_str().unwrap().to_owned()
    }

    /// Runs a command that must exit, with any exit code.
    pub async fn tried(&self, command: &str) -> Value {
        let result = self.result("bash", json!({"command": command})).await;
        result.unwrap_or_else(|failure| panic!("{command}: {failure} {:?}", failure.details))
    }

    /// The failure of a call whose time limit ends it after it has printed something. On a busy
    /// machine the time can end before that, so the call is repeated.
    pub async fn timed_out_after_output(&self, call: impl Fn() -> ToolCall) -> ToolFailure {
        for _ in 0..60 {
            let failure = failed(self.execute(call()).await.result, ErrorCode::Timeout);
            if failure.details.as_ref().is_some_and(|details| details["stdout"] != "") {
                return failure;
            }
        }
        panic!("it prints nothing within its time limit");
    }

    pub async fn python(&self, script: &str) -> Result<Value, ToolFailure> {
        self.result("execute_python_script", json!({"script": script})).await
    }

    /// Returns the standard output of a script that must succeed.
    pub async fn printed(&self, script: &str) -> String {
        let result = self.python(script).await;
        let output = result.unwrap_or_else(|failure| panic!("{script}: {failure} {:?}", failure.details));
        output.as_str().unwrap().to_owned()
    }
}

pub fn limited(mut call: ToolCall, change: impl FnOnce(&mut Limits)) -> ToolCall {
    change(&mut call.limits);
    call
}

#[track_caller]
pub fn failed(result: Result<Value, ToolFailure>, code: ErrorCode) -> ToolFailure {
    let failure = result.expect_err("it must fail");
    assert_eq!(failure.code, code, "{failure} {:?}", failure.details);
    failure
}

/// Processes on this machine whose command line contains this text.
pub fn processes_with(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()));
    let is_other = |path: &Path| path.file_name().unwrap().to_str() != Some(&std::process::id().to_string());
    ids.map(|entry| entry.path())
        .filter(|path| is_other(path))
        .filter_map(|path| std::fs::read(path.join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(word))
        .collect()
}

/// A jail with a working folder and a secret beside it, for attack tests.
pub struct Cell {
    pub jail: Jail,
    pub folders: TempDir,
}

/// The secret in the data folder, beside the working folder.
pub const SECRET: &str = "the runner's own secret";

impl Cell {
    pub fn new(jail: Jail) -> Self {
        assert_eq!(jail.refusal(), None);
        let folders = tempfile::tempdir().unwrap();
        std::fs::create_dir(folders.path().join("work")).unwrap();
        std::fs::write(folders.path().join("secret"), SECRET).unwrap();
        Self { jail, folders }
    }

    pub async fn open() -> Self {
        Self::new(Jail::open(helper()).await)
    }

    pub async fn without_groups() -> Self {
        Self::new(Jail::open_without_groups(helper()).await)
    }

    pub fn work(&self) -> PathBuf {
        self.folders.path().join("work")
    }

    pub fn order(&self, program: &str, arguments: &[&str]) -> CommandSpec {
        let mut view = FilesystemView::of_programs(false);
        view.write(&self.work(), Path::new("/work"));
        CommandSpec {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            environment: [("PATH".to_owned(), PATH.to_owned())].into(),
            folder: "/work".into(),
            view,
            network: false,
            bounds: CommandLimits { time: PATIENCE, processor_time: PATIENCE, ..CommandLimits::default() },
        }
    }

    pub fn shell(&self, command: &str) -> CommandSpec {
        self.order("/bin/bash", &["-c", command])
    }

    /// Runs a Python script with access to the C library.
    pub fn script(&self, script: &str) -> CommandSpec {
        self.order("/usr/bin/python3", &["-I", "-c", &format!("{PRELUDE}{script}")])
    }

    pub async fn run(&self, order: &CommandSpec) -> Finished {
        self.jail.run(order).await.unwrap()
    }
}

/// `call(number, …)` makes a system call and returns its result, or the name of its error;
/// `error(f)` returns the name of the error that a function raises.
const PRELUDE: &str = r"
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *wide)
    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]
def error(f, *arguments, **named):
    try:
        return ('no error', f(*arguments, **named))
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
def error_of(f, *arguments):
    try:
        return ('no error', f(*arguments))
    except Exception as e:
        return type(e).__name__
";

//! Programs that use all they can get: processes, memory, output, processor time, files. Each is
//! bounded, with control groups and without, and the next program runs normally.

use std::fs;
use std::time::Duration;

use rcrt_breadcrumb::ErrorCode;
use rcrt_executors::Executor;
use rcrt_jail::command::{CommandLimits, CommandSpec, ExitReason, Finished, Jail};
use rcrt_processes::DiskBounds;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Cell, Tools, failed, helper, limited, needs_the_jail, until};

const MIB: u64 = 1024 * 1024;

fn bounded(order: CommandSpec, change: impl FnOnce(&mut CommandLimits)) -> CommandSpec {
    let mut order = order;
    change(&mut order.bounds);
    order
}

async fn both() -> [Cell; 2] {
    [Cell::open().await, Cell::without_groups().await]
}

async fn still_works(cell: &Cell) {
    let finished = cell.run(&cell.shell("echo well")).await;
    assert_eq!((finished.how, finished.stdout.text().as_str()), (ExitReason::Exited(0), "well\n"));
}

const FORKS: &str = "
import time
n = 0
while True:
    try:
        if os.fork() == 0: time.sleep(600)
    except OSError as e:
        print(errno.errorcode[e.errno], 30 < n <= 50, n); break
    n += 1
";
const THREADS: &str = "
import threading, time
n = 0
while True:
    try: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    except RuntimeError: break
    n += 1
print(30 < n <= 50, n, flush=True); os._exit(0)
";

pub async fn processes_are_counted(cell: &Cell) {
    let few = |order| bounded(order, |bounds| bounds.processes = 50);
    let finished = cell.run(&few(cell.script(FORKS))).await;
    assert!(finished.stdout.text().starts_with("EAGAIN True"), "{} {}", finished.stdout.text(), finished.stderr.text());
    let finished = cell.run(&few(cell.script(THREADS))).await;
    assert!(finished.stdout.text().starts_with("True"), "{} {}", finished.stdout.text(), finished.stderr.text());
    // The bomb itself, which never exits.
    let bomb = bounded(cell.shell(":(){ :|:& };: ; sleep 600"), |bounds| bounds.time = Duration::from_secs(2));
    let finished = cell.run(&bomb).await;
    assert!(matches!(finished.how, ExitReason::OutOfTime | ExitReason::Exited(_)), "{:?}", finished.how);
    still_works(cell).await;
}

#[tokio::test]
async fn fork_bomb_is_stopped() {
    needs_the_jail!();
    for cell in both().await {
        processes_are_counted(&cell).await;
    }
}

/// Children that keep their memory, and a parent that exits when one of them is killed.
const MANY: &str = "
r, w = os.pipe()
for n in range(12):
    if os.fork() == 0:
        held = bytearray(os.urandom(4096)) * 8192
        os.read(r, 1)
        os._exit(0)
os.wait()
sys.exit(3)
";
const SHARED: &str = "
import mmap, time
held = mmap.mmap(-1, 300 << 20)
for at in range(0, 300 << 20, 4096): held[at] = 1
time.sleep(600)
";

pub async fn memory_is_counted(cell: &Cell) {
    let little = |order| bounded(order, |bounds| bounds.memory = 128 * MIB);
    // A single process gets an allocation error, or is killed.
    let one = cell.run(&little(cell.script("held = []\nwhile True: held.append(bytearray(8 << 20))"))).await;
    let is_told = one.how == ExitReason::Exited(1) && one.stderr.text().contains("MemoryError");
    assert!(is_told || one.how == ExitReason::OutOfMemory, "{:?} {}", one.how, one.stderr.text());
    for script in [MANY, SHARED] {
        let finished = cell.run(&little(cell.script(script))).await;
        assert_eq!(finished.how, ExitReason::OutOfMemory, "{script} {}", finished.stderr.text());
    }
    still_works(cell).await;
}

#[tokio::test]
async fn memory_limit_counts_all_processes() {
    needs_the_jail!();
    for cell in both().await {
        memory_is_counted(&cell).await;
    }
}

#[tokio::test]
async fn files_in_memory_count_as_memory() {
    needs_the_jail!();
    let script = "f = error(os.memfd_create, 'm')\nif f == 'EPERM': print(f)\nelse:\n    f = f[1]\n    while os.write(f, bytes(1 << 20)): pass";
    let cell = Cell::without_groups().await;
    assert_eq!(cell.run(&cell.script(script)).await.stdout.text(), "EPERM\n");
    let cell = Cell::open().await;
    let finished = cell.run(&bounded(cell.script(script), |bounds| bounds.memory = 128 * MIB)).await;
    let is_refused = finished.stdout.text() == "EPERM\n";
    assert!(finished.how == ExitReason::OutOfMemory || is_refused, "{:?}", finished.how);
}

#[tokio::test]
async fn memory_filesystems_have_a_size_limit() {
    needs_the_jail!();
    for cell in both().await {
        for folder in ["/tmp", "/dev/shm"] {
            let order =
                bounded(cell.shell(&format!("head -c 40M /dev/zero > {folder}/x; stat -c %s {folder}/x")), |bounds| {
                    bounds.temporary = 8 * MIB;
                });
            let finished = cell.run(&order).await;
            assert_eq!(finished.stdout.text(), format!("{}\n", 8 * MIB));
            assert!(finished.stderr.text().contains("No space left"), "{}", finished.stderr.text());
        }
        let many = "n = 0\ntry:\n    while True: os.mkdir(f'/tmp/{n}'); n += 1\nexcept OSError as e: print(errno.errorcode[e.errno], n < 70000)";
        assert_eq!(cell.run(&cell.script(many)).await.stdout.text(), "ENOSPC True\n");
        // The root itself is not writable at all.
        let root = cell
            .run(
                &cell.shell("echo x > /x; echo x > /etc/x; echo x > /run/x; mkdir /work/../y; ls / | grep -c '^[xy]$'"),
            )
            .await;
        assert_eq!(root.stdout.text(), "0\n");
    }
}

#[tokio::test]
async fn flood_on_either_stream_is_stopped() {
    needs_the_jail!();
    let cell = Cell::open().await;
    let small = |order| bounded(order, |bounds| (bounds.output, bounds.flood) = (1000, 4 * MIB));
    for flood in ["yes", "yes >&2", "yes & yes >&2", "cat /dev/zero", "cat /dev/urandom >&2"] {
        let finished = cell.run(&small(cell.shell(flood))).await;
        assert_eq!(finished.how, ExitReason::TooMuchOutput, "{flood}");
        let Finished { stdout, stderr, .. } = &finished;
        assert!(stdout.text().len() + stderr.text().len() < 8_000, "{flood}");
        assert!(stdout.omitted() + stderr.omitted() > 2 * MIB, "{flood}");
    }
    still_works(&cell).await;
}

#[tokio::test]
async fn long_output_keeps_its_beginning_and_end() {
    needs_the_jail!();
    let cell = Cell::open().await;
    let order = bounded(cell.shell("seq 1000000"), |bounds| bounds.output = 20);
    let finished = cell.run(&order).await;
    assert_eq!(finished.how, ExitReason::Exited(0));
    assert_eq!(finished.stdout.text(), "1\n2\n3\n4\n5\n\n[… 6888876 bytes omitted …]\n9\n1000000\n");
}

pub async fn processor_time_is_counted(cell: &Cell) {
    for burning in [
        "while :; do :; done",
        "for n in 1 2 3; do (while :; do :; done) & done; wait",
        "(while :; do :; done) & exec sleep 600",
    ] {
        let order = bounded(cell.shell(burning), |bounds| bounds.processor_time = Duration::from_millis(500));
        assert_eq!(cell.run(&order).await.how, ExitReason::OutOfProcessorTime, "{burning}");
    }
}

#[tokio::test]
async fn cpu_limit_counts_all_processes() {
    needs_the_jail!();
    for cell in both().await {
        processor_time_is_counted(&cell).await;
    }
}

#[tokio::test]
async fn files_and_descriptors_are_bounded() {
    needs_the_jail!();
    let cell = Cell::open().await;
    let order = bounded(cell.shell("head -c 3M /dev/zero > big; echo $?"), |bounds| bounds.file = MIB);
    let finished = cell.run(&order).await;
    assert_eq!(fs::metadata(cell.work().join("big")).unwrap().len(), MIB, "{}", finished.stderr.text());
    let script = "held = []\ntry:\n    while True: held.append(open('/dev/null'))\nexcept OSError as e: print(errno.errorcode[e.errno], len(held) < 600)";
    assert_eq!(cell.run(&cell.script(script)).await.stdout.text(), "EMFILE True\n");
    still_works(&cell).await;
}

#[tokio::test]
async fn full_disk_stops_programs() {
    needs_the_jail!();
    let call = |tools: &Tools, command: &str| tools.call("bash", json!({"command": command}));
    let full = DiskBounds { min_free: u64::MAX, ..DiskBounds::default() };
    let tools = Tools::with_disk(Jail::open(helper()).await, &[], full).await;
    let output = tools.execute(call(&tools, "touch begun")).await;
    let failure = failed(output.result, ErrorCode::ResourceExhausted);
    assert!(failure.message.contains("--min-free-disk-mb") && failure.is_retryable, "{failure}");
    assert!(!tools.work().join("begun").exists());

    // One that fills it meanwhile, by writing more than is allowed.
    let disk = nix::sys::statvfs::statvfs(tools.folders.path()).unwrap();
    let free = disk.blocks_available() * disk.fragment_size();
    let nearly = DiskBounds { min_free: free - 100 * MIB, ..DiskBounds::default() };
    let tools = Tools::with_disk(Jail::open(helper()).await, &[], nearly).await;
    for then in ["sleep 600", "exit 0"] {
        let command = format!("head -c 900M /dev/zero > big; {then}");
        let failure = failed(tools.execute(call(&tools, &command)).await.result, ErrorCode::ResourceExhausted);
        assert!(failure.message.contains("--min-free-disk-mb"), "{failure}");
        assert!(!tools.work().join("big").exists());
    }
}

async fn small_folder() -> Tools {
    let disk = DiskBounds { min_free: 0, workdir: 2_000_000, ..DiskBounds::default() };
    Tools::with_disk(Jail::open(helper()).await, &[], disk).await
}

/// These programs end before the first check while they run.
#[tokio::test]
async fn program_that_fills_the_working_folder_fails_and_leaves_nothing() {
    needs_the_jail!();
    let tools = small_folder().await;
    tools.bash("mkdir notes; head -c 100K /dev/zero > notes/old").await;
    let script = "import os\nos.posix_fallocate(os.open('big', os.O_CREAT | os.O_RDWR), 0, 5_000_000)\nos.mkdir('more'); open('notes/old', 'a').write('x')";
    let input = json!({"script": script, "keep_files": true});
    let failure = failed(tools.result("execute_python_script", input).await, ErrorCode::ResourceExhausted);
    assert!(failure.message.contains("--workdir-mb"), "{failure}");
    assert_eq!(failure.details.unwrap(), json!({"limit": "workdir_bytes", "allowed": 2_000_000}));
    let write = |name: &str| json!({"command": format!("head -c 5M /dev/zero > notes/{name}")});
    for name in ["new", "old"] {
        failed(tools.result("bash", write(name)).await, ErrorCode::ResourceExhausted);
    }
    assert_eq!(tools.bash("find . -type f -printf '%p %s\\n'; ls").await, "./notes/old 102400\nnotes\n");
    // A script without the folder is not affected.
    std::fs::write(tools.work().join("full"), vec![b'x'; 3_000_000]).unwrap();
    assert_eq!(tools.printed("print('well')").await, "well\n");
    // A program can make room, but not use more.
    failed(tools.result("bash", write("new")).await, ErrorCode::ResourceExhausted);
    tools.bash("rm full").await;
    tools.bash("echo well > notes/new").await;
}

#[tokio::test]
async fn program_that_goes_on_in_a_full_folder_is_stopped() {
    needs_the_jail!();
    let tools = small_folder().await;
    let write = json!({"command": "head -c 5M /dev/zero > big; sleep 600"});
    let failure = failed(tools.result("bash", write).await, ErrorCode::ResourceExhausted);
    assert!(failure.message.contains("--workdir-mb"), "{failure}");
    assert!(!tools.work().join("big").exists());
}

#[tokio::test]
async fn cancelled_call_leaves_no_full_folder() {
    needs_the_jail!();
    let tools = small_folder().await;
    let write = tools.call("bash", json!({"command": "head -c 5M /dev/zero > big; touch done; sleep 600"}));
    let cancelled = CancellationToken::new();
    let cancel = async {
        until("the file", || tools.work().join("done").exists()).await;
        cancelled.cancel();
    };
    let (output, ()) = tokio::join!(tools.executor.execute(write, cancelled.clone()), cancel);
    let code = output.result.unwrap_err().code;
    assert!(matches!(code, ErrorCode::Cancelled | ErrorCode::ResourceExhausted), "{code:?}");
    until("the removal", || !tools.work().join("big").exists()).await;
}

#[tokio::test]
async fn failure_names_the_limit() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let call = |command: &str| tools.call("bash", json!({"command": command}));
    let burning = limited(call("echo begun; while :; do :; done"), |limits| limits.cpu_ms = Some(300));
    let failure = failed(tools.execute(burning).await.result, ErrorCode::ResourceExhausted);
    assert_eq!(failure.message, "it used more than 300 ms of processor time and was killed");
    assert_eq!(failure.details.unwrap(), json!({"limit": "cpu_ms", "allowed": 300, "stdout": "begun\n"}));

    let script = tools.call("execute_python_script", json!({"script": format!("import os, sys\n{SHARED}")}));
    let failure = failed(
        tools.execute(limited(script, |limits| limits.memory_mb = 64)).await.result,
        ErrorCode::ResourceExhausted,
    );
    assert_eq!(failure.message, "it used more than 64 MiB of memory and was killed");
    assert_eq!(failure.details.unwrap(), json!({"limit": "memory_mb", "allowed": 64}));

    let failure = failed(tools.execute(call("yes")).await.result, ErrorCode::ResourceExhausted);
    let details = failure.details.unwrap();
    assert_eq!(details["limit"], "output_bytes");
    assert!(details["stdout"].as_str().unwrap().len() < 9_000);

    // The call's own time limit takes precedence over the requested one.
    let input = json!({"command": "echo begun; sleep 600", "timeout_seconds": 500});
    let short = || limited(tools.call("bash", input.clone()), |limits| limits.timeout_ms = 1_000);
    let failure = tools.timed_out_after_output(short).await;
    assert_eq!(failure.details.unwrap()["stdout"], "begun\n");
}

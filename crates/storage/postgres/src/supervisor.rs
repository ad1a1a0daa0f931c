use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parking_lot::Mutex;
use tokio::process::Child;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::account::Account;
use crate::install::Installed;
use crate::log_file::{LogFile, Tail};
use crate::pid_file::PidFile;
use crate::{DataLock, PostgresError};

/// Recovery after a crash replays the WAL, which can take long on a slow disk.
const READY: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(5);
const FAST_STOP: Duration = Duration::from_secs(20);
const HARD_STOP: Duration = Duration::from_secs(5);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Failed starts in a row before giving up: about a minute and a half, time to free space on a full
/// disk.
const ATTEMPTS: u32 = 24;
/// After this time, a start counts as successful, and failures are counted from zero.
const STABLE_AFTER: Duration = Duration::from_secs(30);

/// The state of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It accepts connections. `starts` counts from one.
    Running { pid: u32, starts: u32 },
    /// It exited, and is being restarted.
    Restarting { starts: u32 },
    /// It was stopped, or could not be kept running.
    Down,
}

/// The parameters of a start. They are the same for each restart.
pub(crate) struct Launch {
    pub(crate) installed: Installed,
    pub(crate) account: Account,
    pub(crate) cluster: PathBuf,
    pub(crate) socket_dir: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) durable: bool,
    pub(crate) lock: DataLock,
}

/// Starts the server, and restarts it when it exits, from its own thread. The kernel signals the
/// server when the thread that started it exits, and the server must not depend on the caller's
/// async runtime.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// Dropped to request the stop.
    stop_signal: Option<oneshot::Sender<()>>,
    state: watch::Receiver<State>,
    end: watch::Receiver<Option<SupervisorEnd>>,
    lock: Arc<Mutex<DataLock>>,
}

#[derive(Debug, Clone)]
enum SupervisorEnd {
    Stopped,
    GaveUp { log: String },
}

impl Supervisor {
    /// Returns when the server accepts connections, or with the reason why it does not.
    pub(crate) async fn start(launch: Launch) -> Result<Self, PostgresError> {
        let (stop_signal, stop_requested) = oneshot::channel();
        let (report, started) = oneshot::channel();
        let (state_out, state) = watch::channel(State::Restarting { starts: 0 });
        let (end_out, end) = watch::channel(None);
        let Launch { installed, account, cluster, socket_dir, log, durable, lock } = launch;
        let lock = Arc::new(Mutex::new(lock));
        let watched = Watched { installed, account, cluster, socket_dir, log, durable, tail: Tail::default() };
        let held = Arc::clone(&lock);
        std::thread::Builder::new()
            .name("postgres-watch".to_owned())
            .spawn(move || {
                let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(source) => {
                        let _ = report.send(Err(PostgresError::Run {
                            program: "the supervisor thread of Postgres".to_owned(),
                            source,
                        }));
                        return;
                    }
                };
                let end = runtime.block_on(watched.keep(stop_requested, report, &state_out));
                drop(held);
                state_out.send_replace(State::Down);
                end_out.send_replace(Some(end));
            })
            .map_err(|source| PostgresError::Run { program: "the supervisor thread of Postgres".to_owned(), source })?;
        match started.await {
            Ok(Ok(())) => Ok(Self { stop_signal: Some(stop_signal), state, end, lock }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(PostgresError::Stopped),
        }
    }

    pub(crate) fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    pub(crate) fn with_lock<T>(&self, use_it: impl FnOnce(&mut DataLock) -> T) -> T {
        use_it(&mut self.lock.lock())
    }

    pub(crate) async fn wait_exit(&self) -> PostgresError {
        match self.ended().await {
            SupervisorEnd::GaveUp { log } => PostgresError::GaveUp { attempts: ATTEMPTS, log },
            SupervisorEnd::Stopped => PostgresError::Stopped,
        }
    }

    pub(crate) async fn stop(mut self) {
        drop(self.stop_signal.take());
        self.ended().await;
    }

    async fn ended(&self) -> SupervisorEnd {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(SupervisorEnd::Stopped),
            Err(_) => SupervisorEnd::Stopped,
        }
    }
}

struct Watched {
    installed: Installed,
    account: Account,
    cluster: PathBuf,
    socket_dir: PathBuf,
    log: PathBuf,
    durable: bool,
    tail: Tail,
}

type Report = oneshot::Sender<Result<(), PostgresError>>;

impl Watched {
    async fn keep(
        self,
        mut stop_requested: oneshot::Receiver<()>,
        report: Report,
        state: &watch::Sender<State>,
    ) -> SupervisorEnd {
        let mut report = Some(report);
        let mut starts = 0;
        let mut failures = 0;
        let mut pause = SHORTEST_PAUSE;
        loop {
            starts += 1;
            self.tail.clear();
            match self.launch(&mut stop_requested).await {
                Ok(Launched::Ready(mut child)) => {
                    let pid = child.id().unwrap_or_default();
                    tracing::info!(pid, starts, "Postgres accepts connections");
                    state.send_replace(State::Running { pid, starts });
                    if let Some(report) = report.take() {
                        let _ = report.send(Ok(()));
                    }
                    let ready_at = Instant::now();
                    let status = tokio::select! {
                        status = child.wait() => status,
                        _ = &mut stop_requested => {
                            stop(&mut child).await;
                            return SupervisorEnd::Stopped;
                        }
                    };
                    if ready_at.elapsed() > STABLE_AFTER {
                        failures = 0;
                        pause = SHORTEST_PAUSE;
                    }
                    tracing::warn!(pid, ended = %describe(status), "Postgres exited; restarting it");
                }
                Ok(Launched::StopRequested) => return SupervisorEnd::Stopped,
                Err(error) => {
                    if let Some(report) = report.take() {
                        let _ = report.send(Err(error));
                        return SupervisorEnd::Stopped;
                    }
                    tracing::warn!(%error, "Postgres did not restart");
                }
            }
            failures += 1;
            if failures >= ATTEMPTS {
                return SupervisorEnd::GaveUp { log: self.tail.text() };
            }
            state.send_replace(State::Restarting { starts });
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                _ = &mut stop_requested => return SupervisorEnd::Stopped,
            }
        }
    }

    /// Starts the server and waits until it accepts connections.
    async fn launch(&self, stop_requested: &mut oneshot::Receiver<()>) -> Result<Launched, PostgresError> {
        let mut child = self.spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let deadline = Instant::now() + READY;
        loop {
            let ready = PidFile::read(&self.cluster).is_some_and(|file| file.ready && Some(file.pid) == pid);
            if ready {
                return Ok(Launched::Ready(child));
            }
            tokio::select! {
                status = child.wait() => {
                    // Its last log lines may still be in the pipe.
                    sleep(POLL).await;
                    return Err(PostgresError::NotStarted { log: format!("{} ({})", self.tail.text(), describe(status)) });
                }
                _ = &mut *stop_requested => {
                    stop(&mut child).await;
                    return Ok(Launched::StopRequested);
                }
                () = sleep(POLL) => {}
            }
            if Instant::now() > deadline {
                stop(&mut child).await;
                return Err(PostgresError::NotStarted { log: format!("{} (not ready in time)", self.tail.text()) });
            }
        }
    }

    fn spawn(&self) -> Result<Child, PostgresError> {
        let program = self.installed.bin.join("postgres");
        let mut command = self.account.command(&program, true);
        command.arg("-D").arg(&self.cluster);
        let mut set = |name: &str, value: &str| {
            command.arg("-c").arg(format!("{name}={value}"));
        };
        set("listen_addresses", "");
        set("port", "5432");
        set("unix_socket_directories", &quoted(&self.socket_dir.to_string_lossy()));
        set("logging_collector", "off");
        set("log_destination", "stderr");
        if !self.durable {
            // Commits still reach the kernel: they survive a killed server, but not a power
            // failure.
            set("fsync", "off");
            set("full_page_writes", "off");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C goes to the whole process group of the terminal. We decide when the server stops.
        command.process_group(0);
        let log = LogFile::open(&self.log, self.tail.clone())?;
        let mut child =
            command.spawn().map_err(|source| PostgresError::Run { program: program.display().to_string(), source })?;
        if let Some(stderr) = child.stderr.take() {
            // Stops when the last process of this server has closed the pipe.
            tokio::spawn(log.follow(stderr));
        }
        Ok(child)
    }
}

enum Launched {
    Ready(Child),
    StopRequested,
}

/// Requests a fast shutdown, then an immediate one, then kills the server.
async fn stop(child: &mut Child) {
    for (signal, patience) in [(Signal::SIGINT, FAST_STOP), (Signal::SIGQUIT, HARD_STOP)] {
        let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) else { return };
        let _ = kill(Pid::from_raw(pid), signal);
        if timeout(patience, child.wait()).await.is_ok() {
            return;
        }
        tracing::warn!(pid, %signal, "Postgres did not stop in time");
    }
    let _ = child.kill().await;
}

fn describe(status: std::io::Result<ExitStatus>) -> String {
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// Quotes a path for a setting that is a list: commas and spaces must not split it.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('"', "\"\""))
}

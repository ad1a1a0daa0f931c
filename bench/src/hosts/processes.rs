//! `rcrt server` and `rcrt runner` as separate processes, as in an installation with several hosts.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcrt_client::{Client, Credentials};
use tokio::process::{Child, Command};
use url::Url;

use super::network::Host;
use crate::instance::{Database, rcrt};

/// A first start can download Postgres.
const START: Duration = Duration::from_mins(5);
const END: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process of `rcrt` whose log is a file.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let file = std::fs::File::create(&log)?;
        command.stdout(file.try_clone()?).stderr(file).kill_on_drop(true);
        let name = command.as_std().get_program().to_owned();
        let child = command.spawn().with_context(|| format!("{} cannot be started", name.display()))?;
        Ok(Self { child, log })
    }

    /// Waits until its log contains these words, and returns the rest of that line.
    async fn says(&mut self, words: &str) -> anyhow::Result<String> {
        let found = tokio::time::timeout(START, async {
            loop {
                let text = std::fs::read_to_string(&self.log).unwrap_or_default();
                if let Some((_, rest)) = text.split_once(words)
                    && let Some((rest, _)) = rest.split_once('\n')
                {
                    return Ok(rest.trim().to_owned());
                }
                if let Some(status) = self.child.try_wait()? {
                    bail!("it exited with {status}: {}", text.lines().last().unwrap_or_default());
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        found.await.unwrap_or_else(|_| bail!("{} did not start in time", self.log.display()))
    }

    fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    async fn stop(mut self) {
        if let Some(id) = self.child.id() {
            // It can have exited already.
            let _ = kill(Pid::from_raw(id.cast_signed()), Signal::SIGTERM);
        }
        if tokio::time::timeout(END, self.child.wait()).await.is_err() {
            // Nothing more can be done about a process that cannot be killed.
            let _ = self.child.kill().await;
        }
    }
}

/// The server with its store and without a runner.
pub struct Server {
    process: Process,
    port: u16,
    token: String,
    runner_token: String,
    data: PathBuf,
}

impl Server {
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let data = folder.join("data");
        let mut command = rcrt()?;
        command.args(["server", "--listen", "0.0.0.0:0"]);
        // The bench measures the system, not its rate limits.
        command.args(["--rate-limit-agent", "off", "--rate-limit-tenant", "off", "--data"]).arg(&data);
        let mut process = Process::start(command, folder.join("server.log"))?;
        let said = process.says("listening on ").await.context("rcrt server")?;
        let address = said.split(' ').next().unwrap_or_default();
        let port = Url::parse(address)?.port().context("rcrt server printed no address that it listens on")?;
        let token = |name: &str| std::fs::read_to_string(data.join(name)).map(|text| text.trim().to_owned());
        let (own, runner_token) = (token("token")?, token("runner.token")?);
        Ok(Self { process, port, token: own, runner_token, data })
    }

    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(self.url(Ipv4Addr::LOCALHOST)?, Credentials::Token(self.token.clone())))
    }

    fn url(&self, address: Ipv4Addr) -> anyhow::Result<Url> {
        Ok(Url::parse(&format!("http://{address}:{}/", self.port))?)
    }

    pub fn database(&self) -> Database {
        Database::of(&self.data)
    }

    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    pub async fn stop(self) {
        self.process.stop().await;
    }
}

/// A runner on a host.
pub struct Runner {
    process: Process,
}

impl Runner {
    /// Starts it and waits until it takes calls.
    pub async fn start(folder: &Path, host: &Host, server: &Server) -> anyhow::Result<Self> {
        let name = format!("runner{}", host.number);
        let program = rcrt()?;
        let prefix = host.prefix();
        let mut command = Command::new(&prefix[0]);
        command.args(&prefix[1..]).arg(program.as_std().get_program());
        for (name, value) in program.as_std().get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .args(["runner", "--data"])
            .arg(folder.join(&name))
            .env("RCRT_SERVER", server.url(host.reaches())?.as_str())
            // Not as an argument: other users of the machine can see arguments.
            .env("RCRT_TOKEN", &server.runner_token);
        let mut process = Process::start(command, folder.join(format!("{name}.log")))?;
        process.says("the runner is running").await.context("rcrt runner")?;
        Ok(Self { process })
    }

    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Its calls finish first.
    pub async fn stop(self) {
        self.process.stop().await;
    }
}

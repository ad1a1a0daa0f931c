//! The native tools as the operator configured them: which are enabled, where they work, and which
//! services they use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rcrt_a2a::WellKnown;
use rcrt_authoring::Assessor;
use rcrt_egress::Egress;
use rcrt_executors::{BuiltinExecutor, NativeTool};
use rcrt_processes::DiskBounds;
use rcrt_web::SearchChoice;
use url::Url;

use super::runner_task::this_program;
use super::working_folder::working_folder;
use crate::cli::JAILED_COMMAND;
use crate::exit::{Failure, fail};
use crate::settings::{Resolved, SettingOptions};

/// Tools that are off by default, and why.
const OFF: &[(&str, &str)] = &[("bash", "runs any command on this machine, though in a jail")];
/// The tools that run programs.
const PROGRAMS: &[&str] = &["bash", "execute_python_script"];

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options for the program's own tools")]
pub struct NativeToolOptions {
    /// The folder in which tools read and write files and run programs; they reach no other folder
    /// [default: <data>/work]
    #[arg(long, env = "RCRT_WORKDIR", value_name = "DIR")]
    workdir: Option<PathBuf>,

    /// Turn on a tool that is off by default: bash. Can be repeated, or separated by commas
    #[arg(
        id = "enabled_tools",
        long = "enable-tool",
        env = "RCRT_ENABLE_TOOLS",
        value_name = "NAME",
        value_delimiter = ','
    )]
    enabled: Vec<String>,

    /// Turn off a tool of the program. Can be repeated, or separated by commas
    #[arg(
        id = "disabled_tools",
        long = "disable-tool",
        env = "RCRT_DISABLE_TOOLS",
        value_name = "NAME",
        value_delimiter = ','
    )]
    disabled: Vec<String>,

    /// Give the programs of this tool (bash or execute_python_script) the network of this machine.
    /// Can be repeated, or separated by commas
    #[arg(
        id = "network_tools",
        long = "allow-network",
        env = "RCRT_ALLOW_NETWORK",
        value_name = "NAME",
        value_delimiter = ','
    )]
    network: Vec<String>,

    /// A folder of this machine that the programs of MCP servers can read, such as the one in which
    /// they are installed. Can be repeated, or separated by commas
    #[arg(long = "mcp-folder", env = "RCRT_MCP_FOLDERS", value_name = "DIR", value_delimiter = ',')]
    mcp_folders: Vec<PathBuf>,

    /// The tool that asks a model to summarize the tools of an MCP server that does not describe
    /// itself, such as openrouter or ollama. Default: none
    #[arg(long, env = "RCRT_MCP_SUMMARY_TOOL", value_name = "NAME")]
    mcp_summary_tool: Option<String>,

    /// The search engine of web_search: brave, with the secret BRAVE_API_KEY, or searxng, with its
    /// URL
    #[arg(long, env = "RCRT_SEARCH", value_name = "PROVIDER")]
    search: Option<Search>,

    /// The base URL of a SearXNG that answers in JSON. Also needs --allow-private-host if its
    /// address is private
    #[arg(long, env = "RCRT_SEARXNG_URL", value_name = "URL", value_parser = web_url)]
    searxng_url: Option<Url>,

    /// A file of agents that invoke_agent can reach: a JSON array of agentName, url,
    /// authHeaderName and authHeaderValueBase64
    #[arg(long, env = "RCRT_WELL_KNOWN_AGENTS", value_name = "FILE")]
    well_known_agents: Option<PathBuf>,

    /// The URLs of this installation, which invoke_agent does not invoke. Set by the command.
    #[arg(skip)]
    pub own_urls: Vec<String>,
    /// The URL by which agents reach the server. Set by the command.
    #[arg(skip)]
    pub public_url: Option<String>,

    /// Maximum size of one set of Python packages, in MB
    #[arg(long, env = "RCRT_PACKAGES_SET_MB", default_value_t = 2_000, value_name = "MB", value_parser = megabytes)]
    packages_set_mb: u64,

    /// Maximum size of all sets of Python packages together, in MB; the least recently used ones
    /// are removed first
    #[arg(long, env = "RCRT_PACKAGES_TOTAL_MB", default_value_t = 8_000, value_name = "MB", value_parser = megabytes)]
    packages_total_mb: u64,

    /// Maximum size of the working folder, and of the folder of each MCP server's program, in MB; 0
    /// for no bound
    #[arg(long, env = "RCRT_WORKDIR_MB", default_value_t = 10_000, value_name = "MB", value_parser = megabytes)]
    workdir_mb: u64,

    /// Free disk space, in MB, below which programs are stopped, and packages and files refused; 0
    /// for no bound
    #[arg(long, env = "RCRT_MIN_FREE_DISK_MB", default_value_t = 500, value_name = "MB", value_parser = megabytes)]
    min_free_disk_mb: u64,

    #[command(flatten)]
    settings: SettingOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Search {
    Brave,
    Searxng,
}

fn web_url(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(_) => Err("must start with http:// or https:// and name a host".into()),
        Err(error) => Err(format!("{error}; expected a URL such as https://search.example.com/")),
    }
}

/// The upper limit of these options: a million MB.
const MOST_MB: u64 = 1_000_000;

fn megabytes(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (0..=MOST_MB).contains(number));
    number.ok_or_else(|| format!("must be a whole number of MB, at most {MOST_MB}"))
}

/// The native tools, and the other parts of a runner that their settings configure.
pub struct NativeTools {
    pub executor: BuiltinExecutor,
    pub schedule: rcrt_schedule::Settings,
    pub clock: Arc<dyn rcrt_schedule::Clock>,
    pub large_results: rcrt_large_results::Settings,
    pub a2a: rcrt_a2a::Settings,
    /// The share of the meaning in the score of a tool that is searched for.
    pub meaning_weight: f64,
    /// The folder of the file tools.
    pub workdir: PathBuf,
    pub mcp: rcrt_mcp::Settings,
}

impl NativeToolOptions {
    /// The effective settings for this data folder.
    pub fn settings(&self, data: &Path) -> anyhow::Result<Resolved> {
        self.settings.resolve(data)
    }

    /// Refuses contradicting options, unknown names of tools, and an invalid configuration file.
    pub fn check(&self, data: &Path) -> anyhow::Result<()> {
        self.search_choice()?;
        self.well_known_agents()?;
        self.settings(data)?;
        working_folder(self.workdir.as_deref(), &std::path::absolute(data)?)?;
        let known = crate::embedded::native_tools();
        for (option, names, known) in [
            ("--enable-tool", &self.enabled, known.as_slice()),
            ("--disable-tool", &self.disabled, known.as_slice()),
            ("--allow-network", &self.network, PROGRAMS),
        ] {
            if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
                fail!(Usage, "{option}: {name:?} is not valid; expected one of: {}", known.join(", "));
            }
        }
        if self.packages_set_mb > self.packages_total_mb {
            fail!(
                Usage,
                "--packages-set-mb {} is more than --packages-total-mb {}; a set cannot be larger than all sets together",
                self.packages_set_mb,
                self.packages_total_mb
            );
        }
        if let Some(name) = self.enabled.iter().find(|name| self.disabled.contains(name)) {
            fail!(Usage, "{name} is in both --enable-tool and --disable-tool; name it in one of them");
        }
        Ok(())
    }

    fn well_known_agents(&self) -> anyhow::Result<Vec<WellKnown>> {
        let Some(file) = &self.well_known_agents else { return Ok(Vec::new()) };
        let wrong = |error: String| Failure::Usage(format!("--well-known-agents {}: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        Ok(WellKnown::read_all(&text).map_err(|error| wrong(error.to_string()))?)
    }

    fn search_choice(&self) -> anyhow::Result<Option<SearchChoice>> {
        match (self.search, &self.searxng_url) {
            (None, None) => Ok(None),
            (Some(Search::Brave), _) => Ok(Some(SearchChoice::Brave)),
            (None | Some(Search::Searxng), Some(url)) => Ok(Some(SearchChoice::Searxng(url.clone()))),
            (Some(Search::Searxng), None) => {
                Err(Failure::Usage("--search searxng also needs --searxng-url".into()).into())
            }
        }
    }

    /// Returns all tools. `data` is the data folder, and `assessor` tries the tools that agents
    /// make. Must be called on a runtime: tasks find out which programs can run on this machine.
    pub fn tools(&self, data: &Path, egress: Arc<Egress>, assessor: Assessor) -> anyhow::Result<NativeTools> {
        self.check(data)?;
        let settings = self.settings(data)?;
        let data = std::path::absolute(data)?;
        let workdir = working_folder(self.workdir.as_deref(), &data)?;
        let schedule = settings.schedule()?;
        let clock: Arc<dyn rcrt_schedule::Clock> = Arc::new(rcrt_schedule::SystemClock);
        let (large_results, meaning_weight) = (settings.large_results()?, settings.meaning_weight()?);
        let web = rcrt_web::Settings { search: self.search_choice()?, ..settings.web()? };
        let helper = rcrt_jail::command::Helper { program: this_program()?, arguments: vec![JAILED_COMMAND.into()] };
        let mut mcp = rcrt_mcp::Settings::new(helper.clone(), data.join("mcp"));
        mcp.readable = self.mcp_folders(&data)?;
        mcp.most_bytes = self.disk_bounds().workdir;
        mcp.summary_tool.clone_from(&self.mcp_summary_tool);
        let programs = rcrt_processes::Settings {
            helper,
            workdir: workdir.clone(),
            environments: data.join("python"),
            network: self.network.iter().cloned().collect::<BTreeSet<String>>(),
            disk: self.disk_bounds(),
        };
        let mut tools: Vec<Arc<dyn NativeTool>> = rcrt_files::tools(&rcrt_files::Settings {
            folder: workdir.clone(),
            in_jail: Some(rcrt_processes::FOLDER.into()),
            min_free: self.disk_bounds().min_free,
            most_bytes: self.disk_bounds().workdir,
        });
        let own_origins = self.own_urls.clone();
        let (well_known, public_url) = (self.well_known_agents()?, self.public_url.clone());
        let a2a = rcrt_a2a::Settings { well_known, own_origins, public_url, ..Default::default() };
        tools.extend(rcrt_web::tools(egress, web));
        tools.extend(rcrt_memory::tools(large_results.clone()));
        tools.extend(rcrt_discovery::tools());
        tools.extend(rcrt_authoring::tools(Arc::new(assessor)));
        tools.extend(rcrt_schedule::tools(&schedule, &clock));
        tools.extend(rcrt_processes::deferred_tools(programs));
        let executor = self.without_disabled(BuiltinExecutor::new().with(tools));
        Ok(NativeTools { executor, schedule, clock, large_results, a2a, meaning_weight, workdir, mcp })
    }

    /// The absolute paths of `--mcp-folder`. The data folder has keys and tokens.
    fn mcp_folders(&self, data: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let own = data.canonicalize().unwrap_or_else(|_| data.to_owned());
        let absolute = |folder: &PathBuf| -> anyhow::Result<PathBuf> {
            let folder = folder.canonicalize().map_err(|error| {
                Failure::Usage(format!("--mcp-folder: {} cannot be read: {error}", folder.display()))
            })?;
            if own.starts_with(&folder) || folder.starts_with(&own) {
                fail!(Usage, "--mcp-folder: {} must not contain or be in the data folder", folder.display());
            }
            Ok(folder)
        };
        self.mcp_folders.iter().map(absolute).collect()
    }

    /// The bounds on disk use of programs and packages.
    pub fn disk_bounds(&self) -> DiskBounds {
        const MB: u64 = 1_000_000;
        DiskBounds {
            packages_set: self.packages_set_mb * MB,
            packages_total: self.packages_total_mb * MB,
            workdir: self.workdir_mb * MB,
            min_free: self.min_free_disk_mb * MB,
        }
    }

    fn without_disabled(&self, mut executor: BuiltinExecutor) -> BuiltinExecutor {
        for (name, why) in OFF {
            if !self.enabled.iter().any(|enabled| enabled == name) {
                let how = format!(
                    "{name} {why}, so it is off by default. The operator can turn it on with --enable-tool {name} (or \
                     RCRT_ENABLE_TOOLS={name}) when starting the runner."
                );
                executor = executor.without(name, how);
            }
        }
        for name in &self.disabled {
            executor = executor.without(name, format!("The operator turned it off (--disable-tool {name})."));
        }
        executor
    }
}

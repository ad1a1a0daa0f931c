//! `rcrt mcp install`: writes the configuration of an MCP client, so that it starts `rcrt mcp
//! serve`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf, absolute};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::output::Output;

/// Configure an MCP client to use the tools of the server
#[derive(Debug, Args)]
#[command(after_long_help = "\
Shows what it adds to the client's file, and then writes it. Other entries stay. The file gets no token: the client's \
process reads the one in the data folder, or gets RCRT_TOKEN from its environment.

Examples:
  rcrt mcp install claude
  rcrt mcp install cursor --file ~/.cursor/mcp.json
  rcrt --server https://tools.example.com mcp install vscode --name tools
  rcrt mcp install codex --print")]
pub struct Install {
    client: McpClient,
    /// The client's name for the server
    #[arg(long, default_value = "rcrt", value_name = "NAME", value_parser = server_name)]
    name: String,
    /// The client's file [default: .mcp.json for claude, .cursor/mcp.json for cursor,
    /// .vscode/mcp.json for vscode, ~/.codex/config.toml for codex]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Only show what would be written
    #[arg(long)]
    print: bool,
}

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum McpClient {
    Claude,
    Cursor,
    Vscode,
    Codex,
}

fn server_name(text: &str) -> Result<String, String> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=64).contains(&text.len()) && text.chars().all(is_valid) {
        return Ok(text.to_owned());
    }
    Err("must be 1 to 64 letters, digits, _ or -".to_owned())
}

impl McpClient {
    /// The file that the client reads, by default the one of a project.
    fn file(self) -> anyhow::Result<PathBuf> {
        Ok(match self {
            Self::Claude => ".mcp.json".into(),
            Self::Cursor => ".cursor/mcp.json".into(),
            Self::Vscode => ".vscode/mcp.json".into(),
            Self::Codex => {
                let folder = std::env::var_os("CODEX_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
                let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".codex"));
                folder
                    .or_else(home)
                    .context("the home folder is not known; name the file with --file")?
                    .join("config.toml")
            }
        })
    }

    /// The member of the file with the servers.
    fn member(self) -> &'static str {
        match self {
            Self::Claude | Self::Cursor => "mcpServers",
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
        }
    }
}

impl Install {
    pub fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let file = self.file.clone().map_or_else(|| self.client.file(), Ok)?;
        let present = read(&file)?;
        let (added, text) = match self.client {
            McpClient::Codex => self.toml(config, &present)?,
            _ => self.json(config, &present)?,
        };
        let is_written = !self.print && text.is_some();
        output.either(
            &json!({"file": file, "entry": added, "written": is_written}),
            &format!("{}:\n{added}", file.display()),
        )?;
        match text {
            Some(text) if !self.print => {
                write(&file, &text)?;
                output.note("Written. Restart the client to use it.");
            }
            None => output.note("The file already has this entry."),
            Some(_) => {}
        }
        Ok(())
    }

    /// How the client starts this program.
    fn command(config: &Config) -> anyhow::Result<(String, Vec<String>)> {
        let program = std::env::current_exe().context("the path of this program is not known")?;
        let data = absolute(&config.data).context("the data folder's path is not known")?;
        let server = config.server_url()?;
        let text = |path: PathBuf| path.into_os_string().into_string().ok().context("a path is not valid UTF-8");
        let data = text(data)?;
        let args = ["--server", server.as_str(), "--data", &data, "mcp", "serve"];
        Ok((text(program)?, args.map(str::to_owned).to_vec()))
    }

    /// What is added, and the whole new file; `None` if it has the entry already.
    fn json(&self, config: &Config, present: &str) -> anyhow::Result<(String, Option<String>)> {
        let (command, args) = Self::command(config)?;
        let entry = json!({"type": "stdio", "command": command, "args": args});
        let member = self.client.member();
        let added = serde_json::to_string_pretty(&json!({member: {&self.name: &entry}}))?;
        let mut whole: Map<String, Value> = if present.trim().is_empty() {
            Map::new()
        } else {
            serde_json::from_str(present).map_err(|error| Self::unreadable(&error.to_string(), &added))?
        };
        let servers = whole.entry(member).or_insert_with(|| json!({}));
        let servers =
            servers.as_object_mut().ok_or_else(|| Self::unreadable(&format!("{member} is not an object"), &added))?;
        match servers.get(&self.name) {
            Some(there) if *there == entry => return Ok((added, None)),
            Some(_) => return Err(self.taken()),
            None => servers.insert(self.name.clone(), entry),
        };
        Ok((added, Some(serde_json::to_string_pretty(&whole)? + "\n")))
    }

    /// The same for a file that can have comments: the entry is added at its end.
    fn toml(&self, config: &Config, present: &str) -> anyhow::Result<(String, Option<String>)> {
        let (command, args) = Self::command(config)?;
        let member = self.client.member();
        // Strings and lists of strings are written as in JSON.
        let added = format!("[{member}.{}]\ncommand = {}\nargs = {}\n", self.name, json!(command), json!(args));
        let mut entry = toml::Table::new();
        entry.insert("command".into(), command.into());
        entry.insert("args".into(), args.into());
        let whole: toml::Table =
            present.parse().map_err(|error: toml::de::Error| Self::unreadable(error.message(), &added))?;
        match whole.get(member).and_then(|servers| servers.get(&self.name)) {
            Some(there) if there.as_table() == Some(&entry) => return Ok((added, None)),
            Some(_) => return Err(self.taken()),
            None => {}
        }
        let before = present.trim_end();
        let gap = if before.is_empty() { "" } else { "\n\n" };
        let text = format!("{before}{gap}{added}");
        Ok((added, Some(text)))
    }

    fn unreadable(why: &str, added: &str) -> anyhow::Error {
        anyhow::anyhow!("the client's file cannot be read: {why}; add this to it yourself:\n{added}")
    }

    fn taken(&self) -> anyhow::Error {
        let name = &self.name;
        anyhow::anyhow!(
            "the client's file has another server {name}; remove it there, or choose another name with --name"
        )
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("{} cannot be read", file.display())),
    }
}

/// Replaces the file in one step, so that the client never reads a part of it.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let unwritable = || format!("{} cannot be written", file.display());
    // A symbolic link stays a link.
    let file = &std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(unwritable)?;
    }
    let mut draft = file.clone().into_os_string();
    draft.push(".rcrt-draft");
    std::fs::write(&draft, text).with_context(unwritable)?;
    if let Ok(present) = std::fs::metadata(file) {
        std::fs::set_permissions(&draft, present.permissions()).with_context(unwritable)?;
    }
    std::fs::rename(&draft, file).with_context(unwritable)
}

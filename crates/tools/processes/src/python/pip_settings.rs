//! The pip configuration of this machine: index, proxy, certificates. The pip in the jail does not
//! see the settings of the runner's user, so it receives those that say where packages come from,
//! and no others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rcrt_jail::command::FilesystemView;
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(20);
/// The settings that say where packages come from and how they are reached.
const SETTINGS: [&str; 10] = [
    "index-url",
    "extra-index-url",
    "no-index",
    "find-links",
    "trusted-host",
    "cert",
    "client-cert",
    "proxy",
    "timeout",
    "retries",
];
/// Their other names in the environment.
const OTHER_NAMES: [(&str, &str); 1] = [("default-timeout", "timeout")];
/// The sections of settings. Later ones take precedence.
const SECTIONS: [&str; 3] = ["global", "install", ":env:"];
/// Those settings that name files on this machine.
const WITH_FILES: [&str; 3] = ["find-links", "cert", "client-cert"];
/// Variables that configure the network for other programs. Some are read in lower case only.
const VARIABLES: [&str; 9] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "REQUESTS_CA_BUNDLE",
];
const VARIABLES_WITH_FILES: [&str; 3] = ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"];

/// Scripts do not see this, because the URL of an index or a proxy can contain a password.
#[derive(Clone, Default)]
pub struct PipSettings {
    settings: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
}

impl std::fmt::Debug for PipSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipSettings").finish_non_exhaustive()
    }
}

impl PipSettings {
    /// Asks this interpreter's pip, as this program's user would. Without pip there are no
    /// settings. The error means that it did not respond.
    pub async fn ask(python: &Path) -> Result<Self, String> {
        let asked = Command::new(python)
            .args(["-m", "pip", "config", "list"])
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(PATIENCE, asked).await;
        let output = output.map_err(|_| format!("pip did not list its settings within {} s", PATIENCE.as_secs()))?;
        let text = output.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let variables = VARIABLES.into_iter().chain(VARIABLES_WITH_FILES);
        let variables = variables.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect();
        Ok(Self { settings: settings(&text.unwrap_or_default()), variables })
    }

    /// A `pip.conf` with these settings.
    pub fn file(&self) -> String {
        let lines = self.settings.iter().map(|(name, value)| {
            // Several values are on separate indented lines.
            let value = value.split('\n').map(str::trim).collect::<Vec<_>>().join("\n    ");
            format!("{name} = {value}\n")
        });
        std::iter::once("[global]\n".to_owned()).chain(lines).collect()
    }

    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        self.variables.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Makes the files that the settings name visible in the jail.
    pub fn show(&self, view: &mut FilesystemView) {
        let of_settings = self.settings.iter().filter(|(name, _)| WITH_FILES.contains(&name.as_str()));
        let of_variables = self.variables.iter().filter(|(name, _)| VARIABLES_WITH_FILES.contains(&name.as_str()));
        let values = of_settings.chain(of_variables).flat_map(|(_, value)| value.split_ascii_whitespace());
        for path in values.map(|value| PathBuf::from(value.strip_prefix("file://").unwrap_or(value))) {
            if path.is_absolute() {
                view.show_unless_shown(&path);
            }
        }
    }

    /// Removes the passwords of the settings from a text.
    pub fn cleared(&self, mut text: String) -> String {
        for value in self.settings.values().chain(self.variables.values()) {
            for part in value.split_ascii_whitespace() {
                if let Some(user) = part.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')) {
                    text = text.replace(user.0, "****");
                }
            }
        }
        text
    }
}

/// Parses the output of `pip config list`: `section.name='value'`, with the value in Python syntax.
fn settings(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for section in SECTIONS {
        for line in text.lines() {
            let Some((name, value)) =
                line.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')?.split_once('='))
            else {
                continue;
            };
            let name = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name);
            if let (true, Some(value)) = (SETTINGS.contains(&name), unquoted(value)) {
                found.insert(name.to_owned(), value);
            }
        }
    }
    found
}

/// Parses a Python string literal with either kind of quotes.
fn unquoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut plain = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                'n' => plain.push('\n'),
                't' => plain.push('\t'),
                'r' => plain.push('\r'),
                other => plain.push(other),
            },
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#":env:.cert='/etc/ssl/one.crt'
:env:.default-timeout='180'
:env:.user='1'
global.cert='/etc/ssl/other.crt'
global.index-url='https://ada:se\\cret@packages.example/simple'
global.target='/home/ada'
install.find-links="\n/opt/wheels\nhttps://x.example/it's"
download.index-url='https://nowhere.example'
"#;

    #[test]
    fn only_package_source_settings_are_used() {
        let settings = settings(LIST);
        assert_eq!(settings.keys().collect::<Vec<_>>(), ["cert", "find-links", "index-url", "timeout"]);
        assert_eq!(settings["cert"], "/etc/ssl/one.crt");
        assert_eq!(settings["find-links"], "\n/opt/wheels\nhttps://x.example/it's");
        let machine = PipSettings { settings, variables: BTreeMap::new() };
        let file = machine.file();
        assert!(file.starts_with("[global]\ncert = /etc/ssl/one.crt\n"), "{file}");
        assert!(file.contains("find-links = \n    /opt/wheels\n    https://x.example/it's\n"), "{file}");
        let mut view = FilesystemView::default();
        machine.show(&mut view);
        assert!(
            view.read_only
                .iter()
                .all(|bind| ["/etc/ssl/one.crt", "/opt/wheels"].contains(&bind.inside.to_str().unwrap()))
        );
    }

    #[test]
    fn index_passwords_are_removed() {
        let machine = PipSettings { settings: settings(LIST), variables: BTreeMap::new() };
        let cleared = machine.cleared(r"ERROR: https://ada:se\cret@packages.example/simple/x: 401".into());
        assert_eq!(cleared, "ERROR: https://****@packages.example/simple/x: 401");
        assert!(!format!("{machine:?}").contains("cret"));
    }
}

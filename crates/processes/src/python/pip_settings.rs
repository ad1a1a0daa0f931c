//! How pip is set up on this machine: its index, its proxy, its certificates. The pip in the jail sees no settings of
//! the runner's user, so it is given those that say where packages come from, and no others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jail::command::FilesystemView;
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(20);
/// Settings that say where packages come from and how they are reached.
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
/// The same settings under the name that they have in the environment.
const OTHER_NAMES: [(&str, &str); 1] = [("default-timeout", "timeout")];
/// Where settings stand: the later ones win.
const SECTIONS: [&str; 3] = ["global", "install", ":env:"];
/// Of those, what names files of this machine.
const WITH_FILES: [&str; 3] = ["find-links", "cert", "client-cert"];
/// What other programs are told of the network; some are read in small letters alone.
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

/// Nothing of this is shown to scripts: an index or a proxy may come with a password.
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
    /// Asks this interpreter's pip, as this program's user would use it. Without one there are no settings.
    pub async fn ask(python: &Path) -> Self {
        let asked = Command::new(python)
            .args(["-m", "pip", "config", "list"])
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(PATIENCE, asked).await;
        let text = output.ok().and_then(Result::ok).map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let variables = VARIABLES.into_iter().chain(VARIABLES_WITH_FILES);
        let variables = variables.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect();
        Self { settings: settings(&text.unwrap_or_default()), variables }
    }

    /// A `pip.conf` with these settings.
    pub fn file(&self) -> String {
        let lines = self.settings.iter().map(|(name, value)| {
            // More than one value stands on lines of their own, set in.
            let value = value.split('\n').map(str::trim).collect::<Vec<_>>().join("\n    ");
            format!("{name} = {value}\n")
        });
        std::iter::once("[global]\n".to_owned()).chain(lines).collect()
    }

    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        self.variables.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Shows the files that the settings name.
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

    /// A text without the passwords of the settings.
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

/// Reads what `pip config list` prints: `section.name='value'`, the value as Python writes it.
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

/// A text as Python writes it, in quotes of either kind.
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
    fn where_packages_come_from_is_taken_over_and_nothing_else() {
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
    fn passwords_of_an_index_are_told_nobody() {
        let machine = PipSettings { settings: settings(LIST), variables: BTreeMap::new() };
        let told = machine.cleared(r"ERROR: https://ada:se\cret@packages.example/simple/x: 401".into());
        assert_eq!(told, "ERROR: https://****@packages.example/simple/x: 401");
        assert!(!format!("{machine:?}").contains("cret"));
    }
}

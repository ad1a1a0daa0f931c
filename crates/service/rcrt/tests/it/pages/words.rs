//! Commands, options, variables and routes in the documents.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Page, top};
use crate::program::run;

/// The contents of one command's `--help`.
pub struct Help {
    pub commands: BTreeSet<String>,
    /// Each option with its default, if any.
    pub options: BTreeMap<String, Option<String>>,
    /// The environment variables.
    pub variables: BTreeSet<String>,
}

impl Help {
    pub fn of(command: &[&str]) -> Self {
        let text = run(&[command, &["--help"]].concat()).ends_with(0).stdout;
        let section = text.split_once("\nCommands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap());
        let named = |line: &str| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')).map(first_word);
        let commands = section.lines().filter_map(named).filter(|name| name != "help").collect();
        let mut options: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut current = None;
        for line in text.lines().map(str::trim) {
            let is_head = line.starts_with("--") || line.starts_with('-') && line.contains(", --");
            if is_head && let Some(name) = line.split([' ', ',', '<', '[', '=']).find(|word| word.starts_with("--")) {
                options.insert(name.to_owned(), None);
                current = Some(name.to_owned());
            }
            if let (Some(name), Some((_, rest))) = (&current, line.split_once("[default: ")) {
                options.insert(name.clone(), rest.split(']').next().map(str::to_owned));
            }
        }
        let variables = text.split("[env: ").skip(1).map(|rest| rest.split(['=', ']']).next().unwrap().to_owned());
        Self { commands, options, variables: variables.collect() }
    }
}

/// Options of other programs: V8, cargo, NATS.
const FOREIGN_OPTIONS: [&str; 3] = ["--single-threaded", "--bench", "--jetstream"];

/// Internal commands, which no help shows.
const HIDDEN: [&str; 2] = ["sandbox-worker", "jailed-command"];

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

/// The help of every command, by its words: `[]` for the program, then `["token"]`, `["token",
/// "revoke"]`.
struct Program(BTreeMap<Vec<String>, Help>);

impl Program {
    fn read() -> Self {
        let mut all = BTreeMap::new();
        let mut open = vec![Vec::new()];
        while let Some(words) = open.pop() {
            let help = Help::of(&words.iter().map(String::as_str).collect::<Vec<_>>());
            open.extend(help.commands.iter().map(|name| [words.clone(), vec![name.clone()]].concat()));
            all.insert(words, help);
        }
        assert!(all.len() > 30, "{} commands", all.len());
        Self(all)
    }

    /// Returns the error in a command line (the part after `rcrt`).
    fn fault(&self, line: &str) -> Option<String> {
        let mut known: Vec<Vec<String>> = vec![Vec::new()];
        let mut is_command = true;
        for word in line.split_whitespace() {
            if HIDDEN.contains(&word) || matches!(word, "&&" | "||" | "|" | "<" | ">" | ";" | "#") {
                break;
            }
            let word = word.trim_matches(['[', ']', '(', ')', '"', '\'', ',', ';', ':']).trim_end_matches('.');
            if let Some(option) =
                word.strip_prefix("--").map(|rest| rest.split(['=', '|', '\'', '"', '.']).next().unwrap())
            {
                is_command = false;
                let is_there = |words: &Vec<String>| self.0[words].options.contains_key(&format!("--{option}"));
                if !option.is_empty() && !known.iter().any(is_there) {
                    return Some(format!("rcrt {known:?} has no --{option}"));
                }
            } else if is_command {
                let below = |name: &str| -> Vec<Vec<String>> {
                    let longer = known.iter().map(|words| [words.clone(), vec![name.to_owned()]].concat());
                    longer.filter(|words| self.0.contains_key(words)).collect()
                };
                let named: Vec<Vec<Vec<String>>> = word.split('|').map(below).collect();
                if named.iter().all(|found| !found.is_empty()) {
                    known = named.concat();
                    continue;
                }
                // A word in capitals is a placeholder for a command.
                let is_open =
                    known.iter().any(|words| self.0[words].commands.is_empty() || words.as_slice() == ["token"]);
                if !is_open && !word.is_empty() && !word.chars().all(|c| c.is_ascii_uppercase() || c == '…') {
                    return Some(format!("rcrt {known:?} has no command {word:?}"));
                }
                is_command = false;
            }
        }
        None
    }
}

#[test]
fn each_named_command_and_option_exists() {
    let program = Program::read();
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in Page::all() {
        let spans = page.spans();
        let code = page.code();
        // In code of other languages, `rcrt` can be a variable.
        let shell = code.iter().filter(|line| !line.contains(" = new "));
        for text in spans.iter().chain(shell) {
            let mut lines: Vec<&str> = Vec::new();
            for begin in ["rcrt ", "(rcrt ", "$ rcrt "] {
                lines.extend(text.strip_prefix(begin));
            }
            for (at, found) in text.match_indices(" rcrt ").chain(text.match_indices("(rcrt ")) {
                // The value of an option is not a command.
                if !["--compat", "-p"].iter().any(|option| text[..at].ends_with(option)) {
                    lines.push(&text[at + found.len()..]);
                }
            }
            for line in lines {
                checked += 1;
                wrong.extend(program.fault(line).map(|fault| format!("{}: {text}: {fault}", page.path)));
            }
        }
        // An option without a command must exist in some command.
        for option in spans
            .iter()
            .filter_map(|span| span.split(' ').next().filter(|word| word.starts_with("--") && *word != "--"))
        {
            let name = option.split(['=', '[', ',']).next().unwrap();
            checked += 1;
            let is_there = program.0.values().any(|help| help.options.contains_key(name));
            if !is_there && !FOREIGN_OPTIONS.contains(&name) {
                wrong.push(format!("{}: no command has {name}", page.path));
            }
        }
    }
    assert!(checked > 150, "{checked} were checked");
    assert!(wrong.is_empty(), "named, but missing: {wrong:#?}");
}

#[test]
fn each_named_variable_is_read() {
    let program = Program::read();
    let of_options: BTreeSet<&String> = program.0.values().flat_map(|help| &help.variables).collect();
    // Sources of the variables without an option, in the program or the tests.
    let others =
        ["crates/storage/wheel/src", "crates/storage/postgres/src", "crates/service/rcrt/src", "tests/hostile"];
    let mut code = String::new();
    for folder in others {
        read_all(&top().join(folder), &mut code);
    }
    for page in Page::all() {
        let words = page.text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        for name in words.filter(|word| word.starts_with("RCRT_")).map(str::to_owned) {
            let is_read = of_options.contains(&name) || code.contains(&format!("\"{name}\""));
            assert!(is_read, "{} names {name}, which nothing reads", page.path);
        }
    }
}

#[test]
fn the_reference_lists_each_command_option_and_variable() {
    let text = ["docs/reference/cli.md", "docs/reference/settings.md"].map(|path| Page::read(path).text).concat();
    // `--log-format` is not an occurrence of `--log`.
    let is_listed = |option: &String| {
        let follows = |(at, _): (usize, &str)| text[at + option.len()..].chars().next();
        text.match_indices(option.as_str()).filter_map(follows).any(|c| !c.is_ascii_alphanumeric() && c != '-')
    };
    let mut missing = BTreeSet::new();
    for (words, help) in &Program::read().0 {
        let command = format!("rcrt {}", words.join(" "));
        if help.commands.is_empty() && !text.contains(&command) {
            missing.insert(command);
        }
        let options = help.options.keys().filter(|option| !matches!(option.as_str(), "--help" | "--version"));
        missing.extend(options.filter(|option| !is_listed(option)).cloned());
        missing.extend(help.variables.iter().filter(|name| !text.contains(name.as_str())).cloned());
    }
    assert!(missing.is_empty(), "docs/reference does not list: {missing:?}");
}

#[test]
fn the_reference_lists_each_exit_status() {
    let help = run(&["--help"]).ends_with(0).stdout;
    let (_, statuses) = help.split_once("\nExit status:\n").expect("the help has the exit statuses");
    let page = Page::read("docs/reference/cli.md").text;
    let lines: Vec<&str> = statuses.lines().take_while(|line| line.starts_with("  ")).collect();
    assert!(lines.len() > 5, "{statuses}");
    for line in lines {
        let (status, what) = line.trim().split_once("  ").unwrap();
        let documented = format!("- {status}: {}.", what.split(" (").next().unwrap());
        assert!(page.contains(&documented), "docs/reference/cli.md does not have {documented:?}");
    }
}

fn read_all(folder: &std::path::Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            read_all(&entry, text);
        } else if entry.extension().is_some_and(|end| end == "rs") {
            *text += &std::fs::read_to_string(entry).unwrap();
        }
    }
}

/// Uses sdk/openapi.json, which a test of the server compares with the route table.
#[test]
fn each_named_route_exists() {
    let api: Value = serde_json::from_str(&std::fs::read_to_string(top().join("sdk/openapi.json")).unwrap()).unwrap();
    let named = |path: &str| -> String {
        let parts = path.split('/').map(|part| if part.starts_with(['{', '…', '$']) { "*" } else { part });
        parts.collect::<Vec<_>>().join("/")
    };
    let mut routes = BTreeSet::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        routes.extend(methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), named(path))));
    }
    let mut checked = 0;
    for page in Page::all() {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            for (at, found) in page.text.match_indices(&format!("{method} /")) {
                let rest = &page.text[at + found.len() - 1..];
                let path = rest.split(|c: char| c.is_whitespace() || "?`\"')|,;".contains(c)).next().unwrap();
                checked += 1;
                let route = (method.to_owned(), named(path.trim_end_matches('.')));
                assert!(routes.contains(&route), "{} names {method} {path}, which is not a route", page.path);
            }
        }
    }
    assert!(checked > 30, "{checked} routes were checked");
}

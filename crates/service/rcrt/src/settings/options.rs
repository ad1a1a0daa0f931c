//! Settings from flags and the environment, each with its source.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::{SETTINGS, SettingKind};

const HEADING: &str = "Options for the program's own tools";
const FILE: &str = "config_file";

#[derive(Debug, Clone, Default)]
pub struct SettingOptions {
    pub(super) file: Option<PathBuf>,
    /// By key: the text, and whether it is from the environment.
    pub(super) values: BTreeMap<&'static str, (String, bool)>,
}

impl Args for SettingOptions {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(FILE)
            .long("config")
            .env("RCRT_CONFIG")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help_heading(HEADING)
            .help("The configuration file, in TOML; flags and the environment take precedence [default: <data>/rcrt.toml]");
        SETTINGS.iter().fold(command.arg(file), |command, setting| {
            let default = if setting.default.is_empty() { "none" } else { setting.default };
            let arg = Arg::new(setting.option)
                .long(setting.option)
                .env(setting.env)
                .value_name(setting.value_name)
                .help_heading(HEADING)
                .help(format!("{} [default: {default}]", setting.help))
                .value_parser(|text: &str| setting.check(text));
            command.arg(match setting.kind {
                SettingKind::Models => arg.action(ArgAction::Append).value_delimiter(','),
                _ => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self { file: matches.get_one::<PathBuf>(FILE).cloned(), values: BTreeMap::new() };
        for setting in SETTINGS {
            if let Some(texts) = matches.get_many::<String>(setting.option) {
                let text = texts.map(String::as_str).collect::<Vec<_>>().join(",");
                let by_environment = matches.value_source(setting.option) == Some(ValueSource::EnvVariable);
                given.values.insert(setting.key, (text, by_environment));
            }
        }
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

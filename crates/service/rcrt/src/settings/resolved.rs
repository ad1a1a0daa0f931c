//! The effective settings, each with the source of its value.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::{SETTINGS, SettingOptions, file, model};
use crate::exit::{Failure, fail};

/// All settings, in the order of the table.
pub struct Resolved(Vec<EffectiveSetting>);

/// One setting, as `rcrt doctor` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectiveSetting {
    pub key: &'static str,
    pub value: String,
    /// `default`, `file`, `environment` or `flag`.
    pub source: &'static str,
    /// The file, variable or flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl SettingOptions {
    /// A flag takes precedence over the environment, and the environment over the file. The file is
    /// the named one, else `rcrt.toml` in the data folder if it exists.
    pub fn resolve(&self, data: &Path) -> anyhow::Result<Resolved> {
        let path = self.file.clone().unwrap_or_else(|| data.join("rcrt.toml"));
        let in_file = match std::fs::read_to_string(&path) {
            Ok(text) => file::read(&path, &text).map_err(Failure::Usage)?,
            Err(error) if error.kind() == ErrorKind::NotFound && self.file.is_none() => BTreeMap::new(),
            Err(error) => {
                fail!(Usage, "the configuration file {} cannot be read: {error}", path.display());
            }
        };
        let in_force = |setting: &super::Setting| {
            let (value, source, from) = match (self.values.get(setting.key), in_file.get(setting.key)) {
                (Some((value, true)), _) => (value.clone(), "environment", Some(setting.env.to_owned())),
                (Some((value, false)), _) => (value.clone(), "flag", Some(format!("--{}", setting.option))),
                (None, Some(value)) => (value.clone(), "file", Some(path.display().to_string())),
                (None, None) => (setting.default.to_owned(), "default", None),
            };
            EffectiveSetting { key: setting.key, value, source, from }
        };
        Ok(Resolved(SETTINGS.iter().map(in_force).collect()))
    }
}

impl Resolved {
    pub fn in_force(&self) -> &[EffectiveSetting] {
        &self.0
    }

    pub fn is_default(&self, key: &str) -> bool {
        self.0.iter().any(|setting| setting.key == key && setting.source == "default")
    }

    fn text(&self, key: &str) -> &str {
        self.0.iter().find(|setting| setting.key == key).map_or("", |setting| &setting.value)
    }

    /// Cannot fail for a value that was checked when it was read.
    fn number(&self, key: &str) -> anyhow::Result<u64> {
        self.text(key).parse().map_err(|error| anyhow::anyhow!("{key}: {error}"))
    }

    fn size(&self, key: &str) -> anyhow::Result<usize> {
        Ok(usize::try_from(self.number(key)?)?)
    }

    pub fn large_results(&self) -> anyhow::Result<rcrt_large_results::Settings> {
        let texts = self.text("results.models").split(',').filter(|text| !text.is_empty());
        let models = texts.map(|text| {
            let (model, characters) = model(text).map_err(anyhow::Error::msg)?;
            Ok((model.to_owned(), usize::try_from(characters)?))
        });
        Ok(rcrt_large_results::Settings {
            max_result_chars: self.size("results.max_chars")?,
            models: models.collect::<anyhow::Result<_>>()?,
            ..rcrt_large_results::Settings::default()
        })
    }

    /// The share of the meaning in the score of a tool.
    pub fn meaning_weight(&self) -> anyhow::Result<f64> {
        Ok(f64::from(u32::try_from(self.number("search.meaning_percent")?)?) / 100.0)
    }

    /// Without the search engine, which is set by flags.
    pub fn web(&self) -> anyhow::Result<rcrt_web::Settings> {
        Ok(rcrt_web::Settings {
            search_count: self.size("web.search_count")?,
            user_agent: self.text("web.user_agent").to_owned(),
            chunk_threshold: self.size("web.chunk_threshold")?,
            chunk_chars: self.size("web.chunk_size")?,
            chunk_keep: Duration::from_mins(self.number("web.chunk_ttl_minutes")?),
            results: self.large_results()?,
            ..rcrt_web::Settings::default()
        })
    }

    pub fn schedule(&self) -> anyhow::Result<rcrt_schedule::Settings> {
        Ok(rcrt_schedule::Settings {
            timezone: rcrt_schedule::zone(self.text("schedule.timezone")).map_err(anyhow::Error::msg)?,
            least_distance: Duration::from_secs(self.number("schedule.min_interval_seconds")?),
            ..rcrt_schedule::Settings::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn given(flags: &[&str]) -> SettingOptions {
        let command = SettingOptions::augment_args(Command::new("rcrt"));
        let matches = command.try_get_matches_from([&["rcrt"], flags].concat()).unwrap();
        SettingOptions::from_arg_matches(&matches).unwrap()
    }

    fn resolved(file: &str, flags: &[&str]) -> anyhow::Result<Resolved> {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join("rcrt.toml"), file).unwrap();
        given(flags).resolve(folder.path())
    }

    #[test]
    fn the_defaults_are_those_of_the_crates() {
        let resolved = given(&[]).resolve(Path::new("/nowhere")).unwrap();
        let (web, results) = (resolved.web().unwrap(), resolved.large_results().unwrap());
        assert_eq!(format!("{web:?}"), format!("{:?}", rcrt_web::Settings::default()));
        assert_eq!(format!("{results:?}"), format!("{:?}", rcrt_large_results::Settings::default()));
        let schedule = resolved.schedule().unwrap();
        assert_eq!(format!("{schedule:?}"), format!("{:?}", rcrt_schedule::Settings::default()));
        assert_eq!((web.chunk_threshold, web.chunk_chars, web.chunk_keep.as_secs()), (8000, 4000, 1800));
    }

    #[test]
    fn every_key_can_be_set_in_the_file() {
        let file = "[web]\nsearch_count = 7\nuser_agent = \"Example/1.0\"\nchunk_threshold = 9000\nchunk_size = 3000\n\
            chunk_ttl_minutes = 5\n[results]\nmax_chars = 16000\n[results.models]\n\"openrouter/deepseek\" = 32000\n\
            gpt-5 = 99000\n[search]\nmeaning_percent = 40\n[schedule]\ntimezone = \"europe/berlin\"\nmin_interval_seconds = 1\n";
        let resolved = resolved(file, &[]).unwrap();
        let shown: Vec<(&str, &str)> = resolved.in_force().iter().map(|one| (one.key, &*one.value)).collect();
        assert_eq!(
            shown,
            [
                ("web.search_count", "7"),
                ("web.user_agent", "Example/1.0"),
                ("web.chunk_threshold", "9000"),
                ("web.chunk_size", "3000"),
                ("web.chunk_ttl_minutes", "5"),
                ("results.max_chars", "16000"),
                ("results.models", "gpt-5=99000,openrouter/deepseek=32000"),
                ("search.meaning_percent", "40"),
                ("schedule.timezone", "Europe/Berlin"),
                ("schedule.min_interval_seconds", "1"),
            ]
        );
        assert!(resolved.in_force().iter().all(|one| one.source == "file"));
        let web = resolved.web().unwrap();
        assert_eq!((web.search_count, web.user_agent.as_str(), web.chunk_threshold), (7, "Example/1.0", 9000));
        assert_eq!((web.chunk_chars, web.chunk_keep.as_secs()), (3000, 300));
        assert_eq!(web.results.max_result_chars, 16_000);
        assert_eq!(web.results.models["openrouter/deepseek"], 32_000);
        let schedule = resolved.schedule().unwrap();
        assert_eq!((schedule.timezone.name(), schedule.least_distance.as_secs()), ("Europe/Berlin", 1));
    }

    #[test]
    fn the_documented_file_has_the_defaults() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/settings.md");
        let page = std::fs::read_to_string(page).unwrap();
        let section = page.split("## Configuration file\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let lines: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        let resolved = resolved(&lines.join("\n"), &[]).unwrap();
        for (one, setting) in resolved.in_force().iter().zip(SETTINGS) {
            assert_eq!(one.source, "file", "{} is not documented", one.key);
            let expected = if setting.default.is_empty() { "openrouter/deepseek=32000" } else { setting.default };
            assert_eq!(one.value, expected, "{}", one.key);
        }
    }

    #[test]
    fn flags_take_precedence_over_the_file() {
        let flags = ["--web-chunk-size", "1000", "--model-result-chars", "a=5000,b=6000"];
        let resolved = resolved("[web]\nchunk_size = 2000\nchunk_ttl_minutes = 9\n", &flags).unwrap();
        let of = |key: &str| resolved.in_force().iter().find(|one| one.key == key).unwrap().clone();
        assert_eq!((of("web.chunk_size").value.as_str(), of("web.chunk_size").source), ("1000", "flag"));
        assert_eq!(of("web.chunk_ttl_minutes").source, "file");
        assert_eq!(of("results.models").value, "a=5000,b=6000");
        assert_eq!(of("web.search_count").source, "default");
    }

    #[test]
    fn errors_name_the_key_in_the_file() {
        for (file, expected_text) in [
            ("[web]\nserch_count = 3\n", "web.serch_count is not a known key; did you mean web.search_count?"),
            ("[wep]\nx = 3\n", "wep.x is not a known key"),
            ("[other]\n", "other is not a known key; expected one of web."),
            ("search_count = 3\n", "search_count is not a known key"),
            ("[web]\nsearch_count = 21\n", "web.search_count: must be a whole number from 1 to 20"),
            ("[web]\nsearch_count = \"5\"\n", "web.search_count: must be a whole number from 1 to 20"),
            ("[web]\nsearch_count = 1.5\n", "web.search_count: must be a whole number"),
            ("[web]\nuser_agent = \"a\\nb\"\n", "web.user_agent: must be 1 to 200 printable"),
            ("[web]\nuser_agent = 3\n", "web.user_agent: must be a string"),
            ("[schedule]\ntimezone = \"Mars\"\n", "schedule.timezone: \"Mars\" is not an IANA time zone"),
            ("[results]\nmodels = 3\n", "results.models: must be a table"),
            ("[results.models]\nx = \"3\"\n", "results.models: x: must be a whole number"),
            ("[results.models]\n\"a,b\" = 5000\n", "results.models: must be MODEL=N"),
            ("[results.models]\nx = 1\n", "results.models: x: must be a whole number from"),
            ("[web\n", "rcrt.toml: TOML parse error at line 1"),
        ] {
            let error = resolved(file, &[]).err().unwrap().to_string();
            assert!(error.contains(expected_text) && error.contains("rcrt.toml: "), "{file:?}: {error}");
        }
        let missing = given(&["--config", "/nowhere/rcrt.toml"]).resolve(Path::new("/nowhere"));
        assert!(missing.err().unwrap().to_string().contains("/nowhere/rcrt.toml cannot be read"));
    }
}

//! The configuration file: precedence, the output of `doctor`, and errors.

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, rcrt};

/// `rcrt <arguments>` on a data folder with this configuration file.
fn with_file(text: &str, arguments: &[&str], environment: &[(&str, &str)]) -> (Ran, String) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("rcrt.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = rcrt();
    command.args(arguments).arg("--data").arg(folder.path()).envs(environment.iter().copied());
    (Ran::of(command.current_dir(&folder).output().unwrap()), file.to_str().unwrap().to_owned())
}

#[test]
fn doctor_shows_each_setting_with_its_source() {
    let text = "[web]\nsearch_count = 7\nchunk_size = 3000\nchunk_threshold = 9000\n\n[results.models]\n\
        \"openrouter/deepseek\" = 32000\n";
    let arguments = ["doctor", "--output", "json", "--web-chunk-threshold", "10000"];
    let environment = [("RCRT_WEB_CHUNK_SIZE", "2000"), ("RCRT_MIN_SCHEDULE_INTERVAL", "1")];
    let (ran, file) = with_file(text, &arguments, &environment);
    let settings = ran.json()["settings"].clone();
    let shown = |key: &str| -> [String; 3] {
        let found = settings.as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap();
        ["value", "source", "from"].map(|name| found[name].as_str().unwrap_or_default().to_owned())
    };
    for (key, value, source, from) in [
        ("web.search_count", "7", "file", &*file),
        ("web.chunk_size", "2000", "environment", "RCRT_WEB_CHUNK_SIZE"),
        ("web.chunk_threshold", "10000", "flag", "--web-chunk-threshold"),
        ("web.chunk_ttl_minutes", "30", "default", ""),
        ("results.max_chars", "64000", "default", ""),
        ("results.models", "openrouter/deepseek=32000", "file", &*file),
        ("search.meaning_percent", "70", "default", ""),
        ("schedule.timezone", "UTC", "default", ""),
        ("schedule.min_interval_seconds", "1", "environment", "RCRT_MIN_SCHEDULE_INTERVAL"),
    ] {
        assert_eq!(shown(key), [value, source, from], "{key}");
    }
    assert_eq!(settings.as_array().map(Vec::len), Some(10), "{settings}");
    let (ran, file) = with_file(text, &["doctor"], &[]);
    let line = ran.stdout.lines().find(|line| line.contains("web.search_count")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["web.search_count", "7", "file", &file]);
}

#[test]
fn an_invalid_configuration_file_is_refused_before_the_start() {
    for command in ["up", "doctor"] {
        let (ran, file) = with_file("[web]\nserch_count = 3\n", &[command], &[]);
        let ran = ran.ends_with(2);
        let says = format!("{file}: web.serch_count is not a known key; did you mean web.search_count?");
        assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    }
    let (ran, _) = with_file("", &["up", "--config", "elsewhere.toml"], &[]);
    assert!(ran.ends_with(2).stderr.contains("the configuration file elsewhere.toml cannot be read"));
    let (ran, _) = with_file("", &["up", "--web-search-count", "21"], &[]);
    assert!(ran.ends_with(2).stderr.contains("must be a whole number from 1 to 20"));
}

#[test]
fn an_empty_file_sets_nothing() {
    let (ran, _) = with_file("# nothing yet\n", &["doctor", "--output", "json"], &[]);
    let settings: Value = ran.json()["settings"].clone();
    assert!(settings.as_array().unwrap().iter().all(|setting| setting["source"] == "default"), "{settings}");
}

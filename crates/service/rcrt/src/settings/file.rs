//! The configuration file: a table of TOML for each section.

use std::collections::BTreeMap;
use std::path::Path;

use rcrt_breadcrumb::nearest_names;
use toml::{Table, Value};

use super::{SETTINGS, Setting, SettingKind};

/// Returns the text of each value in the file, by key. An error names the file, the key, and what
/// is accepted.
pub(super) fn read(path: &Path, text: &str) -> Result<BTreeMap<&'static str, String>, String> {
    let named = |why: String| format!("{}: {why}", path.display());
    let table: Table = text.parse().map_err(|error: toml::de::Error| named(error.to_string().trim_end().to_owned()))?;
    let mut values = BTreeMap::new();
    for (section, value) in &table {
        let Value::Table(entries) = value else {
            return Err(named(unknown(section)));
        };
        for (name, value) in entries {
            let key = format!("{section}.{name}");
            let setting = SETTINGS.iter().find(|setting| setting.key == key).ok_or_else(|| named(unknown(&key)))?;
            let text = text_of(setting, value).map_err(|why| named(format!("{key}: {why}")))?;
            values.insert(setting.key, text);
        }
        if entries.is_empty() && !SETTINGS.iter().any(|setting| setting.key.split('.').next() == Some(section)) {
            return Err(named(unknown(section)));
        }
    }
    Ok(values)
}

fn unknown(key: &str) -> String {
    let known = || SETTINGS.iter().map(|setting| setting.key);
    let nearest = nearest_names(key, known());
    let hint = if nearest.is_empty() {
        format!("expected one of {}", known().collect::<Vec<_>>().join(", "))
    } else {
        format!("did you mean {}?", nearest.join(" or "))
    };
    format!("{key} is not a known key; {hint}")
}

fn text_of(setting: &Setting, value: &Value) -> Result<String, String> {
    match (setting.kind, value) {
        (SettingKind::Number(..), Value::Integer(number)) => setting.check(&number.to_string()),
        (SettingKind::Number(..), _) => setting.check(""),
        (SettingKind::UserAgent | SettingKind::Zone, Value::String(text)) => setting.check(text),
        (SettingKind::UserAgent | SettingKind::Zone, _) => Err("must be a string in quotes".to_owned()),
        (SettingKind::Models, Value::Table(models)) => {
            let entry = |(model, characters): (&String, &Value)| match characters {
                Value::Integer(number) => setting.check(&format!("{model}={number}")),
                _ => Err(format!("{model}: must be a whole number of characters")),
            };
            Ok(models.iter().map(entry).collect::<Result<Vec<_>, _>>()?.join(","))
        }
        (SettingKind::Models, _) => {
            Err("must be a table of models, such as \"openrouter/deepseek\" = 32000".to_owned())
        }
    }
}

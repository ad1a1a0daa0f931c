//! How many characters of a result are returned at once.

use std::collections::BTreeMap;
use std::time::Duration;

use rcrt_breadcrumb::ToolRequest;

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Characters of a result that are returned at once, if neither the request nor its model says
    /// otherwise. Default 64,000.
    pub max_result_chars: usize,
    /// Characters by prefix of a model's name, with its provider (`openrouter/deepseek`) or
    /// without. The longest prefix wins. They override the table of known models. Default: none.
    pub models: BTreeMap<String, usize>,
    /// How long the chunks of a large result are stored. Default 20 minutes.
    pub keep: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_result_chars: 64_000, models: BTreeMap::new(), keep: Duration::from_mins(20) }
    }
}

/// The minimum size of a chunk in characters, except for the last one.
pub const MIN_CHUNK_CHARS: usize = 20_000;
/// The maximum size of a chunk, whatever the threshold is: even if each character needs the longest
/// JSON escape, it fits into a record.
pub const MAX_CHUNK_CHARS: usize = 600_000;
/// The maximum size of a result in bytes of JSON, which leaves room for the rest of the response.
/// As a number of characters it is no limit: a longer result is truncated in any case.
pub const MAX_RESULT_BYTES: usize = rcrt_breadcrumb::MAX_RECORD_BYTES - 256 * 1024;

/// The tools that read stored results. They can return the smallest chunk whole, whatever the
/// caller's threshold is. Otherwise their result would be stored and chunked again.
const READERS: &[&str] = &["get_from_working_memory", "result_search", "result_slice", "result_jsonpath"];

/// Characters by prefix of a model's name; the longest prefix wins. An eighth of the model's
/// context at four characters per token, at least the smallest chunk.
const MODELS: &[(&str, usize)] = &[
    ("claude-", 100_000),
    ("claude-2", 50_000),
    ("claude-instant", 50_000),
    ("command-r", 64_000),
    ("deepseek", 32_000),
    ("gemini-", 200_000),
    ("gemini-1.0", 20_000),
    ("gemma", 20_000),
    ("gpt-3.5", 20_000),
    ("gpt-4", 20_000),
    ("gpt-4-32k", 20_000),
    ("gpt-4-turbo", 64_000),
    ("gpt-4.1", 200_000),
    ("gpt-4o", 64_000),
    ("gpt-5", 128_000),
    ("llama-2", 20_000),
    ("llama-3", 64_000),
    ("llama3", 64_000),
    ("mistral", 20_000),
    ("mistral-large", 64_000),
    ("mixtral", 20_000),
    ("o1", 100_000),
    ("o3", 100_000),
    ("o4", 100_000),
    ("phi-", 20_000),
    ("qwen", 20_000),
];

impl Settings {
    /// The request's value, else that of its model, else the operator's default.
    pub fn threshold(&self, request: &ToolRequest) -> usize {
        let asked = request.max_result_chars.and_then(|characters| usize::try_from(characters).ok());
        let model = request.model.as_deref();
        asked.or_else(|| self.by_operator(model?)).or_else(|| by_model(model?)).unwrap_or(self.max_result_chars)
    }

    fn by_operator(&self, model: &str) -> Option<usize> {
        let model = model.trim().to_ascii_lowercase();
        let name = model.rsplit('/').next().unwrap_or(&model);
        let begins = |prefix: &str| model.starts_with(prefix) || name.starts_with(prefix);
        let fitting = self.models.iter().filter(|(prefix, _)| begins(&prefix.to_ascii_lowercase()));
        fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, characters)| *characters)
    }

    /// The maximum number of characters that this tool can return.
    pub fn most_for(&self, tool: &str, request: &ToolRequest) -> usize {
        let threshold = self.threshold(request);
        if READERS.contains(&tool) { threshold.max(MIN_CHUNK_CHARS) } else { threshold }
    }
}

/// The size of chunks for callers with this threshold.
pub(crate) fn chunk_chars(threshold: usize) -> usize {
    threshold.clamp(MIN_CHUNK_CHARS, MAX_CHUNK_CHARS)
}

/// The name can have its provider as a prefix (`anthropic/claude-…`).
fn by_model(model: &str) -> Option<usize> {
    let name = model.rsplit('/').next().unwrap_or(model).trim().to_ascii_lowercase();
    let fitting = MODELS.iter().filter(|(prefix, _)| name.starts_with(prefix));
    fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, characters)| *characters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_setting_overrides_the_model_table() {
        let models = [("openrouter/DeepSeek", 32_000), ("gpt-4", 9000), ("gpt-4o", 10_000)];
        let models = models.map(|(model, characters)| (model.to_owned(), characters)).into();
        let settings = Settings { models, ..Settings::default() };
        assert_eq!(settings.by_operator("openrouter/deepseek/deepseek-chat"), Some(32_000));
        assert_eq!(settings.by_operator("openai/GPT-4o-mini"), Some(10_000));
        assert_eq!(settings.by_operator("gpt-4-0613"), Some(9000));
        assert_eq!(settings.by_operator("claude-3"), None);
    }

    #[test]
    fn longest_prefix_of_a_model_name_wins() {
        for (model, characters) in [
            ("claude-sonnet-4-5", Some(100_000)),
            ("anthropic/Claude-3-opus", Some(100_000)),
            ("gpt-4", Some(20_000)),
            ("gpt-4-0613", Some(20_000)),
            ("gpt-4o-mini", Some(64_000)),
            ("models/gemini-2.5-pro", Some(200_000)),
            ("something-else", None),
            ("", None),
        ] {
            assert_eq!(by_model(model), characters, "{model}");
        }
        assert!(MODELS.iter().all(|(_, characters)| *characters >= MIN_CHUNK_CHARS));
    }
}

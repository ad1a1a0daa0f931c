//! The operator's settings of native tools: from a flag, the environment, or the configuration
//! file. One table lists them, and flags, file and `rcrt doctor` use it.

mod file;
mod options;
mod resolved;

pub use options::SettingOptions;
pub use resolved::{EffectiveSetting, Resolved};

/// One setting.
pub struct Setting {
    /// `section.name`, as in the file.
    pub key: &'static str,
    /// The flag, without its `--`.
    option: &'static str,
    env: &'static str,
    value_name: &'static str,
    help: &'static str,
    default: &'static str,
    kind: SettingKind,
}

#[derive(Clone, Copy)]
enum SettingKind {
    /// A whole number between these bounds.
    Number(u64, u64),
    /// The value of a `User-Agent` header.
    UserAgent,
    /// An IANA name.
    Zone,
    /// Characters by model. As text: `MODEL=N`, separated by commas.
    Models,
}

/// Characters of a result, with the same bounds as in requests.
const CHARACTERS: SettingKind =
    SettingKind::Number(*rcrt_breadcrumb::RESULT_CHARS.start(), *rcrt_breadcrumb::RESULT_CHARS.end());

pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "web.search_count",
        option: "web-search-count",
        env: "RCRT_WEB_SEARCH_COUNT",
        value_name: "N",
        help: "Default number of results of web_search",
        default: "5",
        kind: SettingKind::Number(1, 20),
    },
    Setting {
        key: "web.user_agent",
        option: "web-user-agent",
        env: "RCRT_WEB_USER_AGENT",
        value_name: "TEXT",
        help: "The User-Agent of web_fetch and web_browse",
        default: concat!("rcrt/", env!("CARGO_PKG_VERSION")),
        kind: SettingKind::UserAgent,
    },
    Setting {
        key: "web.chunk_threshold",
        option: "web-chunk-threshold",
        env: "RCRT_WEB_CHUNK_THRESHOLD",
        value_name: "N",
        help: "Maximum characters of a page that web_browse returns whole; longer pages are stored in chunks, or truncated",
        default: "8000",
        kind: SettingKind::Number(500, 1_000_000),
    },
    Setting {
        key: "web.chunk_size",
        option: "web-chunk-size",
        env: "RCRT_WEB_CHUNK_SIZE",
        value_name: "N",
        help: "Maximum characters of one chunk of a page",
        default: "4000",
        kind: SettingKind::Number(500, 600_000),
    },
    Setting {
        key: "web.chunk_ttl_minutes",
        option: "web-chunk-ttl-minutes",
        env: "RCRT_WEB_CHUNK_TTL_MINUTES",
        value_name: "N",
        help: "How long the chunks of a page stay in working memory",
        default: "30",
        kind: SettingKind::Number(1, 10_080),
    },
    Setting {
        key: "results.max_chars",
        option: "max-result-chars",
        env: "RCRT_MAX_RESULT_CHARS",
        value_name: "N",
        help: "Characters of a result that a caller gets at once, unless its request or its model says otherwise",
        default: "64000",
        kind: CHARACTERS,
    },
    Setting {
        key: "results.models",
        option: "model-result-chars",
        env: "RCRT_MODEL_RESULT_CHARS",
        value_name: "MODEL=N",
        help: "The same for models with this name prefix, such as openrouter/deepseek=32000. Can be repeated, or separated by commas",
        default: "",
        kind: SettingKind::Models,
    },
    Setting {
        key: "search.meaning_percent",
        option: "search-meaning-percent",
        env: "RCRT_SEARCH_MEANING_PERCENT",
        value_name: "N",
        help: "How much the meaning of a tool counts when tools are searched for, in percent. The rest is how well its words fit",
        default: "70",
        kind: SettingKind::Number(0, 100),
    },
    Setting {
        key: "schedule.timezone",
        option: "timezone",
        env: "RCRT_TIMEZONE",
        value_name: "ZONE",
        help: "Default time zone of scheduled tasks, such as Europe/Berlin",
        default: "UTC",
        kind: SettingKind::Zone,
    },
    Setting {
        key: "schedule.min_interval_seconds",
        option: "min-schedule-interval",
        env: "RCRT_MIN_SCHEDULE_INTERVAL",
        value_name: "SECONDS",
        help: "The shortest interval between two fires of a scheduled task; 1 allows every second",
        default: "10",
        kind: SettingKind::Number(1, 60),
    },
];

impl Setting {
    /// Returns the normalised text, or the error.
    fn check(&self, text: &str) -> Result<String, String> {
        match self.kind {
            SettingKind::Number(least, most) => number(text, least, most).map(|number| number.to_string()),
            SettingKind::UserAgent if is_header_text(text) => Ok(text.to_owned()),
            SettingKind::UserAgent => Err("must be 1 to 200 printable ASCII characters".to_owned()),
            SettingKind::Zone => rcrt_schedule::zone(text).map(|zone| zone.name().to_owned()),
            SettingKind::Models => model(text).map(|(model, characters)| format!("{model}={characters}")),
        }
    }
}

fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("must be a whole number from {least} to {most}"))
}

fn is_header_text(text: &str) -> bool {
    (1..=200).contains(&text.len()) && text.trim() == text && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// `MODEL=N`.
fn model(text: &str) -> Result<(&str, u64), String> {
    let wrong = || "must be MODEL=N, such as openrouter/deepseek=32000".to_owned();
    let (model, characters) = text.rsplit_once('=').ok_or_else(wrong)?;
    if model.trim().is_empty() || model.trim() != model || model.contains([',', '=']) {
        return Err(wrong());
    }
    let bounds = rcrt_breadcrumb::RESULT_CHARS;
    number(characters, *bounds.start(), *bounds.end())
        .map(|characters| (model, characters))
        .map_err(|why| format!("{model}: {why}"))
}

//! The operator's settings.

use std::path::PathBuf;
use std::time::Duration;

use rcrt_jail::command::Helper;

#[derive(Debug, Clone)]
pub struct Settings {
    /// How this program starts itself as the jail's helper.
    pub helper: Helper,
    /// Each stdio server gets a working folder below this one, which it sees as `/work`.
    pub folder: PathBuf,
    /// Folders of this machine whose files that everybody can read are shown to stdio servers, such
    /// as those of their programs. Without links in their paths.
    pub readable: Vec<PathBuf>,
    /// The most bytes of the working folder of one server. 0: no limit.
    pub most_bytes: u64,
    /// How often the working folder of a program is measured.
    pub measure_every: Duration,
    /// How often the tools of a server are listed if it announces no change.
    pub refresh_every: Duration,
    /// The shortest time until they are listed again, if the server says how long a list is valid.
    pub shortest_refresh: Duration,
    /// The tool that asks a model for the summary of a server without instructions. Its input has
    /// `messages`, its output `content`.
    pub summary_tool: Option<String>,
    /// The pauses between attempts to connect.
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Settings {
    pub fn new(helper: Helper, folder: PathBuf) -> Self {
        Self {
            helper,
            folder,
            readable: Vec::new(),
            most_bytes: 10_000_000_000,
            measure_every: Duration::from_secs(10),
            summary_tool: None,
            refresh_every: Duration::from_mins(5),
            shortest_refresh: Duration::from_secs(30),
            first_pause: Duration::from_secs(2),
            longest_pause: Duration::from_mins(1),
        }
    }
}

//! Writes blocks of text. Each line has the prefixes of the lists and quotes around it.

/// The most bytes of output. A page of the allowed size needs more only if it is hostile.
const MAX_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// The next block starts on the next line.
    Line,
    /// An empty line precedes the next block.
    Blank,
}

struct Prefix {
    /// The prefix of the first line.
    first: String,
    /// The prefix of later lines.
    rest: String,
    is_used: bool,
}

pub(super) struct Writer {
    out: String,
    prefixes: Vec<Prefix>,
    gap: Gap,
}

impl Writer {
    pub fn new() -> Self {
        Self { out: String::new(), prefixes: Vec::new(), gap: Gap::Line }
    }

    pub fn is_full(&self) -> bool {
        self.out.len() > MAX_BYTES
    }

    pub fn enter(&mut self, first: impl Into<String>, rest: impl Into<String>) {
        self.prefixes.push(Prefix { first: first.into(), rest: rest.into(), is_used: false });
    }

    pub fn leave(&mut self) {
        self.prefixes.pop();
    }

    /// Requests a gap before the next block; the largest request wins. There is none directly after
    /// a list mark.
    pub fn want(&mut self, gap: Gap) {
        if self.prefixes.last().is_none_or(|prefix| prefix.is_used || prefix.first == prefix.rest) {
            self.gap = self.gap.max(gap);
        }
    }

    /// Starts the next block on the next line, whatever was requested.
    pub fn tighten(&mut self) {
        self.gap = Gap::Line;
    }

    /// Writes a block.
    pub fn block(&mut self, text: &str) {
        if self.is_full() {
            return;
        }
        if self.gap == Gap::Blank && !self.out.is_empty() {
            let used = self.prefixes.iter().filter(|prefix| prefix.is_used);
            let prefix: String = used.map(|prefix| prefix.rest.as_str()).collect();
            self.out.push_str(prefix.trim_end());
            self.out.push('\n');
        }
        self.gap = Gap::Line;
        for line in text.split('\n') {
            let start = self.out.len();
            for prefix in &mut self.prefixes {
                self.out.push_str(if prefix.is_used { &prefix.rest } else { &prefix.first });
                prefix.is_used = true;
            }
            self.out.push_str(line);
            let end = self.out[start..].trim_end().len();
            self.out.truncate(start + end);
            self.out.push('\n');
        }
    }

    pub fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end().len());
        self.out
    }
}

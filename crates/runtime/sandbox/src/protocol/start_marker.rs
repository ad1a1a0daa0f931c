//! The mark after which a process begins to read, if its worker's socket was used by another
//! process before.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};

/// Random bytes that a process draws when it starts, and that the parent sends back before its
/// first frame to it. What was sent to the process before and is still on the socket comes before
/// the mark and is discarded unread. None of it can be taken for a frame, whatever a tool wrote
/// into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartMarker([u8; 16]);

impl StartMarker {
    /// `bytes` must be random, and drawn by the process itself after the previous one has exited.
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads up to the end of the mark; false if the stream ends before.
    pub fn skip_to(&self, from: &mut impl BufRead) -> io::Result<bool> {
        let mut last = [0; 16];
        let mut read = 0_usize;
        loop {
            let piece = match from.fill_buf() {
                Ok([]) => return Ok(false),
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for (taken, byte) in piece.iter().enumerate() {
                last.rotate_left(1);
                last[15] = *byte;
                read += 1;
                if read >= last.len() && last == self.0 {
                    from.consume(taken + 1);
                    return Ok(true);
                }
            }
            let taken = piece.len();
            from.consume(taken);
        }
    }
}

//! The start-up snapshot: the web platform, evaluated once. Fresh isolates start from it in
//! milliseconds.

use std::os::unix::net::UnixStream;

use rcrt_sandbox::protocol::{Frame, Kind, MAX_PAYLOAD_BYTES, encode, write_frame};

use crate::WorkerError;

/// Sends the snapshot in chunks, or the reason why there is none.
pub fn make_and_send(mut socket: UnixStream) -> Result<(), WorkerError> {
    let made = make();
    let (bytes, reason) = match made {
        Ok(bytes) => (bytes, None),
        Err(reason) => (Box::default(), Some(reason)),
    };
    for piece in bytes.chunks(MAX_PAYLOAD_BYTES) {
        write_frame(&mut socket, &Frame::new(Kind::Snapshot, 0, 0, piece.to_vec()))?;
    }
    write_frame(&mut socket, &Frame::new(Kind::SnapshotEnd, 0, 0, encode(&reason)?))?;
    Ok(())
}

pub fn make() -> Result<Box<[u8]>, String> {
    use deno_core::{JsRuntimeForSnapshot, RuntimeOptions};

    use crate::extensions::{self, Scripts};

    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|e| e.to_string())?;
    let _entered = tokio.enter();
    let runtime = JsRuntimeForSnapshot::try_new(RuntimeOptions {
        extensions: extensions::all(Scripts::Included),
        ..RuntimeOptions::default()
    })
    .map_err(|error| error.to_string())?;
    Ok(runtime.snapshot())
}

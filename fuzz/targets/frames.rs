//! The worker's side of the socket is untrusted once an attacker controls the engine. With any
//! bytes, both readers of frames agree, and accepted frames are written back unchanged.
//!
//! Input: one byte that says how the rest is split, then the stream.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use rcrt_sandbox::protocol::{Frame, FrameCodec, FrameError, Kind, MAX_PAYLOAD_BYTES, read_frame, write_frame};
use tokio_util::codec::{Decoder, Encoder};

/// How a stream ends, without the error message.
#[derive(Debug, PartialEq)]
enum StreamEnd {
    Between,
    Within,
    TooLong(usize),
    TooShort(usize),
    UnknownKind(u8),
}

impl From<FrameError> for StreamEnd {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLong(bytes) => Self::TooLong(bytes),
            FrameError::TooShort(bytes) => Self::TooShort(bytes),
            FrameError::UnknownKind(kind) => Self::UnknownKind(kind),
            FrameError::Io(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
                Self::Within
            }
        }
    }
}

fn blocking(mut stream: &[u8]) -> (Vec<Frame>, StreamEnd) {
    let mut frames = Vec::new();
    loop {
        match read_frame(&mut stream) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, StreamEnd::Between),
            Err(error) => return (frames, error.into()),
        }
    }
}

fn in_pieces(stream: &[u8], size: usize) -> (Vec<Frame>, StreamEnd) {
    let (mut frames, mut buffer) = (Vec::new(), BytesMut::new());
    for piece in stream.chunks(size) {
        buffer.extend_from_slice(piece);
        loop {
            match FrameCodec.decode(&mut buffer) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, error.into()),
            }
        }
    }
    (frames, if buffer.is_empty() { StreamEnd::Between } else { StreamEnd::Within })
}

fuzz_target!(|input: &[u8]| {
    let Some((cut, stream)) = input.split_first() else { return };
    let (frames, end) = blocking(stream);
    assert_eq!(in_pieces(stream, usize::from(*cut) + 1), (frames.clone(), end));

    let (mut written, mut encoded) = (Vec::new(), BytesMut::new());
    for frame in frames {
        assert!(frame.payload.len() <= MAX_PAYLOAD_BYTES);
        write_frame(&mut written, &frame).expect("what was read can be written");
        if let (Kind::Credit, Some(bytes)) = (frame.kind, frame.credited()) {
            assert_eq!(Frame::credit(frame.call, frame.op, bytes), frame);
        }
        FrameCodec.encode(frame, &mut encoded).expect("what was read can be encoded");
    }
    assert!(stream.starts_with(&written));
    assert_eq!(written, encoded);
});

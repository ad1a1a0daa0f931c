//! Frames on both sides of the socket.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use rcrt_sandbox::protocol::{
    Frame, FrameCodec, FrameError, HEADER_BYTES, Kind, MAX_PAYLOAD_BYTES, read_frame, write_frame,
};
use tokio_util::codec::{Decoder, Encoder};

const KINDS: [Kind; 23] = [
    Kind::Begin,
    Kind::Hello,
    Kind::Call,
    Kind::Cancel,
    Kind::Done,
    Kind::Console,
    Kind::ConsoleFull,
    Kind::Api,
    Kind::ApiReply,
    Kind::Fetch,
    Kind::FetchReply,
    Kind::Abort,
    Kind::BodyChunk,
    Kind::BodyEnd,
    Kind::Credit,
    Kind::Snapshot,
    Kind::SnapshotEnd,
    Kind::Started,
    Kind::Process,
    Kind::Progress,
    Kind::Ready,
    Kind::CodeCache,
    Kind::Spent,
];

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let payload = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..64),
        proptest::collection::vec(any::<u8>(), 16_000..17_000)
    ];
    let frame = (0..KINDS.len(), any::<u32>(), any::<u32>(), payload)
        .prop_map(|(kind, call, op, payload)| Frame::new(KINDS[kind], call, op, payload));
    proptest::collection::vec(frame, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_frames_are_read_unchanged(frames in frames(), cut in 1_usize..100) {
        let mut blocking = Vec::new();
        let mut encoded = BytesMut::new();
        for frame in &frames {
            write_frame(&mut blocking, frame).unwrap();
            FrameCodec.encode(frame.clone(), &mut encoded).unwrap();
        }
        prop_assert_eq!(&blocking[..], &encoded[..]);

        let mut from = &blocking[..];
        for frame in &frames {
            prop_assert_eq!(&read_frame(&mut from).unwrap().unwrap(), frame);
        }
        prop_assert!(read_frame(&mut from).unwrap().is_none());

        // The same in chunks of any size.
        let mut buffer = BytesMut::new();
        let mut decoded = Vec::new();
        for piece in blocking.chunks(cut) {
            buffer.extend_from_slice(piece);
            while let Some(frame) = FrameCodec.decode(&mut buffer).unwrap() {
                decoded.push(frame);
            }
        }
        prop_assert_eq!(decoded, frames);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn random_bytes_are_an_error_or_an_incomplete_frame(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut buffer = BytesMut::from(&noise[..]);
        while let Ok(Some(frame)) = FrameCodec.decode(&mut buffer) {
            prop_assert!(frame.payload.len() <= MAX_PAYLOAD_BYTES);
        }
        let mut from = &noise[..];
        while let Ok(Some(frame)) = read_frame(&mut from) {
            prop_assert!(frame.payload.len() <= MAX_PAYLOAD_BYTES);
        }
    }
}

fn announced(length: u32) -> Vec<u8> {
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend([0; 32]);
    bytes
}

#[test]
fn an_invalid_length_is_refused_before_memory_is_allocated() {
    for (length, is_right) in [
        (0, false),
        (HEADER_BYTES as u32 - 1, false),
        ((HEADER_BYTES + MAX_PAYLOAD_BYTES) as u32 + 1, false),
        (u32::MAX, false),
        (HEADER_BYTES as u32 + 1000, true),
    ] {
        let bytes = announced(length);
        let decoded = FrameCodec.decode(&mut BytesMut::from(&bytes[..]));
        assert_eq!(decoded.is_ok(), is_right, "{length}");
        let read = read_frame(&mut &bytes[..]);
        assert!(matches!(read, Err(FrameError::Io(_))) == is_right, "{length}: {read:?}");
    }
}

#[test]
fn unknown_kinds_are_refused() {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, &Frame::new(Kind::Hello, 1, 2, "x")).unwrap();
    for kind in [0, 24, 255] {
        bytes[4] = kind;
        assert!(matches!(read_frame(&mut &bytes[..]), Err(FrameError::UnknownKind(found)) if found == kind));
    }
}

#[test]
fn a_stream_that_ends_within_a_frame_is_an_error() {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, &Frame::new(Kind::Hello, 1, 2, "payload")).unwrap();
    for length in 1..bytes.len() {
        assert!(matches!(read_frame(&mut &bytes[..length]), Err(FrameError::Io(_))), "{length}");
    }
}

#[test]
fn too_large_a_payload_is_not_written() {
    let frame = Frame::new(Kind::Done, 1, 0, Bytes::from(vec![0; MAX_PAYLOAD_BYTES + 1]));
    assert!(matches!(write_frame(&mut Vec::new(), &frame), Err(FrameError::TooLong(_))));
}

#[test]
fn a_credit_has_a_number_of_bytes() {
    assert_eq!(Frame::credit(1, 2, 4096).credited(), Some(4096));
    assert_eq!(Frame::new(Kind::Credit, 1, 2, "abc").credited(), None);
}

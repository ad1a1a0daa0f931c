//! The request for a worker, from the runner to the zygote: one byte, sent with the worker's
//! descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

const DESCRIPTORS: usize = 2;

/// The descriptors of a new worker.
#[derive(Debug)]
pub struct ForkRequest<Descriptor = OwnedFd> {
    pub socket: Descriptor,
    /// Its standard error.
    pub stderr: Descriptor,
}

impl<Descriptor: AsFd> ForkRequest<Descriptor> {
    pub fn send(&self, zygote: &UnixStream) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [self.socket.as_fd(), self.stderr.as_fd()];
        if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        retry_on_intr(|| sendmsg(zygote, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL))?;
        Ok(())
    }
}

impl ForkRequest {
    /// Waits for the next request; `None` if the runner closed the socket.
    pub fn receive(runner: &UnixStream) -> io::Result<Option<Self>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let received = retry_on_intr(|| {
            recvmsg(runner, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        })?;
        if received.bytes == 0 {
            return Ok(None);
        }
        let handed = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let mut handed = handed.flatten();
        match (handed.next(), handed.next()) {
            (Some(socket), Some(stderr)) => Ok(Some(Self { socket, stderr })),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a fork request without its descriptors")),
        }
    }
}

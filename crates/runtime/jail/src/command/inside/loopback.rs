//! Brings up loopback: in an isolated network, programs in the jail still reach each other by it.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::libc;

/// Brings up the only interface of a new network namespace.
pub fn up() -> Result<(), String> {
    // The ioctl works on any socket.
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(|error| error.to_string())?;
    // SAFETY: the structure has only numbers, for which zero is a valid value.
    #[allow(unsafe_code)]
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (target, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *target = (*byte).cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the kernel reads one structure of this kind.
    #[allow(unsafe_code)]
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().to_string()) }
}

//! Sends frames and descriptors between gateway, supervisor and jail.
//!
//! A frame is the header and body of [`crate::wire`]; its descriptors are attached to the first byte.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::UnixStream,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use crate::wire::{self, HEADER};

/// A received frame.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) kind: u8,
    pub(crate) body: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Sends a whole frame with its descriptors.
pub(crate) fn send(socket: &UnixStream, frame: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let sent = send_some(socket.as_fd(), frame, descriptors)?;
    let rest = frame.get(sent..).unwrap_or_default();
    (&*socket).write_all(rest)
}

/// Forwards a received frame.
pub(crate) fn forward(socket: &UnixStream, parcel: &Parcel) -> io::Result<()> {
    let length = u32::try_from(parcel.body.len()).map_err(io::Error::other)?;
    let frame = [length.to_le_bytes().as_slice(), &[parcel.kind], &parcel.body].concat();
    let descriptors: Vec<BorrowedFd<'_>> = parcel.descriptors.iter().map(AsFd::as_fd).collect();
    send(socket, &frame, &descriptors)
}

/// Sends as much as the socket accepts at once, and all descriptors with the first byte.
pub(crate) fn send_some(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    if descriptors.len() > MOST_DESCRIPTORS {
        return Err(io::Error::other("too many descriptors for one frame"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, FLAGS) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => return outcome.map_err(Into::into),
        }
    }
}

/// Receives the next frame; `None` if the other side has ended.
pub(crate) fn receive(socket: &UnixStream) -> io::Result<Option<Parcel>> {
    let mut descriptors = Vec::new();
    let mut header = [0; HEADER];
    let got = receive_some(socket.as_fd(), &mut header, &mut descriptors)?;
    if got == 0 {
        return Ok(None);
    }
    (&*socket).read_exact(header.get_mut(got..).unwrap_or_default())?;
    let (kind, length) = wire::body_length(header).map_err(io::Error::other)?;
    let mut body = vec![0; length.min(MOST_BYTES)];
    if length > MOST_BYTES {
        return Err(io::Error::other("the frame is longer than allowed"));
    }
    (&*socket).read_exact(&mut body)?;
    Ok(Some(Parcel { kind, body, descriptors }))
}

/// Receives some bytes and the descriptors attached to them.
pub(crate) fn receive_some(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => break outcome?,
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    Ok(got.bytes)
}

/// Two of the flags have no effect here and only mark our own messages. If a command uses the same flags, its
/// datagram is not reported.
pub(crate) const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::CONFIRM).union(SendFlags::DONTROUTE);

/// The kernel passes at most 253 at once.
pub(crate) const MOST_DESCRIPTORS: usize = 200;

/// Enough for the longest argument list and environment that the kernel accepts.
pub(crate) const MOST_BYTES: usize = 4 << 20;

//! Mount and interface requests that rustix lacks.

use std::{
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::mount::MountAttrFlags;

/// Whether a request includes the mounts below a mount.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    This,
    AllBelow,
}

/// Adds attributes to a mount and removes none. The mount becomes private to its namespace.
pub(crate) fn restrict_mount(
    mount: BorrowedFd<'_>,
    attributes: MountAttrFlags,
    reach: Reach,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes.bits().into(),
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let flags = match reach {
        Reach::This => libc::AT_EMPTY_PATH,
        Reach::AllBelow => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: the path is an empty, zero-terminated string. The kernel reads as many bytes of `attributes` as the
    // last argument says, which is its size.
    super::done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
}

/// Brings up the loopback interface of the network namespace that `socket` belongs to.
pub(crate) fn raise_loopback(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the kernel reads one `ifreq`, whose name is zero-terminated, and writes none for this request.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    super::done(outcome.into())
}

/// `IFF_UP`, in the type of the field in an interface request.
const UP: libc::c_short = 1;

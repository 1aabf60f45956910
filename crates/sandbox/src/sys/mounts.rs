//! Mounts and interfaces: the two requests for which rustix has no function.

use std::{
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::mount::MountAttrFlags;

/// Whether mounts below a mount are meant too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    This,
    AllBelow,
}

/// Adds attributes to a mount; takes none away. The mount becomes private to its namespace.
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
    // SAFETY: the path is an empty string that ends with a zero, and the kernel reads as many bytes of `attributes` as
    // the last argument says, which is its size.
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

/// Switches on the loopback interface of the network that `socket` belongs to.
pub(crate) fn raise_loopback(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the kernel reads one `ifreq`, whose name ends with a zero, and writes none for this request.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    super::done(outcome.into())
}

/// `IFF_UP`, in the type that an interface request has it in.
const UP: libc::c_short = 1;

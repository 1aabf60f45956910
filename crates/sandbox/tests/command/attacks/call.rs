//! Raw system calls of the attacker: arguments of every kind as the numbers that the kernel takes.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::AsRawFd,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use crate::raw;

/// A system call with up to six arguments.
pub fn call(number: libc::c_long, arguments: &[usize]) -> io::Result<usize> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    raw::call(number, all)
}

pub fn path(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).unwrap()
}

/// The address of a string, which must outlive the call.
pub fn at(text: &CStr) -> usize {
    text.as_ptr().expose_provenance()
}

/// The address of a value, which must outlive the call.
pub fn of<T: ?Sized>(thing: &mut T) -> usize {
    (&raw mut *thing).cast::<u8>().expose_provenance()
}

pub fn descriptor(file: &impl AsRawFd) -> usize {
    signed(file.as_raw_fd())
}

/// Negative numbers, as the kernel reads them.
pub fn signed(number: i32) -> usize {
    usize::from_ne_bytes(i64::from(number).to_ne_bytes())
}

/// Forks the attacker. The child must end with `leave`.
pub fn fork() -> io::Result<Fork> {
    Ok(match call(libc::SYS_fork, &[])? {
        0 => Fork::Child,
        child => Fork::Parent(child),
    })
}

pub enum Fork {
    Child,
    Parent(usize),
}

pub fn leave() -> ! {
    loop {
        let _ = call(libc::SYS_exit_group, &[0]);
    }
}

/// Waits for one child and returns its status.
pub fn wait(child: usize) -> io::Result<i32> {
    let mut status = 0_i32;
    call(libc::SYS_wait4, &[child, of(&mut status), 0, 0])?;
    Ok(status)
}

/// `AT_FDCWD`.
pub const HERE: usize = (-100_isize).cast_unsigned();
pub const NONE: usize = usize::MAX;

//! Raw system calls of an attacker.
#![expect(unsafe_code, reason = "an attacker with native code makes raw system calls")]

use std::{fs::File, io, os::fd::AsRawFd};

/// Any system call with any arguments. Memory that arguments point to must outlive the call; effects on this
/// process are the attacker's problem.
pub fn call(number: libc::c_long, arguments: [usize; 6]) -> io::Result<usize> {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: this process exists to try what must fail. Nothing in it relies on memory that a call could change,
    // except buffers that callers pass on purpose.
    let answer = unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) };
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Maps a file as shared memory and touches every page. Returns its address.
pub fn map_shared(file: &File, bytes: usize) -> io::Result<usize> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let place = call(
        libc::SYS_mmap,
        [0, bytes, protection, libc::MAP_SHARED as usize, file.as_raw_fd().cast_unsigned() as usize, 0],
    )?;
    for page in (0..bytes).step_by(4096) {
        // SAFETY: the mapping is ours, writable, not unmapped before this ends, and `page` lies within it.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(place + page).write_volatile(1) };
    }
    Ok(place)
}

/// Reads from memory that this process has mapped for reading.
pub fn read_byte(address: usize) -> u8 {
    // SAFETY: callers pass addresses of mappings that stay mapped.
    unsafe { std::ptr::with_exposed_provenance::<u8>(address).read_volatile() }
}

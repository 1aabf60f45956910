//! Attacks that need machine instructions, not only system calls.
#![expect(unsafe_code, reason = "an attacker with native code uses every entry of the kernel")]

use std::io;

use super::call::call;

/// Opens a file, reads it and writes it to standard output, through the 32-bit system call entry.
#[cfg(target_arch = "x86_64")]
pub fn tell_by_32_bit_calls(path: &str) -> io::Result<usize> {
    let low = call(
        libc::SYS_mmap,
        &[
            0,
            8192,
            (libc::PROT_READ | libc::PROT_WRITE).cast_unsigned() as usize,
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT).cast_unsigned() as usize,
            usize::MAX,
            0,
        ],
    )?;
    let place = std::ptr::with_exposed_provenance_mut::<u8>(low);
    // SAFETY: the mapping is ours and has 8192 bytes; paths are shorter, and the rest is zero.
    unsafe { place.copy_from_nonoverlapping(path.as_ptr(), path.len().min(4000)) };
    let file = entry_32(5, low, 0, 0)?;
    let got = entry_32(3, file, low + 4096, 4096)?;
    entry_32(4, 1, low + 4096, got)
}

#[cfg(not(target_arch = "x86_64"))]
pub fn tell_by_32_bit_calls(_: &str) -> io::Result<usize> {
    call(libc::SYS_unshare, &[0])?;
    Err(io::Error::other("this machine has no such entry"))
}

#[cfg(target_arch = "x86_64")]
fn entry_32(number: usize, first: usize, second: usize, third: usize) -> io::Result<usize> {
    let mut answer = number;
    // SAFETY: the kernel reads and writes the low memory that the arguments name, which is ours. The register
    // reserved by compilers is restored.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {first}",
            "int 0x80",
            "xchg rbx, {first}",
            first = inout(reg) first => _,
            inout("rax") answer,
            in("rcx") second,
            in("rdx") third,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    let answer = u32::try_from(answer & 0xffff_ffff).map_err(io::Error::other)?;
    match answer.cast_signed() {
        got @ 0.. => Ok(got.cast_unsigned() as usize),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

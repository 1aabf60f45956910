//! Loads the embedded compiled engine in place, after checking that it is ours.
#![expect(
    unsafe_code,
    reason = "loading compiled code is trusting it; this file is where the trust is checked"
)]

use std::{
    io,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use wasmtime::{Config, CustomCodeMemory, Engine, Module};

use crate::LoadError;

/// Settings for [`load`]: code becomes executable where the program file is mapped. All workers of a host share its
/// pages.
pub fn in_place(config: &mut Config) {
    config.with_custom_code_memory(Some(Arc::new(InPlace)));
}

/// Loads the compiled engine as a module of `engine`. Only once per process: two modules would share the same pages,
/// and dropping the first would make the second non-executable.
pub fn load(engine: &Engine) -> Result<Module, LoadError> {
    if IS_LOADED.swap(true, Ordering::AcqRel) {
        return Err(LoadError("it is already loaded; a process can load it only once".to_owned()));
    }
    let code = NonNull::from(COMPILED.bytes.as_slice());
    // SAFETY: `deserialize_raw` requires bytes from `Engine::precompile_module` that never change and outlive the
    // module. Our build script put `COMPILED` into this binary with the same wasmtime version. It is a static in
    // read-only memory. Wasmtime itself rejects code for other settings or another processor.
    unsafe { Module::deserialize_raw(engine, code) }.map_err(|error| LoadError(format!("{error:#}")))
}

static IS_LOADED: AtomicBool = AtomicBool::new(false);

struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        ALIGNMENT
    }

    fn publish_executable(&self, start: *const u8, len: usize) -> wasmtime::Result<()> {
        protect(start, len, libc::PROT_READ | libc::PROT_EXEC)
    }

    fn unpublish_executable(&self, start: *const u8, len: usize) -> wasmtime::Result<()> {
        protect(start, len, libc::PROT_READ)
    }
}

fn protect(start: *const u8, len: usize, rights: libc::c_int) -> wasmtime::Result<()> {
    let begin = (&raw const COMPILED).cast::<u8>();
    let end = begin.wrapping_add(size_of_val(&COMPILED));
    if start < begin || start.wrapping_add(len) > end {
        wasmtime::bail!("only the embedded engine may become executable");
    }
    // SAFETY: mprotect changes the protection of whole pages and no byte. The range is inside `COMPILED`, which does
    // not share its pages because of its alignment, and neither protection allows writing.
    let status = unsafe { libc::mprotect(start.cast_mut().cast(), len, rights) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error().into()) }
}

/// Aligned to the largest page size of the supported processors.
#[repr(C, align(65536))]
struct Aligned<const LEN: usize> {
    bytes: [u8; LEN],
}

const ALIGNMENT: usize = 4096;

const CODE: &[u8; include_bytes!(concat!(env!("OUT_DIR"), "/engine.cwasm")).len()] =
    include_bytes!(concat!(env!("OUT_DIR"), "/engine.cwasm"));

static COMPILED: Aligned<{ CODE.len() }> = Aligned { bytes: *CODE };

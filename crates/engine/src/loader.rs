//! Is the embedded code ours? Then it becomes a module, where it lies.
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

/// The settings for [`load`]: code is made executable where the program's file is mapped, so that all workers of a host
/// share its pages and none has a copy.
pub fn in_place(config: &mut Config) {
    config.with_custom_code_memory(Some(Arc::new(InPlace)));
}

/// The compiled engine as a module of `engine`. Once in a process: of two modules in one place, the end of the first would take
/// the right to run from the second.
pub fn load(engine: &Engine) -> Result<Module, LoadError> {
    if IS_LOADED.swap(true, Ordering::AcqRel) {
        return Err(LoadError("it is loaded already, and a process loads it once".to_owned()));
    }
    let code = NonNull::from(COMPILED.bytes.as_slice());
    // SAFETY: `deserialize_raw` requires bytes that `Engine::precompile_module` made, that nobody alters and that live as
    // long as the module. `COMPILED` is put into this binary by our own build script, from the same wasmtime version, is
    // a static in read-only memory, and is never written to. Wasmtime itself refuses code made with other settings or
    // for another processor.
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
        wasmtime::bail!("only the embedded engine becomes executable");
    }
    // SAFETY: mprotect changes the rights of whole pages and no byte. The range lies in `COMPILED`, which fills its
    // pages alone because of its alignment, and neither of the two rights lets anybody write.
    let status = unsafe { libc::mprotect(start.cast_mut().cast(), len, rights) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error().into()) }
}

/// Aligned to the largest page of the processors we build for.
#[repr(C, align(65536))]
struct Aligned<const LEN: usize> {
    bytes: [u8; LEN],
}

const ALIGNMENT: usize = 4096;

const CODE: &[u8; include_bytes!(concat!(env!("OUT_DIR"), "/engine.cwasm")).len()] =
    include_bytes!(concat!(env!("OUT_DIR"), "/engine.cwasm"));

static COMPILED: Aligned<{ CODE.len() }> = Aligned { bytes: *CODE };

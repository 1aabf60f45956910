//! Compiles the latch, the first program of a Docker container: see `c/latch.c`.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCE}");
    let latch = PathBuf::from(env::var("OUT_DIR")?).join("latch");
    let mut compiler = cc::Build::new();
    compiler.opt_level(1).debug(false).pic(false);
    let mut compile = compiler.try_get_compiler()?.to_command();
    compile.args(ALONE).arg(SOURCE).arg("-o").arg(&latch);
    let done =
        compile.status().map_err(|error| format!("cannot run the C compiler for {SOURCE}: {error}"))?;
    if done.success() { Ok(()) } else { Err(format!("the C compiler failed on {SOURCE}").into()) }
}

const SOURCE: &str = "c/latch.c";

/// A static program that depends on the kernel only.
const ALONE: [&str; 8] = [
    "-static",
    "-nostdlib",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-Wl,--build-id=none",
    "-Wl,-z,noexecstack",
    "-s",
];

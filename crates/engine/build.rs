//! Builds the engine: compiles the C sources to WebAssembly, initialises it, takes a snapshot and compiles that ahead
//! of time.

#[path = "build/compile.rs"]
mod compile;
#[path = "src/config.rs"]
mod config;
#[expect(dead_code, reason = "the build needs some of it, the library the rest")]
#[path = "src/op.rs"]
mod op;
#[path = "build/prelude.rs"]
mod prelude;
#[path = "build/snapshot.rs"]
mod snapshot;

use std::{env, error::Error, fs, path::PathBuf};

use sha2::{Digest, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    for watched in ["build.rs", "build", "c", "js", "src/config.rs", "src/op.rs"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let wasm = compile::engine(&out)?;
    let prelude = prelude::assemble()?;
    let snapshot = snapshot::take(&wasm, &prelude)?;
    let compiled = snapshot::compile(&snapshot.wasm, &env::var("TARGET")?)?;
    fs::write(out.join("engine.cwasm"), compiled)?;
    let digest = compile::hex(&Sha256::digest(&snapshot.wasm));
    println!("cargo::rustc-env=TOOLGATE_SNAPSHOT_DIGEST={digest}");
    fs::write(out.join("engine.memory"), snapshot.memory)?;
    Ok(())
}

//! Compiles QuickJS-ng and our C glue to one WebAssembly module.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

use crate::config::{MAX_LINEAR_MEMORY, PREGROWN_HEAP, SCRIPT_STACK};

/// Returns the bytes of the module. Compiling takes long, so the last result is reused if its inputs are the same.
pub fn engine(out: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let sources = patched_sources(out)?;
    let clang = clang()?;
    let arguments = arguments(&sources);
    let stamp = stamp(&sources, &clang, &arguments)?;
    let (wasm, stamp_file) = (out.join("engine.wasm"), out.join("engine.stamp"));
    if fs::read_to_string(&stamp_file).is_ok_and(|earlier| earlier == stamp) {
        return Ok(fs::read(wasm)?);
    }
    let done = Command::new(&clang).args(&arguments).arg("-o").arg(&wasm).output()?;
    if !done.status.success() {
        return Err(format!(
            "{clang} could not compile the engine:\n{}\nIs wasi-libc installed? `make setup` installs what is missing.",
            String::from_utf8_lossy(&done.stderr)
        )
        .into());
    }
    fs::write(stamp_file, stamp)?;
    Ok(fs::read(wasm)?)
}

fn arguments(sources: &Path) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "--target=wasm32-wasi",
        "-O3",
        "-flto",
        "-mbulk-memory",
        "-msign-ext",
        "-mnontrapping-fptoint",
        "-mexec-model=reactor",
        "-D_GNU_SOURCE",
        // No threads and no signals. QuickJS-ng leaves out the same features under Emscripten.
        "-DEMSCRIPTEN=1",
        "-DFE_DOWNWARD=0",
        "-DFE_UPWARD=0",
        "-Wno-everything",
        "-Wl,--stack-first",
    ]
    .map(String::from)
    .to_vec();
    arguments.push(format!("-DSCRIPT_STACK={SCRIPT_STACK}"));
    arguments.push(format!("-DPREGROWN_HEAP={PREGROWN_HEAP}"));
    // The glue and the C built-ins use some stack beyond the limit for scripts.
    arguments.push(format!("-Wl,-z,stack-size={}", SCRIPT_STACK + (192 << 10)));
    arguments.push(format!("-Wl,--max-memory={MAX_LINEAR_MEMORY}"));
    arguments.push(format!("-I{}", sources.display()));
    arguments.push("c/glue.c".to_owned());
    for file in SOURCES {
        arguments.push(sources.join(file).display().to_string());
    }
    arguments
}

/// Copies the sources and applies `PATCHES`.
fn patched_sources(out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let original = crate_dir("rquickjs-sys")?.join("quickjs");
    let copy = out.join("quickjs");
    fs::create_dir_all(&copy)?;
    for entry in fs::read_dir(&original)? {
        let path = entry?.path();
        let is_source = path.extension().is_some_and(|extension| extension == "c" || extension == "h");
        if let (true, Some(name)) = (is_source, path.file_name()) {
            fs::write(copy.join(name), fs::read(&path)?)?;
        }
    }
    let file = copy.join("quickjs.c");
    let mut text = fs::read_to_string(&file)?;
    for (original, patched) in PATCHES {
        if text.matches(original).count() != 1 {
            return Err(format!(
                "quickjs.c does not contain this text once; see build/compile.rs:\n{original}"
            )
            .into());
        }
        text = text.replace(original, patched);
    }
    fs::write(file, text)?;
    Ok(copy)
}

/// Each text occurs once in quickjs.c and is replaced by the second one.
const PATCHES: [(&str, &str); 5] = [
    // Upstream does not limit recursion under `__wasi__`.
    (
        "#if defined(__wasi__)\n    rt->stack_limit = 0; /* no limit */\n#else\n    if (rt->stack_size == 0) {",
        "#if 0\n    rt->stack_limit = 0; /* no limit */\n#else\n    if (rt->stack_size == 0) {",
    ),
    // `Date.parse` accepts an offset right after the minutes, as V8 does: `2026-01-15 10:00Z`. A minus sign there
    // begins an offset; upstream skips it and reads the digits of `10:00:30-0530` as a year.
    (
        "                if (sp[p] != '\\0' && sp[p] != ' ')\n                    return false;\n                has_time = true;\n",
        "                if (!strchr(\" Zz+-\", sp[p]))\n                    return false;\n                has_time = true;\n                if (sp[p] == '-')\n                    continue;\n",
    ),
    (
        "            if (has_time && string_get_tzoffset(sp, &p, &fields[8], false)) {\n",
        "            if (has_time) {\n                if (!string_get_tzoffset(sp, &p, &fields[8], false))\n                    return false;\n",
    ),
    // RFC 3339 allows `t` and `z`.
    ("if (sgn != 'Z') {", "if (sgn != 'Z' && sgn != 'z') {"),
    (
        "if (string_skip_char(sp, &p, 'T')) {",
        "if (string_skip_char(sp, &p, 'T') || string_skip_char(sp, &p, 't')) {",
    ),
];

/// Returns the source directory of a dependency, as pinned by the lock file.
fn crate_dir(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let metadata = metadata()?;
    let packages = metadata.get("packages").and_then(|packages| packages.as_array());
    let manifest = packages
        .and_then(|packages| packages.iter().find(|package| package.get("name").is_some_and(|is| is == name)))
        .and_then(|package| package.get("manifest_path"))
        .and_then(|path| path.as_str())
        .ok_or_else(|| format!("cargo metadata does not name `{name}`"))?;
    Ok(Path::new(manifest).parent().ok_or("the manifest path has no directory")?.to_path_buf())
}

/// Asks Cargo about the packages of the workspace. It needs all of them, even those for tests and benches. A fresh
/// machine has only downloaded what it compiles, so Cargo may download the others.
fn metadata() -> Result<serde_json::Value, Box<dyn Error>> {
    let cargo = env::var("CARGO")?;
    let host = env::var("HOST")?;
    let mut said = Vec::new();
    for network in [Some("--offline"), None] {
        let asked = Command::new(&cargo)
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host])
            .args(network)
            .output()?;
        if asked.status.success() {
            return Ok(serde_json::from_slice(&asked.stdout)?);
        }
        said = asked.stderr;
    }
    Err(format!("cargo metadata: {}", String::from_utf8_lossy(&said)).into())
}

/// The newest clang that can compile to WebAssembly.
fn clang() -> Result<String, Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=TOOLGATE_CLANG");
    let chosen = env::var("TOOLGATE_CLANG").ok();
    let candidates = chosen.into_iter().chain((16..=22).rev().map(|version| format!("clang-{version}")));
    for candidate in candidates {
        if Command::new(&candidate).arg("--version").output().is_ok_and(|done| done.status.success()) {
            return Ok(candidate);
        }
    }
    Err("no clang for WebAssembly found: run `make setup`, or set TOOLGATE_CLANG".into())
}

fn stamp(sources: &Path, clang: &str, arguments: &[String]) -> Result<String, Box<dyn Error>> {
    let mut hash = Sha256::new();
    hash.update(Command::new(clang).arg("--version").output()?.stdout);
    hash.update(arguments.join("\n"));
    hash.update(fs::read("c/glue.c")?);
    for file in SOURCES {
        hash.update(fs::read(sources.join(file))?);
    }
    Ok(hex(&hash.finalize()))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

const SOURCES: [&str; 4] = ["quickjs.c", "libregexp.c", "libunicode.c", "dtoa.c"];

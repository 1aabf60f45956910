//! Embeds the shipped tools in the program. Files on the disk cannot change them later.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog");
    println!("cargo::rerun-if-changed={}", catalog.display());
    let mut files = Vec::new();
    gather(&catalog.join("tools"), FileFilter::Ending("json"), &mut files)?;
    gather(&catalog.join("commands"), FileFilter::Ending("yaml"), &mut files)?;
    files.sort();
    let target = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("catalog.rs");
    let mut code = fs::File::create(target)?;
    writeln!(code, "pub const TOOLS: &[(&str, &str)] = &[")?;
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(code, "    ({name:?}, include_str!({:?})),", literal(file)?)?;
    }
    writeln!(code, "];")?;
    let fixtures = catalog.join("fixtures").canonicalize()?;
    let mut files = Vec::new();
    gather(&fixtures, FileFilter::Any, &mut files)?;
    files.sort();
    writeln!(code, "pub const FIXTURES: &[(&str, &[u8])] = &[")?;
    for file in &files {
        let name = file.strip_prefix(&fixtures).unwrap_or(file).to_string_lossy();
        writeln!(code, "    ({name:?}, include_bytes!({:?})),", literal(file)?)?;
    }
    writeln!(code, "];")?;
    for (name, file) in [("PRESETS", "presets.yaml"), ("INTEGRITY", "integrity.json")] {
        writeln!(code, "pub const {name}: &str = include_str!({:?});", literal(&catalog.join(file))?)?;
    }
    Ok(())
}

/// The absolute path, which `include_str!` needs.
fn literal(path: &Path) -> io::Result<String> {
    Ok(path.canonicalize()?.to_string_lossy().into_owned())
}

#[derive(Clone, Copy, PartialEq)]
enum FileFilter {
    Any,
    Ending(&'static str),
}

impl FileFilter {
    fn covers(self, path: &Path) -> bool {
        match self {
            Self::Any => true,
            Self::Ending(ending) => path.extension().is_some_and(|extension| extension == ending),
        }
    }
}

fn gather(folder: &Path, filter: FileFilter, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, filter, files)?;
        } else if filter.covers(&path) {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    Ok(())
}

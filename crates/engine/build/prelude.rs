//! Assembles the JavaScript prelude of the snapshot: the files of `js/` in the order of their names, in one function
//! scope.

use std::{error::Error, fs, path::PathBuf};

use crate::op::Op;

/// One function expression of `host` and `random`, which returns the hooks for the glue.
pub fn assemble() -> Result<String, Box<dyn Error>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir("js")?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "js"));
    files.sort();
    let numbers: Vec<String> = Op::ALL.iter().map(|(op, name)| format!("{name}:{}", op.number())).collect();
    let mut prelude = format!("(function(host,random){{\"use strict\";const OP={{{}}};\n", numbers.join(","));
    for file in files {
        prelude.push_str(&fs::read_to_string(&file)?);
        prelude.push('\n');
    }
    prelude.push_str("return hooks;\n})");
    Ok(prelude)
}

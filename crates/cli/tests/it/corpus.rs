//! Replays the fuzz seeds and earlier fuzz findings on every test run.

use std::{
    fs,
    path::{Path, PathBuf},
};

#[path = "../../../../fuzz/bodies.rs"]
mod bodies;

type Body = fn(&[u8]);

const TARGETS: &[(&str, Body)] = &[
    ("document_json", bodies::document_json),
    ("document_yaml", bodies::document_yaml),
    ("manifest", bodies::manifest),
    ("placeholder", bodies::placeholder),
    ("path_pattern", bodies::path_pattern),
    ("field_path", bodies::field_path),
    ("arg_template", bodies::arg_template),
    ("host", bodies::host),
    ("edit", bodies::edit),
    ("frame", bodies::frame),
    ("address", bodies::address),
    ("secrets", bodies::secrets),
    ("config", bodies::config),
    ("bearer", bodies::bearer),
    ("claims", bodies::claims),
    ("journal", bodies::journal),
    ("receipt", bodies::receipt),
    ("secret_store", bodies::secret_store),
    ("result", bodies::result),
    ("events", bodies::events),
    ("challenge", bodies::challenge),
];

#[test]
fn fuzz_seeds_do_not_crash() {
    for (name, body) in TARGETS {
        let mut seeds = 0;
        for entry in fs::read_dir(root().join("fuzz/seeds").join(name)).unwrap() {
            body(&fs::read(entry.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds >= 4, "{name} has only {seeds} seeds");
    }
}

/// A target missing from one of these lists would never run.
#[test]
fn every_target_is_built_replayed_and_in_the_ledger() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (manifest, ledger) = (read("fuzz/Cargo.toml"), read("tests/attacks/ledger/fuzzing.yaml"));
    let names_in = |folder: &str| -> Vec<String> {
        let paths = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> =
            paths.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let mut replayed: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    replayed.sort_unstable();
    assert_eq!(names_in("fuzz/fuzz_targets"), replayed);
    assert_eq!(names_in("fuzz/seeds"), replayed);
    for name in replayed {
        let file = format!("fuzz_targets/{name}.rs");
        assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"{file}\"\n")), "{name} is not built");
        assert!(read(&format!("fuzz/{file}")).contains(&format!("bodies::{name}(data)")), "{name}");
        assert!(ledger.contains(&format!("fuzz/{file}\n")), "the ledger has no row for {name}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

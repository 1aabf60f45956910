//! The fuzz seeds, and whatever a fuzzer once found, replayed on every test run.

use std::{fs, path::Path};

#[path = "../../../../fuzz/bodies.rs"]
mod bodies;

#[test]
fn seeds_are_survived() {
    type Body = fn(&[u8]);
    let targets: [(&str, Body); 17] = [
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
    ];
    for (name, body) in targets {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
        let mut seeds = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            body(&fs::read(entry.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds >= 4, "{name} has only {seeds} seeds");
    }
}

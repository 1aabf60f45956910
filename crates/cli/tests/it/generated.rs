//! Generated files are committed, and are what the code would generate now. `make bless` rewrites them.

use std::{fs, path::Path};

use toolgate_spec::Schema;

#[test]
fn schemas_are_up_to_date() {
    for schema in Schema::ALL {
        let text = serde_json::to_string_pretty(&schema.document()).unwrap() + "\n";
        compare(&format!("schemas/{}.schema.json", schema.name()), &text);
    }
}

fn compare(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, expected).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == expected,
        "{name} is not what the code generates; run `make bless` and review the change"
    );
}

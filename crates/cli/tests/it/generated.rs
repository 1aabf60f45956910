//! Committed generated files match the code. `make bless` rewrites them.

use std::{fs, path::Path};

use toolgate_spec::Schema;

#[test]
fn schemas_are_up_to_date() {
    for schema in Schema::ALL {
        let text = serde_json::to_string_pretty(&schema.document()).unwrap() + "\n";
        compare(&format!("schemas/{}.schema.json", schema.name()), &text);
    }
}

#[test]
fn reasons_are_documented() {
    let rows: Vec<String> = toolgate_gate::Reason::ALL
        .iter()
        .map(|reason| {
            let end = match reason.end() {
                toolgate_gate::EndKind::Refused => "refused",
                toolgate_gate::EndKind::Failed => "failed",
                toolgate_gate::EndKind::Broken => "broken",
            };
            format!("|`{reason}`|{end}|{}|{}|\n", reason.retry().name(), reason.meaning())
        })
        .collect();
    let table = format!("|reason|end|retry|meaning|\n|---|---|---|---|\n{}", rows.concat());
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reasons.md")).unwrap();
    let (before, rest) = text.split_once("<!-- reasons -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- /reasons -->").unwrap();
    compare("docs/reasons.md", &format!("{before}<!-- reasons -->\n{table}<!-- /reasons -->{after}"));
}

pub fn compare(name: &str, expected: &str) {
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

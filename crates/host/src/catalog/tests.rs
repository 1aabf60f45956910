use std::path::PathBuf;

use toolgate_policy::{AskThreshold, PolicySet, RiskLevel, rate, resolve};
use toolgate_spec::model::ApprovalLevel;

use super::*;

#[test]
fn ledger_has_the_digest_of_every_tool() {
    let digests: BTreeMap<String, String> = TOOLS
        .iter()
        .map(|(name, text)| {
            let check = check_text(text, format_of(text)).tools.remove(0);
            let spec = check.spec.as_ref().unwrap_or_else(|| panic!("{name}: {:?}", check.findings));
            assert_eq!(spec.name, *name, "a file is named after its tool");
            (spec.name.clone(), digest(spec, &check.document).to_string())
        })
        .collect();
    let text = serde_json::to_string_pretty(&digests).unwrap() + "\n";
    let path = root().join("catalog/integrity.json");
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "after a review, run with TOOLGATE_BLESS=1");
}

/// This also covers rules that are added later.
#[test]
fn shipped_tools_have_no_finding_that_blocks_publishing() {
    for tool in shipped_tools() {
        let blocking: Vec<_> =
            tool.check.findings.iter().filter(|finding| finding.blocks_publishing).collect();
        assert!(blocking.is_empty(), "{}: {blocking:?}", tool.name);
    }
}

#[test]
fn every_tool_is_shipped() {
    assert_eq!(shipped_tools().len(), TOOLS.len());
}

#[test]
fn names_that_look_like_a_shipped_tool_are_reserved() {
    for (known, _) in TOOLS {
        assert_eq!(reserved_by(known), Some(*known), "no shipped tool looks like another");
    }
    for alike in ["read_fiIe", "read_fi1e", "Read_fi|e", "READ_FILE", "READ_FI1E"] {
        assert_eq!(reserved_by(alike), Some("read_file"), "{alike}");
    }
    assert_eq!(reserved_by("s1ugify"), Some("slugify"));
    for own in ["read_files", "read_fire", "slugify2", "bash1"] {
        assert_eq!(reserved_by(own), None, "{own}");
    }
}

#[test]
fn presets_name_existing_tools_and_everything_names_all() {
    for (name, preset) in presets() {
        for tool in &preset.tools {
            assert!(TOOLS.iter().any(|(known, _)| known == tool), "preset {name}: {tool}");
        }
    }
    let mut everything = presets().get("everything").unwrap().tools.clone();
    everything.sort();
    let mut all: Vec<&str> = TOOLS.iter().map(|(name, _)| *name).collect();
    all.sort_unstable();
    assert_eq!(everything, all);
    assert!(all.len() >= 40);
    assert!(["starter", "files", "dev", "everything"].iter().all(|name| presets().contains_key(*name)));
}

/// The list is in `catalog/blocked-paths.txt`.
#[test]
fn shipped_file_tools_block_the_same_paths() {
    let text = fs::read_to_string(root().join("catalog/blocked-paths.txt")).unwrap();
    let rule: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rule.len(), 3);
    let set = PolicySet::shipped().unwrap();
    let mut seen = 0;
    for tool in shipped_tools().iter().filter(|tool| tool.name != "bash") {
        let policy = resolve(tool.check.spec.as_ref().unwrap(), &set, None).unwrap();
        let files = &policy.files;
        let sees_workspace = files.allowed_paths.values().any(|path| path.text().starts_with("$WORKSPACE"));
        if !sees_workspace || !files.read.value && !files.write.value {
            continue;
        }
        seen += 1;
        let blocked: Vec<&str> =
            policy.files.blocked_paths.values().map(toolgate_spec::PathPattern::text).collect();
        for path in &rule {
            let reads_no_tree = matches!(tool.name, "git_diff_branches" | "git_log" | "git_show_file");
            let reads_git = tool.name == "git_diff" && path.ends_with("/.git");
            let is_exempt = reads_no_tree || reads_git;
            assert!(is_exempt || blocked.contains(path), "{} does not block {path}", tool.name);
        }
    }
    assert!(seen >= 23, "{seen}");
}

#[test]
fn catalog_page_lists_every_tool() {
    let set = PolicySet::shipped().unwrap();
    let mut categories: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for tool in shipped_tools() {
        let spec = tool.check.spec.as_ref().unwrap();
        let policy = resolve(spec, &set, None).unwrap();
        let level = rate(&policy, spec, &set).level;
        let asks = match policy.approval.level.value {
            ApprovalLevel::Auto
                if policy.approval.ask_from.value.asks(level, AskThreshold::From(RiskLevel::L4)) =>
            {
                "by risk"
            }
            ApprovalLevel::Auto => "no",
            ApprovalLevel::Ask if !policy.approval.is_required() => "until trusted",
            ApprovalLevel::Ask | ApprovalLevel::Always => "every call",
        };
        let category = spec.category.clone().unwrap_or_else(|| "other".to_owned()).to_lowercase();
        let row = format!("|`{}`|{}|{}|{asks}|\n", tool.name, summary(&spec.description), level.name());
        categories.entry(category).or_default().push(row);
    }
    let tables: Vec<String> = categories
        .into_iter()
        .map(|(category, mut rows)| {
            rows.sort();
            format!(
                "### {category}\n\n|tool|what it does|level|asks|\n|---|---|---|---|\n{}\n",
                rows.concat()
            )
        })
        .collect();
    let path = root().join("docs/catalog.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- tools -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- /tools -->").unwrap();
    let expected = format!("{before}<!-- tools -->\n{}<!-- /tools -->{after}", tables.concat());
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == expected,
        "docs/catalog.md differs from the documents; run `make bless` and review the change"
    );
}

/// The first sentence of a description. A long one ends at its first colon or semicolon. The column `asks` shows whether a
/// person must approve, so the sentence does not repeat it.
fn summary(description: &str) -> String {
    let sentence = description.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let sentence =
        sentence.replace(", after a person has agreed", "").replace(" after a person has agreed", "");
    let short = [": ", "; "].iter().filter_map(|mark| sentence.find(mark)).min();
    let end = short.filter(|_| sentence.split(' ').count() > 14).unwrap_or(sentence.len());
    sentence[..end].replace('|', "\\|")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schema of the reference implementation requires text here. Ours also accepts null and values of the type.
#[test]
fn test_values_of_shipped_tools_are_text() {
    for tool in shipped_tools() {
        for param in
            tool.check.document.get("params").and_then(serde_json::Value::as_array).into_iter().flatten()
        {
            assert!(
                param.get("testValue").is_none_or(serde_json::Value::is_string),
                "{}: {param}",
                tool.name
            );
        }
    }
}

#[test]
fn shipped_tools_are_marked_built_in() {
    assert!(shipped_tools().iter().all(|tool| tool.check.spec.as_ref().is_some_and(|spec| spec.is_builtin)));
}

//! JSON, SARIF and workflow commands. Programs read them, so their format is stable.

use crate::{
    bench::{Bench, snapshot, tool},
    check::BAD,
};

#[test]
fn json_is_one_object() {
    let bench = Bench::with("bad.json", BAD);
    bench.write("good.json", tool("add"));
    let run = bench.run(&["check", "--format", "json", ".", "nowhere.json"]).expect(2);
    let report = run.json();
    assert_eq!(report["version"], 1);
    assert_eq!(report["files"], 2);
    assert_eq!(report["summary"]["tools"], 2);
    assert_eq!(report["summary"]["unreadable"], 1);
    assert_eq!(report["unreadable"][0]["file"], "nowhere.json");
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(report["summary"]["errors"], findings.len());
    for finding in findings {
        for field in [
            "file",
            "pointer",
            "line",
            "column",
            "endLine",
            "endColumn",
            "code",
            "severity",
            "message",
            "remedy",
            "tool",
        ] {
            assert!(!finding[field].is_null(), "{field} in {finding}");
        }
    }
}

#[test]
fn sarif_has_what_the_standard_asks_for() {
    let bench = Bench::with("sub folder/bad.json", BAD);
    let run = bench.run(&["check", "--format", "sarif", "sub folder", "nowhere.json"]).expect(2);
    let log = run.json();
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().contains("sarif-2.1.0"));
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "toolgate");
    let rules = driver["rules"].as_array().unwrap();
    assert_eq!(rules.len(), toolgate_spec::Code::ALL.len());
    for rule in rules {
        assert!(rule["id"].is_string() && rule["shortDescription"]["text"].is_string());
        assert!(rule["help"]["text"].is_string());
        assert!(["error", "warning"].contains(&rule["defaultConfiguration"]["level"].as_str().unwrap()));
    }
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "sub%20folder/bad.json");
        assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
        assert!(place["region"]["startColumn"].as_u64().unwrap() >= 1);
        assert_eq!(result["partialFingerprints"]["toolgate/v1"].as_str().unwrap().len(), 64);
    }
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(invocation["toolExecutionNotifications"].as_array().unwrap().len(), 1);
}

#[test]
fn sarif_without_findings_is_valid() {
    let run = Bench::with("a.json", tool("add")).run(&["check", "--format", "sarif", "a.json"]).expect(0);
    assert_eq!(run.json()["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn workflow_commands_are_well_formed() {
    let bench = Bench::with("bad.json", BAD);
    let run = bench.run(&["check", "--format", "github", "bad.json"]).expect(1);
    snapshot("check_github.txt", &run.out);
}

#[test]
fn document_cannot_inject_a_workflow_command() {
    let forged = BAD
        .replace("STRNG", "\\n::set-output name=x::y%0A::error::")
        .replace("fileread", "a\\n::stop-commands::x");
    let bench = Bench::with("x,line=1::y.json", forged);
    let run = bench.run(&["check", "--format", "github", "."]).expect(1);
    for line in run.out.lines() {
        assert!(line.starts_with("::error file=x%2Cline=1%3A%3Ay.json,line="), "{line}");
        assert_eq!(line.matches("::").count(), 2, "{line}");
    }
}

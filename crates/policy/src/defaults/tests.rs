//! Compares every value of every shipped file with the table of the reference (`Tool Capability Specification`, 1.0), to
//! prevent accidental changes.

use serde_json::{Value, json};

use super::*;

/// One row per field: the pointer, then `read`, `web_fetch`, `write`, `bash`, `send_message`, `policy-approval`, in the
/// order of `SHIPPED`. `-` means absent.
#[test]
fn every_value_matches_the_reference() {
    let mut left: Vec<Value> =
        SHIPPED.iter().map(|(_, text)| value_from_text(text, Format::Yaml).unwrap()).collect();
    for row in TABLE.lines().filter(|row| !row.is_empty()) {
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells.len(), 1 + SHIPPED.len(), "{row}");
        for (((name, _), file), cell) in SHIPPED.iter().zip(&mut left).zip(&cells[1..]) {
            let expect = match *cell {
                "-" => None,
                list if list.starts_with('@') => Some(listed(list)),
                word => Some(serde_json::from_str(word).unwrap_or_else(|_| json!(word))),
            };
            assert_eq!(take(file, cells[0]), expect, "{name} {}", cells[0]);
        }
    }
    for ((name, _), file) in SHIPPED.iter().zip(left) {
        let rest: Vec<Value> = file.as_object().unwrap().values().cloned().collect();
        assert!(rest.iter().all(|block| *block == json!({})), "{name} has more than the table: {file}");
    }
}

/// Loading checks that each example matches as stated.
#[test]
fn every_danger_pattern_has_hits_and_misses() {
    let mut patterns = 0;
    for (name, text) in SHIPPED {
        let file = value_from_text(text, Format::Yaml).unwrap();
        for entry in file["approval"]["dangerPatterns"].as_array().into_iter().flatten() {
            for key in ["hits", "misses"] {
                assert!(
                    entry[key].as_array().is_some_and(|examples| !examples.is_empty()),
                    "{name} {key} {entry}"
                );
            }
            patterns += 1;
        }
    }
    assert!(patterns > 20, "{patterns}");
}

/// Removes a field, so fields without a row are left over.
fn take(file: &mut Value, field: &str) -> Option<Value> {
    let (block, key) = field.split_once('.').unwrap();
    let mut value = file.get_mut(block)?.as_object_mut()?.remove(key)?;
    // The pattern is from the reference; its examples are not.
    for entry in value.as_array_mut().into_iter().flatten() {
        if let Some(pattern) = entry.get("pattern") {
            *entry = pattern.clone();
        }
    }
    Some(value)
}

fn listed(name: &str) -> Value {
    let (_, list) = LISTS.iter().find(|(known, _)| *known == name).unwrap();
    json!(list)
}

/// All blocks and keys of the reference, used or not. The labels of `write` and `send_message` are ours, because the
/// reference has none.
const TABLE: &str = r"
approval.level                          auto       auto       ask        ask        always     -
approval.dangerPatterns                 @readRe    @fetchRe   @writeRe   @bashRe    -          -
approval.askForMethods                  -          @methods   -          -          -          -
approval.trustAfterApproval             true       false      true       false      false      true
data.sensitivity                        high       medium     high       high       high       medium
data.canReadSecrets                     true       false      false      true       false      false
data.canLeakData                        false      true       false      true       true       false
data.sanitizeOutput                     true       true       false      true       true       true
network.access                          none       limited    none       none       limited    none
network.accessUpgradeable               -          -          -          proxy      -          -
network.allowedHosts                    -          @docs      -          -          @chats     -
network.requireApprovalForUnknownHosts  -          true       -          -          -          -
network.blockedHosts                    -          @none      -          -          -          -
network.blockedPorts                    -          [22,23,25,445,3306,5432,6379,27017]  -  -  -  -
network.blockPrivateIPs                 true       true       true       true       true       true
network.blockMetadata                   true       true       true       true       true       true
execution.sandbox                       process    process    process    container  process    process
execution.networkMode                   -          -          -          none       -          -
execution.timeout                       10000      30000      10000      120000     30000      60000
execution.maxOutputSize                 1000000    10000000   10000000   1000000    100000     1000000
execution.allowedPaths                  @work      -          @work      @work      -          -
execution.blockedPaths                  @keys      -          @system    -          -          -
execution.env                           clean      clean      clean      explicit   explicit   clean
execution.allowedEnvVars                -          -          -          @shell     @none      -
audit.logArgs                           true       true       true       true       true       true
audit.redactPatterns                    -          -          -          -          @all       -
audit.logOutput                         false      false      false      true       true       false
audit.alertOn                           -          -          -          @alerts    -          -
audit.useSharedSecretDetector           true       -          -          true       -          -
labels.outputTrust                      user       untrusted  untrusted  user       untrusted  -
labels.outputDataClass                  sensitive  internal   internal   sensitive  internal   -
labels.acceptsUntrusted                 false      true       false      true       false      -
";

#[rustfmt::skip] // one list a line reads as the table does
const LISTS: [(&str, &[&str]); 14] = [
    ("@none", &[]),
    ("@all", &[".*"]),
    ("@work", &["$WORKSPACE"]),
    ("@methods", &["POST", "PUT", "DELETE", "PATCH"]),
    ("@alerts", &["rm -rf /", "sudo rm"]),
    ("@shell", &["PATH", "HOME", "USER", "SHELL", "TERM", "LANG", "LC_ALL"]),
    ("@chats", &["api.telegram.org", "discord.com", "gateway.discord.gg"]),
    ("@keys", &["/etc/shadow", "$HOME/.ssh/id_*", "$HOME/.gnupg/private-keys*", "$HOME/.aws/credentials"]),
    ("@system", &["/etc/", "/usr/", "/bin/", "/sbin/", "$HOME/.ssh/", "$HOME/.gnupg/"]),
    ("@readRe", &[
        "/etc/passwd", "/etc/shadow", r"\.ssh/", r"\.gnupg/", r"\.aws/", r"\.env$", "(?i)credentials", "(?i)secret",
    ]),
    ("@fetchRe", &[
        "localhost", r"127\.0\.0\.1", r"169\.254\.", r"10\.\d+\.\d+\.\d+", r"192\.168\.",
        r"172\.(1[6-9]|2[0-9]|3[01])\.",
    ]),
    ("@writeRe", &[r"\.bashrc$", r"\.zshrc$", r"\.profile$", "crontab", r"\.ssh/", "authorized_keys"]),
    ("@bashRe", &[
        r"rm\s+(-rf?|--recursive)", "sudo", r"chmod\s+777", "mkfs", r"dd\s+if=", r">\s*/dev/",
        r"curl.*\|\s*(bash|sh)", r"wget.*\|\s*(bash|sh)", r"eval\s", "base64.*-d",
    ]),
    ("@docs", &[
        "*.github.com", "*.githubusercontent.com", "*.gitlab.com", "*.stackoverflow.com", "*.stackexchange.com",
        "*.mozilla.org", "*.mdn.io", "*.npmjs.com", "*.npmjs.org", "*.pypi.org", "*.crates.io", "docs.*",
        "*.readthedocs.io", "*.rtfd.io", "*.wikipedia.org", "*.arxiv.org",
    ]),
];

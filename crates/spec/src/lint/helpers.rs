//! Compares the helpers that the code uses with those that the document declares and grants.

use serde_json::{Map, Value};

use super::{report::LintReport, show::listed};
use crate::{
    Code, Pointer,
    model::{Body, NetworkMode, ToolSpec},
};

pub(super) fn check(document: &Map<String, Value>, spec: &ToolSpec, report: &mut LintReport<'_>) {
    let Body::JavaScript { code } = &spec.body else { return };
    let judge = |code: &str| {
        let undeclared = if has_helper_list(document) { undeclared(code, spec) } else { None };
        (undeclared, not_granted(code, spec))
    };
    // Most tools pass even with comments included, so comments are stripped only for the others.
    let (undeclared, lacks) = judge(code);
    if undeclared.is_none() && lacks.is_empty() {
        return;
    }
    let (undeclared, lacks) = judge(&without_comments(code));
    if let Some(say) = undeclared {
        report.add(
            Code::LintHelperUndeclared,
            Pointer::new("/toolSafety/runtime/helpers"),
            say,
            "list the helpers that the code uses, no more and no fewer",
        );
    }
    for MissingHelper { call, field, value } in lacks {
        report.add(
            Code::LintHelperNotGranted,
            Pointer::new("/code"),
            format!("the code calls {call}, but `{field}` does not grant it"),
            format!("set `sandboxOverrides.{field}` to `{value}`, or remove the call"),
        );
    }
}

/// The list of helpers that matches the code. Entries that the author declared keep their spelling.
#[must_use]
pub fn helpers_of(code: &str, declared: &[String]) -> Vec<String> {
    let code = without_comments(code);
    let mut helpers: Vec<String> = declared
        .iter()
        .filter(|helper| {
            let mut groups = GROUPS.iter().filter(|group| group.is_named(helper)).peekable();
            groups.peek().is_none() || groups.any(|group| group.is_used(&code))
        })
        .cloned()
        .collect();
    for group in GROUPS {
        if group.is_used(&code) && !helpers.iter().any(|helper| group.is_named(helper)) {
            helpers.push(group.write.to_owned());
        }
    }
    helpers
}

/// The difference between the list of helpers and the code.
fn undeclared(code: &str, spec: &ToolSpec) -> Option<String> {
    let runtime = spec.claimed_safety.as_ref().and_then(|safety| safety.runtime.as_ref());
    let declared = runtime.map_or(&[][..], |runtime| runtime.helpers.as_slice());
    let (mut missing, mut unused) = (Vec::new(), Vec::new());
    for group in GROUPS {
        let is_declared = declared.iter().any(|helper| group.is_named(helper));
        match (group.is_used(code), is_declared) {
            (true, false) => missing.push(format!("`{}`", group.write)),
            (false, true) => unused.push(format!("`{}`", group.write)),
            _ => {}
        }
    }
    let mut say = Vec::new();
    if !missing.is_empty() {
        say.push(format!("the code uses {}, which the list does not name", listed(&missing)));
    }
    if !unused.is_empty() {
        say.push(format!("the list names {}, which the code does not use", listed(&unused)));
    }
    (!say.is_empty()).then(|| say.join("; "))
}

/// The helpers that a tool's policy denies.
#[derive(Clone, Copy, Debug)]
pub struct DeniedHelpers {
    pub network: bool,
    pub read: bool,
    pub write: bool,
}

/// A helper that the code calls but that is not available.
#[derive(Clone, Copy, Debug)]
pub struct MissingHelper {
    /// The name for people.
    pub call: &'static str,
    /// The member of `sandboxOverrides` that grants it, and the value.
    pub field: &'static str,
    pub value: &'static str,
}

/// The denied helpers that the code calls. Comments and quoted strings do not count.
#[must_use]
pub fn missing_helpers(code: &str, denied: DeniedHelpers) -> Vec<MissingHelper> {
    missing_from(&without_comments(code), denied)
}

/// Helpers that the code calls and the document does not request.
fn not_granted(code: &str, spec: &ToolSpec) -> Vec<MissingHelper> {
    let wanted = &spec.overrides;
    // A profile or capability block may grant what the overrides omit.
    let may_inherit = spec.governance.profile.is_some() || spec.governance.capability.may_inherit();
    let network_may_come = may_inherit || spec.governance.capability.network.access.is_some();
    let is_offline = match wanted.network_mode {
        Some(mode) => mode == NetworkMode::Blocked,
        None => !network_may_come,
    };
    let is_denied = |flag: Option<bool>| flag.map_or(!may_inherit, |granted| !granted);
    let lacking = DeniedHelpers {
        network: is_offline,
        read: is_denied(wanted.file_read),
        write: is_denied(wanted.file_write),
    };
    missing_from(code, lacking)
}

fn missing_from(code: &str, denied: DeniedHelpers) -> Vec<MissingHelper> {
    let mut missing = Vec::new();
    if denied.network && uses(code, "fetch(") {
        missing.push(MissingHelper { call: "`fetch`", field: "networkMode", value: "allowlist" });
    }
    let uses_files = code.contains("safety.fs.");
    let writes = WRITES.iter().find(|(call, _)| uses_files && uses(code, call));
    if let Some((_, call)) = writes.filter(|_| denied.write) {
        missing.push(MissingHelper { call, field: "fileWrite", value: "true" });
    }
    if uses_files && denied.read && READS.iter().any(|call| uses(code, call)) {
        missing.push(MissingHelper { call: "`safety.fs`", field: "fileRead", value: "true" });
    }
    missing
}

fn has_helper_list(document: &Map<String, Value>) -> bool {
    document
        .get("toolSafety")
        .and_then(|safety| safety.get("runtime"))
        .and_then(|runtime| runtime.get("helpers"))
        .is_some_and(Value::is_array)
}

/// Whether the word occurs in the code as a whole name, not as the end of a longer one or as a member. A word that
/// ends with a bracket may have space before the bracket.
fn uses(code: &str, word: &str) -> bool {
    let (name, is_call) = word.strip_suffix('(').map_or((word, false), |name| (name, true));
    code.match_indices(name).any(|(at, _)| {
        let before = code.get(..at).and_then(|before| before.chars().next_back());
        let after = code.get(at + name.len()..).unwrap_or_default();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        before.is_none_or(|before| !is_part(before) && !matches!(before, '.' | '#'))
            && if is_call {
                after.trim_start().starts_with('(')
            } else {
                name.ends_with('.') || !after.starts_with(is_part)
            }
    })
}

/// The code without comments and quoted strings. Templates stay, because they contain code.
fn without_comments(code: &str) -> String {
    let mut bare = String::with_capacity(code.len());
    let mut characters = code.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '/' if characters.peek() == Some(&'/') => {
                for skipped in characters.by_ref() {
                    if skipped == '\n' {
                        break;
                    }
                }
                bare.push('\n');
            }
            '/' if characters.peek() == Some(&'*') => {
                let mut last = ' ';
                characters.next();
                for skipped in characters.by_ref() {
                    if last == '*' && skipped == '/' {
                        break;
                    }
                    last = skipped;
                }
                bare.push(' ');
            }
            '"' | '\'' => {
                // A string ends with its line, so a quote inside a regular expression hides at most one line.
                while let Some(skipped) = characters.next_if(|next| *next != '\n') {
                    if skipped == '\\' {
                        characters.next();
                    } else if skipped == character {
                        break;
                    }
                }
                bare.push('"');
            }
            plain => bare.push(plain),
        }
    }
    bare
}

struct HelperGroup {
    uses: &'static [&'static str],
    names: &'static [&'static str],
    anchor: &'static str,
    write: &'static str,
}

impl HelperGroup {
    fn is_named(&self, helper: &str) -> bool {
        self.names.iter().any(|name| helper.contains(name)) || helper.ends_with(self.anchor)
    }

    fn is_used(&self, code: &str) -> bool {
        self.uses.iter().any(|word| uses(code, word))
    }
}

const GROUPS: &[HelperGroup] = &[
    HelperGroup { uses: &["safety.fs."], names: &["safety.fs/"], anchor: "#fs", write: "safety.fs/v1" },
    HelperGroup {
        uses: &["safety.parser."],
        names: &["safety.parser/"],
        anchor: "#parser",
        write: "safety.parser/v1",
    },
    HelperGroup { uses: &["fetch("], names: &["safety.http/"], anchor: "#http", write: "safety.http/v1" },
    HelperGroup {
        uses: &["crypto."],
        names: &["safety.crypto/"],
        anchor: "#crypto",
        write: "tool-safety-helpers/v1#crypto",
    },
    HelperGroup {
        uses: &["atob(", "btoa(", "TextEncoder", "TextDecoder"],
        names: &["safety.encoding/"],
        anchor: "#encoding",
        write: "tool-safety-helpers/v1#encoding",
    },
];

/// Each call that writes, and how it is shown.
const WRITES: &[(&str, &str)] = &[
    ("safety.fs.writeText", "`safety.fs.writeText`"),
    ("safety.fs.appendText", "`safety.fs.appendText`"),
    ("safety.fs.editText", "`safety.fs.editText`"),
    ("safety.fs.copy", "`safety.fs.copy`"),
    ("safety.fs.move", "`safety.fs.move`"),
    ("safety.fs.delete", "`safety.fs.delete`"),
    ("safety.fs.deleteDir", "`safety.fs.deleteDir`"),
];

const READS: [&str; 11] = [
    "safety.fs.readText",
    "safety.fs.list",
    "safety.fs.exists",
    "safety.fs.stat",
    "safety.fs.grep",
    "safety.fs.lineCount",
    "safety.fs.slice",
    "safety.fs.cut",
    "safety.fs.sort",
    "safety.fs.find",
    "safety.fs.searchInFiles",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(document: &Value, expect: &[&str]) {
        let document = document.as_object().unwrap();
        let spec = crate::decode::tool(document, &mut Vec::new());
        let mut findings = Vec::new();
        super::check(document, &spec, &mut LintReport::new(&mut findings));
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, expect);
    }

    #[test]
    fn helper_list_is_derived_from_code() {
        let fit = |code: &str, declared: &[&str]| {
            helpers_of(code, &declared.iter().map(|&helper| helper.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(fit("return await fetch(url)", &[]), ["safety.http/v1"]);
        assert_eq!(fit("return await fetch(url)", &["safety.http/v2"]), ["safety.http/v2"]);
        assert_eq!(fit("// fetch(url)\nreturn 1", &["safety.http/v1"]), <[&str; 0]>::default());
        assert_eq!(fit("return btoa(x)", &["safety.fs/v1"]), ["tool-safety-helpers/v1#encoding"]);
        assert_eq!(fit("return 1", &["safety.other/v1"]), ["safety.other/v1"], "not ours to judge");
    }

    fn tool(code: &str, overrides: &Value, helpers: &[&str]) -> Value {
        serde_json::json!({
            "name": "t", "code": code, "sandboxOverrides": overrides,
            "toolSafety": { "runtime": { "helpers": helpers } },
        })
    }

    #[test]
    fn helper_list_must_match_code() {
        let online = serde_json::json!({ "networkMode": "strict" });
        check(&tool("return fetch (url).text()", &online, &["safety.http/v1"]), &[]);
        check(
            &tool("return btoa(fetch(url).text())", &online, &["safety.parser/v1"]),
            &[
                "the code uses `safety.http/v1`, `tool-safety-helpers/v1#encoding`, which the list does not name; the list \
               names `safety.parser/v1`, which the code does not use",
            ],
        );
        check(
            &tool("// fetch(x)\nreturn 'fetch(x)' + prefetch(1) + my.fetch(2)", &serde_json::json!({}), &[]),
            &[],
        );
    }

    #[test]
    fn helper_is_missing_if_denied_and_called() {
        let fields = |code: &str, network, read, write| {
            let missing = missing_helpers(code, DeniedHelpers { network, read, write });
            missing.iter().map(|missing| missing.field).collect::<Vec<_>>()
        };
        let code = "safety.fs.writeText(a, safety.fs.readText(b) + fetch(c).text()) // all";
        assert_eq!(fields(code, true, true, true), ["networkMode", "fileWrite", "fileRead"]);
        assert_eq!(fields(code, false, true, false), ["fileRead"]);
        assert_eq!(fields("return 1 // fetch(x)", true, true, true), <[&str; 0]>::default());
    }

    #[test]
    fn calls_without_grant_are_reported() {
        let silent = serde_json::json!({ "name": "t", "code": "return fetch(u)" });
        check(&silent, &["the code calls `fetch`, but `networkMode` does not grant it"]);
        let reader = serde_json::json!({
            "name": "t", "code": "safety.fs.writeText(a, safety.fs.readText(b))",
            "sandboxOverrides": { "fileRead": true },
        });
        check(&reader, &["the code calls `safety.fs.writeText`, but `fileWrite` does not grant it"]);
        let deleter = serde_json::json!({
            "name": "t", "code": "safety.fs.delete(a)", "sandboxOverrides": { "fileRead": true },
        });
        check(&deleter, &["the code calls `safety.fs.delete`, but `fileWrite` does not grant it"]);
        let profiled =
            serde_json::json!({ "name": "t", "code": "return fetch(u)", "x-toolgate-profile": "web" });
        check(&profiled, &[]);
    }
}

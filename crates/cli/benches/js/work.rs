//! The benchmarked function bodies, the same for every variant.

use std::{fmt::Write as _, sync::LazyLock};

/// One body with its arguments.
#[derive(Clone, Debug)]
pub struct BenchBody {
    pub name: &'static str,
    pub title: &'static str,
    pub names: &'static [&'static str],
    /// One function expression in parentheses, as the gateway wraps a body.
    pub source: String,
    /// A JSON object.
    pub arguments: String,
    /// JSON text.
    pub expected: String,
    pub host: HostAccess,
    pub rounds: usize,
}

/// Whether the body calls its host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostAccess {
    None,
    /// `safety.fs.readText` answers with [`ANSWER`].
    ReadText,
}

impl BenchBody {
    pub fn new(names: &'static [&'static str], body: &str, arguments: &str, expected: &str) -> Self {
        Self {
            name: "",
            title: "",
            names,
            source: format!("(async function({}){{{{{body}\n}}}})", names.join(",")),
            arguments: arguments.to_owned(),
            expected: expected.to_owned(),
            host: HostAccess::None,
            rounds: 0,
        }
    }

    #[track_caller]
    pub fn check(&self, value: &str) {
        assert_eq!(value, self.expected, "{} has another result", self.name);
    }
}

pub fn all() -> Vec<BenchBody> {
    let kilobyte = format!("{{\"text\":\"{}\"}}", "tool".repeat(256));
    vec![
        BenchBody {
            name: "w1",
            title: "a trivial sum",
            rounds: 500,
            ..BenchBody::new(&["a", "b"], "return a + b", r#"{"a":2,"b":40}"#, "42")
        },
        BenchBody {
            name: "w2",
            title: "base64 of 1 KB and JSON of 100 elements",
            rounds: 300,
            ..BenchBody::new(&["text"], BASE64_AND_JSON, &kilobyte, "[1368,4950]")
        },
        BenchBody {
            name: "w3",
            title: "a loop of 5 million iterations",
            rounds: 15,
            ..BenchBody::new(&["n"], LOOP, r#"{"n":5000000}"#, "1642668640")
        },
        BenchBody {
            name: "w4",
            title: "one host call that returns 1 KB",
            rounds: 300,
            host: HostAccess::ReadText,
            ..BenchBody::new(
                &["path"],
                "return safety.fs.readText(path).length",
                r#"{"path":"note.txt"}"#,
                "1024",
            )
        },
    ]
}

/// A tool of 1,000 lines: 100 functions of ten lines each, of which a call uses a few.
pub fn thousand_lines() -> BenchBody {
    let mut body = String::new();
    for number in 0..100 {
        let _ = writeln!(
            body,
            "function step{number}(row, factor) {{
  const label = `step {number} of ${{row.name}}`;
  if (row.value < {number}) {{
    return {{ label, value: row.value * factor }};
  }}
  const parts = label.split(' ').map((part) => part.trim());
  const total = parts.reduce((sum, part) => sum + part.length, 0);
  return {{ label: parts.join('-'), value: (total + row.value) / factor }};
}}
"
        );
    }
    body += "return [step3, step42, step99].map((step) => step({ name: 'x', value: 50 }, 2).value);";
    BenchBody { name: "a thousand lines", ..BenchBody::new(&["n"], &body, r#"{"n":1}"#, "[29,29.5,100]") }
}

/// The host's answer to `readText`: one kilobyte.
pub static ANSWER: LazyLock<String> = LazyLock::new(|| "note".repeat(256));

// Implemented here, because not every peer has `btoa`.
const BASE64_AND_JSON: &str = "
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
let coded = '';
for (let at = 0; at < text.length; at += 3) {
  const three = text.charCodeAt(at) << 16 | (text.charCodeAt(at + 1) || 0) << 8 | (text.charCodeAt(at + 2) || 0);
  coded += alphabet[three >> 18] + alphabet[three >> 12 & 63] + alphabet[three >> 6 & 63] + alphabet[three & 63];
}
const rows = Array.from({ length: 100 }, (_, id) => ({ id, name: `row ${id}`, tags: ['a', 'b'], done: id % 2 === 0 }));
const again = JSON.parse(JSON.stringify(rows));
return [coded.length, again.reduce((sum, row) => sum + row.id, 0)];";

const LOOP: &str = "
let sum = 0;
for (let i = 0; i < n; i++) sum = (sum + i) | 0;
return sum;";

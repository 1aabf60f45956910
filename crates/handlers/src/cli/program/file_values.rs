//! Which values of an option name a file, though they look like data? Of `curl`, more than begin with `@`.

/// What options take for the name of a file.
#[derive(Debug)]
pub struct FileValue {
    /// Letters and words.
    pub options: &'static [&'static str],
    pub is_in: fn(&Filled<'_>) -> bool,
    pub why: &'static str,
}

/// A part of an option's value that a caller chose.
#[derive(Clone, Copy, Debug)]
pub struct Filled<'v> {
    /// What of the value stands before it.
    pub before: &'v str,
    pub part: &'v str,
    pub whole: &'v str,
}

pub static CURL: [FileValue; 4] = [
    FileValue {
        options: &["F", "form"],
        is_in: names_file_of_form,
        why: "names a file to send: `=@`, `=<`, or more after a file",
    },
    FileValue {
        options: &["data-urlencode", "url-query", "variable"],
        is_in: has_at_before_equals,
        why: "names a file to send: `@` with no `=` before it",
    },
    FileValue {
        options: &["b", "cookie"],
        is_in: |filled| !filled.whole.contains('='),
        why: "names a file of cookies: there is no `=` in it",
    },
    FileValue {
        options: &["w", "write-out"],
        is_in: |filled| filled.part.contains("%output") || filled.before.ends_with('%'),
        why: "names a file to write to: `%output`",
    },
];

/// `name=@file`, `name=<file` and `;headers=@file`; a file of the author's goes on with `,` and `;`.
fn names_file_of_form(filled: &Filled<'_>) -> bool {
    let Filled { before, part, .. } = filled;
    let begins_file = before.ends_with('=') && part.starts_with(['@', '<']);
    let goes_on = before.contains(['@', '<']) && part.contains([',', ';', '"']);
    begins_file || goes_on || part.contains("=@") || part.contains("=<")
}

/// `name@file`. Where the author wrote the `@`, a file is meant.
fn has_at_before_equals(filled: &Filled<'_>) -> bool {
    let name = filled.part.split('=').next().unwrap_or_default();
    !filled.before.contains(['=', '@']) && name.contains('@')
}

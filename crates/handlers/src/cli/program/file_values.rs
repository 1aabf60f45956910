//! Option values that name a file although they look like data. In `curl`, these are more than values starting with
//! `@`.

/// Options that read some values as file names.
#[derive(Debug)]
pub struct FileOption {
    /// Letters and long names.
    pub options: &'static [&'static str],
    pub is_in: fn(&FilledValue<'_>) -> bool,
    pub why: &'static str,
}

/// The part of an option's value that a caller chose.
#[derive(Clone, Copy, Debug)]
pub struct FilledValue<'v> {
    /// The part of the value before it.
    pub before: &'v str,
    pub part: &'v str,
    pub whole: &'v str,
}

pub static CURL: [FileOption; 4] = [
    FileOption {
        options: &["F", "form"],
        is_in: names_file_of_form,
        why: "names a file to send: `=@`, `=<`, or more after a file",
    },
    FileOption {
        options: &["data-urlencode", "url-query", "variable"],
        is_in: has_at_before_equals,
        why: "names a file to send: `@` with no `=` before it",
    },
    FileOption {
        options: &["b", "cookie"],
        is_in: |filled| !filled.whole.contains('='),
        why: "names a file of cookies: there is no `=` in it",
    },
    FileOption {
        options: &["w", "write-out"],
        is_in: |filled| filled.part.contains("%output") || filled.before.ends_with('%'),
        why: "names a file to write to: `%output`",
    },
];

/// `name=@file`, `name=<file` and `;headers=@file`. After a file, `,` and `;` continue the list.
fn names_file_of_form(filled: &FilledValue<'_>) -> bool {
    let FilledValue { before, part, .. } = filled;
    let begins_file = before.ends_with('=') && part.starts_with(['@', '<']);
    let goes_on = before.contains(['@', '<']) && part.contains([',', ';', '"']);
    begins_file || goes_on || part.contains("=@") || part.contains("=<")
}

/// `name@file`. If the author wrote the `@`, a file is intended.
fn has_at_before_equals(filled: &FilledValue<'_>) -> bool {
    let name = filled.part.split('=').next().unwrap_or_default();
    !filled.before.contains(['=', '@']) && name.contains('@')
}

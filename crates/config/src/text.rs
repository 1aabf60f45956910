//! The table of keys for people: the file that `toolgate init` writes, and the reference in `docs/config.md`.

use std::fmt::Write as _;

use crate::{
    key::{Fallback, Key, Kind},
    keys::ROOT,
    model::Config,
    quantity::{show_bytes, show_milliseconds},
};

impl Config {
    /// A `toolgate.yaml` that names every key and changes nothing. `# ` begins an explanation, `#` alone a key with its default.
    pub fn default_text() -> String {
        let mut text = String::from(HEAD);
        for key in ROOT {
            text.push('\n');
            write_key(&mut text, key, "");
        }
        text
    }
}

/// The rows of `docs/config.md`.
pub fn reference_table() -> String {
    let mut table = String::from("|key|value|default|meaning|\n|---|---|---|---|\n");
    write_rows(&mut table, ROOT, "", Parent::Section);
    table
}

fn write_key(text: &mut String, key: &Key, indent: &str) {
    let choices = match &key.kind {
        Kind::Choice(words) => format!(" One of: {}.", words.join(", ")),
        _ => String::new(),
    };
    let _ = writeln!(text, "{indent}# {}{choices}", key.doc);
    match &key.kind {
        Kind::Section(keys) if key.is_plain_section() => {
            let _ = writeln!(text, "{indent}{}:", key.name);
            for key in *keys {
                write_key(text, key, &format!("{indent}  "));
            }
        }
        _ if key.is_required() => {
            let _ = writeln!(text, "{indent}{}: 1", key.name);
        }
        _ => {
            if let Kind::Section(keys) | Kind::Sections(keys) = &key.kind {
                write_hints(text, keys, &format!("{indent}#   "));
            }
            let _ = writeln!(text, "{indent}#{}: {}", key.name, fallback(key));
        }
    }
}

/// What could stand in a section that is absent by default.
fn write_hints(text: &mut String, keys: &[Key], begin: &str) {
    for key in keys {
        let _ = match &key.fallback {
            Fallback::Required => writeln!(text, "{begin}{} (required): {}", key.name, key.doc),
            Fallback::Null => writeln!(text, "{begin}{}: {}", key.name, key.doc),
            _ => writeln!(text, "{begin}{} ({}): {}", key.name, fallback(key), key.doc),
        };
        if let Kind::OneOf(keys) = &key.kind {
            write_hints(text, keys, &format!("{begin}  "));
        }
    }
}

#[derive(Clone, Copy)]
enum Parent {
    Section,
    OneOf,
}

fn write_rows(table: &mut String, keys: &[Key], prefix: &str, parent: Parent) {
    for key in keys {
        let name = format!("{prefix}{}", key.name);
        match &key.kind {
            Kind::Section(keys) if key.is_plain_section() => {
                write_rows(table, keys, &format!("{name}."), Parent::Section);
            }
            kind => {
                let default = match &key.fallback {
                    Fallback::Required => "required".to_owned(),
                    Fallback::Null if matches!(parent, Parent::OneOf) => "absent".to_owned(),
                    Fallback::Null => "null".to_owned(),
                    _ => format!("`{}`", fallback(key)),
                };
                let _ = writeln!(table, "|`{name}`|{}|{default}|{}|", value(kind), key.doc);
                match kind {
                    Kind::Section(keys) => write_rows(table, keys, &format!("{name}."), Parent::Section),
                    Kind::OneOf(keys) => write_rows(table, keys, &format!("{name}."), Parent::OneOf),
                    Kind::Sections(keys) => write_rows(table, keys, &format!("{name}[]."), Parent::Section),
                    _ => {}
                }
            }
        }
    }
}

/// What may stand there, for the reference.
fn value(kind: &Kind) -> String {
    match kind {
        Kind::Version => "1".into(),
        Kind::Flag => "true, false".into(),
        Kind::Number { least, most } => format!("{least} to {most}"),
        Kind::Duration { least, most } => {
            format!("duration, {} to {}", show_milliseconds(*least), show_milliseconds(*most))
        }
        Kind::Size { least, most } => format!("size, {} to {}", show_bytes(*least), show_bytes(*most)),
        Kind::Choice(words) => words.join(", "),
        Kind::Choices(words) => format!("list of {}", words.join(", ")),
        Kind::Text(shape) => shape.name().into(),
        Kind::Texts(shape) => format!("list: {}", shape.name()),
        Kind::Section(_) => "section".into(),
        Kind::OneOf(_) => "one key".into(),
        Kind::Sections(_) => "list of sections".into(),
    }
}

/// The fallback as YAML.
fn fallback(key: &Key) -> String {
    match &key.fallback {
        Fallback::Required | Fallback::Inside => String::new(),
        Fallback::Null => "null".into(),
        Fallback::Flag(flag) => flag.to_string(),
        Fallback::Number(number) => number.to_string(),
        Fallback::Text(text) => (*text).to_owned(),
        Fallback::Texts(texts) => format!("[{}]", texts.join(", ")),
    }
}

const HEAD: &str = "\
# Toolgate's configuration. Every key is here with its default; remove the `#` before a key to change it.
# Paths are relative to this file. `toolgate config show --origin` prints what is in force, and why.
";

#[cfg(test)]
mod tests;

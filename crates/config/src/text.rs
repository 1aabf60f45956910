//! Generates the file that `toolgate init` writes and the reference in `docs/config.md` from the table of keys.

use std::fmt::Write as _;

use crate::{
    key::{ConfigKey, ConfigValueKind, KeyDefault},
    keys::ROOT,
    model::Config,
    quantity::{show_bytes, show_milliseconds},
};

impl Config {
    /// A `toolgate.yaml` that lists every key and changes nothing. `# ` starts an explanation; `#` alone comments out a key.
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

fn write_key(text: &mut String, key: &ConfigKey, indent: &str) {
    let choices = match &key.kind {
        ConfigValueKind::Choice(words) => format!(" One of: {}.", words.join(", ")),
        _ => String::new(),
    };
    let _ = writeln!(text, "{indent}# {}{choices}", key.doc);
    match &key.kind {
        ConfigValueKind::Section(keys) if key.is_plain_section() => {
            let _ = writeln!(text, "{indent}{}:", key.name);
            for key in *keys {
                write_key(text, key, &format!("{indent}  "));
            }
        }
        _ if key.is_required() => {
            let _ = writeln!(text, "{indent}{}: 1", key.name);
        }
        _ => {
            if let ConfigValueKind::Section(keys) | ConfigValueKind::Sections(keys) = &key.kind {
                write_hints(text, keys, &format!("{indent}#   "));
            }
            let _ = writeln!(text, "{indent}#{}: {}", key.name, fallback(key));
        }
    }
}

/// Describes the keys of a section that is absent by default.
fn write_hints(text: &mut String, keys: &[ConfigKey], begin: &str) {
    for key in keys {
        let _ = match &key.fallback {
            KeyDefault::Required => writeln!(text, "{begin}{} (required): {}", key.name, key.doc),
            KeyDefault::Null => writeln!(text, "{begin}{}: {}", key.name, key.doc),
            _ => writeln!(text, "{begin}{} ({}): {}", key.name, fallback(key), key.doc),
        };
        if let ConfigValueKind::OneOf(keys) = &key.kind {
            write_hints(text, keys, &format!("{begin}  "));
        }
    }
}

#[derive(Clone, Copy)]
enum Parent {
    Section,
    OneOf,
}

fn write_rows(table: &mut String, keys: &[ConfigKey], prefix: &str, parent: Parent) {
    for key in keys {
        let name = format!("{prefix}{}", key.name);
        match &key.kind {
            ConfigValueKind::Section(keys) if key.is_plain_section() => {
                write_rows(table, keys, &format!("{name}."), Parent::Section);
            }
            kind => {
                let default = match &key.fallback {
                    KeyDefault::Required => "required".to_owned(),
                    KeyDefault::Null if matches!(parent, Parent::OneOf) => "absent".to_owned(),
                    KeyDefault::Null => "null".to_owned(),
                    _ => format!("`{}`", fallback(key)),
                };
                let _ = writeln!(table, "|`{name}`|{}|{default}|{}|", value(kind), key.doc);
                match kind {
                    ConfigValueKind::Section(keys) => {
                        write_rows(table, keys, &format!("{name}."), Parent::Section);
                    }
                    ConfigValueKind::OneOf(keys) => {
                        write_rows(table, keys, &format!("{name}."), Parent::OneOf);
                    }
                    ConfigValueKind::Sections(keys) => {
                        write_rows(table, keys, &format!("{name}[]."), Parent::Section);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The accepted values, for the reference.
fn value(kind: &ConfigValueKind) -> String {
    match kind {
        ConfigValueKind::Version => "1".into(),
        ConfigValueKind::Flag => "true, false".into(),
        ConfigValueKind::Number { least, most } => format!("{least} to {most}"),
        ConfigValueKind::Duration { least, most } => {
            format!("duration, {} to {}", show_milliseconds(*least), show_milliseconds(*most))
        }
        ConfigValueKind::Size { least, most } => {
            format!("size, {} to {}", show_bytes(*least), show_bytes(*most))
        }
        ConfigValueKind::Choice(words) => words.join(", "),
        ConfigValueKind::Choices(words) => format!("list of {}", words.join(", ")),
        ConfigValueKind::Text(shape) => shape.name().into(),
        ConfigValueKind::Texts(shape) => format!("list: {}", shape.name()),
        ConfigValueKind::Section(_) => "section".into(),
        ConfigValueKind::OneOf(_) => "one key".into(),
        ConfigValueKind::Sections(_) => "list of sections".into(),
    }
}

/// The fallback as YAML.
fn fallback(key: &ConfigKey) -> String {
    match &key.fallback {
        KeyDefault::Required | KeyDefault::Inside => String::new(),
        KeyDefault::Null => "null".into(),
        KeyDefault::Flag(flag) => flag.to_string(),
        KeyDefault::Number(number) => number.to_string(),
        KeyDefault::Text(text) => (*text).to_owned(),
        KeyDefault::Texts(texts) => format!("[{}]", texts.join(", ")),
    }
}

const HEAD: &str = "\
# Toolgate configuration. Every key is listed with its default; remove the `#` before a key to change it.
# Paths are relative to this file. `toolgate config show --origin` prints the effective values and their origin.
";

#[cfg(test)]
mod tests;

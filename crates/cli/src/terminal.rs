//! Terminal output: wrapping, colours and escaping. Untrusted text must pass through [`visible`].

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, BufWriter, IsTerminal, Stdout, Write},
};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use serde_json::{Map, Value, json};
pub use toolgate_spec::is_deceptive;
use unicode_width::UnicodeWidthChar;

/// Buffered standard output. Wraps lines to the width of a terminal, but not for pipes and machine formats.
#[derive(Debug)]
pub struct Terminal {
    out: BufWriter<Stdout>,
    /// The terminal's width. `None` for pipes and machine formats.
    columns: Option<usize>,
    /// The current incomplete line, if lines are wrapped.
    line: Vec<u8>,
    data: Option<Map<String, Value>>,
    /// Lines that become part of the `--format json` object instead of being printed.
    kept: Option<Vec<u8>>,
    pub palette: Palette,
    pub stderr_palette: Palette,
}

impl Terminal {
    pub fn new(choice: ColorChoice) -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
            columns: columns(),
            line: Vec::new(),
            data: None,
            kept: None,
            palette: Palette::new(resolve(choice, &io::stdout())),
            stderr_palette: Palette::new(resolve(choice, &io::stderr())),
        }
    }

    /// Turns wrapping and colours off.
    pub fn for_programs(&mut self) {
        self.columns = None;
        self.palette = Palette::new(false);
    }

    /// The maximum line width.
    pub const fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Adds members to the `--format json` object, which is printed at the end of the command.
    pub fn data(&mut self, members: Value) {
        if let Value::Object(members) = members {
            self.data.get_or_insert_default().extend(members);
        }
    }

    /// With `--format json`, keeps the following lines for the JSON object.
    pub fn keep_lines(&mut self, is_json: bool) {
        self.kept = is_json.then(Vec::new);
    }

    /// The number of bytes kept so far.
    pub fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, Vec::len)
    }

    /// The lines kept after this many bytes.
    pub fn kept_since(&self, before: usize) -> Vec<String> {
        let kept = self.kept.as_deref().and_then(|kept| kept.get(before..)).unwrap_or_default();
        String::from_utf8_lossy(kept).lines().map(str::to_owned).collect()
    }

    /// Prints the `--format json` object. `error` is the message of a failed command.
    pub fn print_data(&mut self, is_ok: bool, error: Option<&str>) -> io::Result<()> {
        let mut whole = Map::new();
        whole.insert("version".to_owned(), json!(JSON_VERSION));
        whole.insert("ok".to_owned(), json!(is_ok));
        if let Some(error) = error {
            whole.insert("error".to_owned(), json!({ "message": error }));
        }
        whole.extend(self.data.take().unwrap_or_default());
        self.kept = None;
        writeln!(self, "{}", json_pretty(&Value::Object(whole)))
    }

    /// Prints an error on standard error.
    pub fn complain(&self, message: &str) {
        let style = self.stderr_palette.error;
        // If standard error is closed, the error cannot be reported.
        let _ = writeln!(io::stderr(), "{style}error{style:#}: {message}");
    }

    /// Prints a note on standard error, apart from the command's output.
    pub fn note(message: &str) {
        let _ = writeln!(io::stderr(), "{message}");
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let Some(columns) = self.columns else { return self.out.write(bytes) };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.out.write_all(wrapped(&String::from_utf8_lossy(&line), columns).as_bytes())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

/// The width from `COLUMNS` or the terminal. `None` if standard output is not a terminal.
fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let asked = || console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    named.or_else(asked).filter(|columns| *columns >= LEAST_COLUMNS)
}

/// Wraps a line between words. Continuation lines align with the last table column, or with the indentation.
/// A word longer than the line stays whole.
fn wrapped(line: &str, columns: usize) -> String {
    if plain_width(line) <= columns {
        return line.to_owned();
    }
    let indent = hanging_indent(line, columns);
    let (mut text, mut column) = (String::with_capacity(line.len() + 16), 0);
    for word in line.split_inclusive(' ') {
        let width = plain_width(word.trim_end());
        if column > indent && column + width > columns && width > 0 {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        }
        text.push_str(word);
        column += plain_width(word.trim_end_matches('\n'));
    }
    text
}

/// The column after the last gap of two or more blanks in the first two thirds; otherwise the line's indentation.
fn hanging_indent(line: &str, columns: usize) -> usize {
    let (mut indent, mut column, mut blanks) = (0, 0, 0);
    for letter in without_styles(line).chars() {
        if letter == ' ' {
            blanks += 1;
        } else {
            if blanks >= 2 || column == blanks {
                indent = column;
            }
            blanks = 0;
        }
        column += letter.width().unwrap_or(0);
        if column > columns / 3 * 2 {
            break;
        }
    }
    indent
}

/// The width of text without its styles.
fn plain_width(text: &str) -> usize {
    width(without_styles(text).trim_end_matches('\n'))
}

fn without_styles(text: &str) -> Cow<'_, str> {
    if text.contains('\u{1b}') { anstream::adapter::strip_str(text).to_string().into() } else { text.into() }
}

/// A narrower width is ignored as a wrong value.
const LEAST_COLUMNS: usize = 20;
/// The version of the object's format. Added members do not change it.
const JSON_VERSION: u32 = 1;

/// The text styles, all empty if colours are off.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    pub error: Style,
    pub warning: Style,
    pub frame: Style,
    pub good: Style,
    pub bold: Style,
    pub dim: Style,
}

impl Palette {
    pub fn is_plain(&self) -> bool {
        self.bold == Style::new()
    }

    /// The style of a state or outcome word.
    pub fn of(&self, word: &str) -> Style {
        match word {
            "ACTIVE" | "published" | "pass" | "approved" | "ok" => self.good,
            "REFUSED" | "FAIL" | "failed" | "refused" | "broken" | "denied" | "revoked" => self.error,
            "DRAFT" | "pending" | "expired" | "not published" | "left out" | "NOT_EXPOSED" => self.warning,
            _ if word.starts_with(|first: char| first.is_ascii_uppercase()) => self.warning,
            _ => Style::new(),
        }
    }

    fn new(coloured: bool) -> Self {
        let style = |style: Style| if coloured { style } else { Style::new() };
        Self {
            error: style(AnsiColor::BrightRed.on_default().bold()),
            warning: style(AnsiColor::Yellow.on_default().bold()),
            frame: style(AnsiColor::BrightBlue.on_default().bold()),
            good: style(AnsiColor::Green.on_default().bold()),
            bold: style(Style::new().bold()),
            dim: style(Style::new().dimmed()),
        }
    }
}

fn resolve(choice: ColorChoice, stream: &impl anstream::stream::RawStream) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // Checks NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM=dumb and whether the stream is a terminal.
        ColorChoice::Auto => AutoStream::choice(stream) != anstream::ColorChoice::Never,
    }
}

/// Makes untrusted text safe to print, as one line. Control, bidirectional and invisible characters become escapes such
/// as `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        push_visible(&mut shown, character);
    }
    Cow::Owned(shown)
}

/// Renders JSON that is safe to print. Dangerous characters occur in strings only and become `\u` escapes.
pub fn json(value: &Value) -> String {
    json_safe(&value.to_string())
}

pub fn json_pretty(value: &Value) -> String {
    json_safe(&format!("{value:#}"))
}

/// Makes JSON text safe to print; see [`json`].
pub fn json_safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character >= '\u{7f}' && is_deceptive(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a `String` cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

pub fn push_visible(shown: &mut String, character: char) {
    match character {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        deceptive if is_deceptive(deceptive) => {
            // Writing to a `String` cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(deceptive));
        }
        plain => shown.push(plain),
    }
}

/// The width of text in terminal columns.
pub fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::{visible, width, wrapped};

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        assert_eq!(visible("plain, ünïcode, 漢字"), "plain, ünïcode, 漢字");
        assert_eq!(visible("\u{1b}[2Jclean"), "\\u{1b}[2Jclean");
        assert_eq!(visible("a\nb\r\tc"), "a\\nb\\r\\tc");
        assert_eq!(visible("\u{202e}gpj.exe\u{200b}\u{e0041}"), "\\u{202e}gpj.exe\\u{200b}\\u{e0041}");
        assert_eq!(visible("\u{9b}31m"), "\\u{9b}31m");
    }

    #[test]
    fn json_is_escaped_and_keeps_its_value() {
        let value = serde_json::json!({ "a\u{202e}": "\u{9b}31m\u{7f}\u{e0041} 漢\n" });
        for text in [super::json(&value), super::json_pretty(&value)] {
            assert!(!text.contains(['\u{202e}', '\u{9b}', '\u{7f}', '\u{e0041}']), "{text}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn continuation_lines_are_aligned() {
        let row = "word_count  DRAFT  L0  no test run for this document has passed\n";
        let expect = "word_count  DRAFT  L0  no test run for\n                       this document has\n                       passed\n";
        assert_eq!(wrapped(row, 40), expect);
        assert_eq!(wrapped(row, 80), row);
        let styled = "\u{1b}[1merror\u{1b}[0m: one two three four five six seven\n";
        assert_eq!(wrapped(styled, 24), "\u{1b}[1merror\u{1b}[0m: one two three\nfour five six seven\n");
        let word = format!("{}\n", "x".repeat(100));
        assert_eq!(wrapped(&word, 40), word);
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(width("漢字ab"), 6);
    }
}

//! What reaches the screen, and in which colours? Untrusted text goes through `visible`, everything through `Terminal`.

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

/// Standard output, buffered. Lines for people fit the width of a terminal; pipes and machine formats get them as they are.
#[derive(Debug)]
pub struct Terminal {
    out: BufWriter<Stdout>,
    /// The terminal's width. `None`: a pipe, or output that is not for people.
    columns: Option<usize>,
    /// A line that has not ended yet, where lines are wrapped.
    line: Vec<u8>,
    data: Option<Map<String, Value>>,
    /// Lines for people that `--format json` reports instead of printing them.
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

    /// Lines pass through as they are from now on.
    pub fn for_programs(&mut self) {
        self.columns = None;
        self.palette = Palette::new(false);
    }

    /// The width that lines have to fit.
    pub const fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Adds members to the object of `--format json`, which is printed when the command has ended.
    pub fn data(&mut self, members: Value) {
        if let Value::Object(members) = members {
            self.data.get_or_insert_default().extend(members);
        }
    }

    /// With `--format json` the lines that follow become part of the data.
    pub fn keep_lines(&mut self, is_json: bool) {
        self.kept = is_json.then(Vec::new);
    }

    /// How much was kept so far.
    pub fn said(&self) -> usize {
        self.kept.as_ref().map_or(0, Vec::len)
    }

    /// The lines that were kept after this much.
    pub fn said_since(&self, before: usize) -> Vec<String> {
        let kept = self.kept.as_deref().and_then(|kept| kept.get(before..)).unwrap_or_default();
        String::from_utf8_lossy(kept).lines().map(str::to_owned).collect()
    }

    /// Prints the one object of `--format json`. `error` is why the command could not do its work.
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

    /// A line on standard error, for what keeps the command from doing its work.
    pub fn complain(&self, message: &str) {
        let style = self.stderr_palette.error;
        // There is nobody left to tell when standard error is closed.
        let _ = writeln!(io::stderr(), "{style}error{style:#}: {message}");
    }

    /// A line on standard error, for what a person wants to know and a pipe does not.
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

/// `COLUMNS`, or what the terminal says. `None` where standard output is not a terminal.
fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let asked = || console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    named.or_else(asked).filter(|columns| *columns >= LEAST_COLUMNS)
}

/// A line broken between words. Later lines begin below the last column of a table, or below the text of an indented line.
/// A word that is too long for a line stays whole.
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

/// Behind the last gap of two blanks or more in the first half of the line; otherwise as far as the line is indented.
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

/// Columns that text takes, styles aside.
fn plain_width(text: &str) -> usize {
    width(without_styles(text).trim_end_matches('\n'))
}

fn without_styles(text: &str) -> Cow<'_, str> {
    if text.contains('\u{1b}') { anstream::adapter::strip_str(text).to_string().into() } else { text.into() }
}

/// Narrower terminals are taken for a mistake.
const LEAST_COLUMNS: usize = 20;
/// Of the object's shape; members may be added without changing it.
const JSON_VERSION: u32 = 1;

/// The styles in force: all of them, or none.
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

    /// The style of a word that says how something ended.
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
        // Knows NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM=dumb and whether anybody is watching.
        ColorChoice::Auto => AutoStream::choice(stream) != anstream::ColorChoice::Never,
    }
}

/// Text from outside as one line that a terminal cannot act upon: control, bidirectional, invisible and
/// unassigned-by-eye characters become escapes such as `\u{202e}`.
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

/// JSON that means the same and that a terminal cannot act upon: the characters in question stand in strings only,
/// where `\u` says the same.
pub fn json(value: &Value) -> String {
    json_safe(&value.to_string())
}

pub fn json_pretty(value: &Value) -> String {
    json_safe(&format!("{value:#}"))
}

/// The same for JSON that is text already.
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

/// Columns that text takes, as terminals count.
pub fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::{visible, width, wrapped};

    #[test]
    fn what_a_terminal_would_act_upon_is_spelled_out() {
        assert_eq!(visible("plain, ünïcode, 漢字"), "plain, ünïcode, 漢字");
        assert_eq!(visible("\u{1b}[2Jclean"), "\\u{1b}[2Jclean");
        assert_eq!(visible("a\nb\r\tc"), "a\\nb\\r\\tc");
        assert_eq!(visible("\u{202e}gpj.exe\u{200b}\u{e0041}"), "\\u{202e}gpj.exe\\u{200b}\\u{e0041}");
        assert_eq!(visible("\u{9b}31m"), "\\u{9b}31m");
    }

    #[test]
    fn json_means_the_same_and_is_harmless() {
        let value = serde_json::json!({ "a\u{202e}": "\u{9b}31m\u{7f}\u{e0041} 漢\n" });
        for text in [super::json(&value), super::json_pretty(&value)] {
            assert!(!text.contains(['\u{202e}', '\u{9b}', '\u{7f}', '\u{e0041}']), "{text}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn lines_wrap_below_their_column() {
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

//! What reaches the screen, and in which colours? Untrusted text goes through `visible`, everything through `Terminal`.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, BufWriter, Stdout, Write},
};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use serde_json::Value;
pub use toolgate_spec::is_deceptive;
use unicode_width::UnicodeWidthChar;

/// Standard output, buffered. Styles come from [`Palette`], so that machine formats pass through untouched.
#[derive(Debug)]
pub struct Terminal {
    out: BufWriter<Stdout>,
    pub palette: Palette,
    pub stderr_palette: Palette,
}

impl Terminal {
    pub fn new(choice: ColorChoice) -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
            palette: Palette::new(resolve(choice, &io::stdout())),
            stderr_palette: Palette::new(resolve(choice, &io::stderr())),
        }
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
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

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
    use super::{visible, width};

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
    fn wide_letters_take_two_columns() {
        assert_eq!(width("漢字ab"), 6);
    }
}

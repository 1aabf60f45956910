//! Converts terminal output to plain text: removes escape sequences, overwritten lines and stray bytes.
//!
//! It is a parser for ECMA-48 and recognises sequences by their grammar, not by a list, so unknown sequences are
//! removed too. An unterminated sequence ends with its line, so a byte at the top of a file cannot hide the rest.

/// Plain text: no escape sequences, no control characters except line breaks and tabs, no byte-order mark. Invalid
/// UTF-8 becomes replacement characters, and an overwritten line only keeps its last state.
pub fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    settle_lines(&without_sequences(text))
}

/// The position inside a sequence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ParserState {
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate; a final character follows.
    Intermediate,
    /// After a single shift; one character of another set follows.
    Shift,
    /// In a control sequence, after CSI.
    Control,
    /// In a control string that ends with ST, or with BEL for an OSC.
    ControlString(ControlString),
    /// In a control string, after an ESC that may begin its end.
    ControlStringEscape(ControlString),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ControlString {
    /// Operating system command: titles, clipboard, hyperlinks.
    Osc,
    /// Device control, privacy message, application command, start of string.
    Other,
}

fn without_sequences(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = ParserState::Text;
    for character in text.chars() {
        at = step(at, character, &mut kept);
    }
    kept
}

fn step(at: ParserState, character: char, kept: &mut String) -> ParserState {
    match (at, character) {
        // Everything inside a control string belongs to it; CAN and SUB cancel any sequence.
        (
            ParserState::ControlString(_) | ParserState::ControlStringEscape(_),
            CANCEL | SUBSTITUTE | STRING_TERMINATOR,
        )
        | (ParserState::ControlString(ControlString::Osc), BELL)
        | (ParserState::ControlStringEscape(_), '\\') => ParserState::Text,
        (ParserState::ControlString(_) | ParserState::ControlStringEscape(_) | ParserState::Shift, '\n') => {
            kept.push('\n');
            ParserState::Text
        }
        (ParserState::ControlString(kind), ESCAPE) => ParserState::ControlStringEscape(kind),
        (ParserState::ControlString(kind), _) => ParserState::ControlString(kind),
        // The ESC begins another sequence, so the control string is over.
        (ParserState::ControlStringEscape(_), other) => step(ParserState::Escape, other, kept),
        (_, ESCAPE) => ParserState::Escape,
        (_, CONTROL_SEQUENCE) => ParserState::Control,
        (_, OSC) => ParserState::ControlString(ControlString::Osc),
        (_, DEVICE_CONTROL | START_OF_STRING | PRIVACY | APPLICATION) => {
            ParserState::ControlString(ControlString::Other)
        }
        (_, CANCEL | SUBSTITUTE) => ParserState::Text,
        (_, SHIFT_TWO | SHIFT_THREE) | (ParserState::Escape, 'N' | 'O') => ParserState::Shift,
        (ParserState::Escape, '[') | (ParserState::Control, ' '..='?') => ParserState::Control,
        (ParserState::Escape, ']') => ParserState::ControlString(ControlString::Osc),
        (ParserState::Escape, 'P' | 'X' | '^' | '_') => ParserState::ControlString(ControlString::Other),
        (ParserState::Escape | ParserState::Intermediate, ' '..='/') => ParserState::Intermediate,
        (ParserState::Shift, _)
        | (ParserState::Escape | ParserState::Intermediate, '0'..='~')
        | (ParserState::Control, '@'..='~') => ParserState::Text,
        // A terminal would continue the sequence in the next line and swallow letters.
        (ParserState::Escape | ParserState::Intermediate | ParserState::Control, '\n' | '\r') => {
            kept.push(character);
            ParserState::Text
        }
        // Other control characters act inside a sequence, which then continues.
        (ParserState::Escape | ParserState::Intermediate | ParserState::Control, '\t' | '\u{8}') => {
            kept.push(character);
            at
        }
        (ParserState::Escape | ParserState::Intermediate | ParserState::Control, control)
            if control.is_control() =>
        {
            at
        }
        // No sequence contains this character, so the text continues here.
        (_, other) => {
            if !other.is_control() || matches!(other, '\n' | '\r' | '\t' | '\u{8}') {
                kept.push(other);
            }
            ParserState::Text
        }
    }
}

/// Applies carriage returns and backspaces. Of a progress display only the last state is kept. If the parts of a line
/// differ, the carriage return is a line break of an old format, and all parts are kept.
fn settle_lines(text: &str) -> String {
    if !text.contains(['\r', '\u{8}']) {
        return text.to_owned();
    }
    let mut settled = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let mut pieces = line.split('\r').filter(|piece| !piece.trim().is_empty()).peekable();
        while let Some(piece) = pieces.next() {
            match pieces.peek() {
                Some(next) if is_state_before(piece, next) => {}
                Some(_) => {
                    overstrike(piece, &mut settled);
                    settled.push('\n');
                }
                None => overstrike(piece, &mut settled),
            }
        }
        settled.push_str(end);
    }
    settled
}

/// Whether `piece` is an earlier state of the progress display `next`. Both contain a percentage, and they differ
/// only in digits and the bar. Other lines may contain information and are kept.
fn is_state_before(piece: &str, next: &str) -> bool {
    let is_count = |text: &str| text.contains('%') && text.contains(|c: char| c.is_ascii_digit());
    let words = |text: &str| {
        let is_moving = |c: char| c.is_ascii_digit() || c.is_whitespace() || BAR.contains(&c);
        text.chars().filter(|c| !is_moving(*c)).collect::<String>()
    };
    is_count(piece) && is_count(next) && words(next).starts_with(&words(piece))
}

fn overstrike(piece: &str, settled: &mut String) {
    let start = settled.len();
    for character in piece.chars() {
        match character {
            '\u{8}' if settled.len() > start => drop(settled.pop()),
            '\u{8}' => {}
            other => settled.push(other),
        }
    }
}

/// Characters that progress bars are drawn with.
const BAR: [char; 5] = ['#', '=', '>', '-', '.'];
const BELL: char = '\u{7}';
const CANCEL: char = '\u{18}';
const SUBSTITUTE: char = '\u{1a}';
const ESCAPE: char = '\u{1b}';
const SHIFT_TWO: char = '\u{8e}';
const SHIFT_THREE: char = '\u{8f}';
const DEVICE_CONTROL: char = '\u{90}';
const START_OF_STRING: char = '\u{98}';
const CONTROL_SEQUENCE: char = '\u{9b}';
const STRING_TERMINATOR: char = '\u{9c}';
const OSC: char = '\u{9d}';
const PRIVACY: char = '\u{9e}';
const APPLICATION: char = '\u{9f}';

#[cfg(test)]
mod tests;

//! What of a program's output is text? Everything but what steers a terminal: sequences, overwritten lines, stray bytes.
//!
//! A reader of its own for ECMA-48: sequences are recognised by their grammar and not by a list, so that one that nobody
//! thought of does not come through. One that never ends takes the rest of its line and no more: what a file says further
//! down is not to be hidden by a byte at its top.

/// Readable text: no escape sequences, no control characters but line breaks and tabs, no byte-order mark at the start, a
/// replacement sign for each stretch that is not UTF-8, and of a line that was overwritten only what was left standing.
pub fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    settle_lines(&without_sequences(text))
}

/// Where in a sequence the reader is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate: one final character is due.
    Intermediate,
    /// After a single shift: one character of another set is due.
    Shift,
    /// In a control sequence, after CSI.
    Control,
    /// In a string that only ST (or, of an OSC, also BEL) ends.
    Enclosed(Enclosed),
    /// In such a string, after an ESC that may be the beginning of its end.
    EnclosedEscape(Enclosed),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Enclosed {
    /// Operating system command: titles, clipboard, links.
    Osc,
    /// Device control, privacy message, application command, start of string.
    Other,
}

fn without_sequences(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = At::Text;
    for character in text.chars() {
        at = step(at, character, &mut kept);
    }
    kept
}

fn step(at: At, character: char, kept: &mut String) -> At {
    match (at, character) {
        // Inside a string everything but its end belongs to it; CAN and SUB break any sequence off.
        (At::Enclosed(_) | At::EnclosedEscape(_), CANCEL | SUBSTITUTE | STRING_TERMINATOR)
        | (At::Enclosed(Enclosed::Osc), BELL)
        | (At::EnclosedEscape(_), '\\') => At::Text,
        (At::Enclosed(_) | At::EnclosedEscape(_) | At::Shift, '\n') => {
            kept.push('\n');
            At::Text
        }
        (At::Enclosed(kind), ESCAPE) => At::EnclosedEscape(kind),
        (At::Enclosed(kind), _) => At::Enclosed(kind),
        // The ESC did not begin the end but another sequence: the string is over.
        (At::EnclosedEscape(_), other) => step(At::Escape, other, kept),
        (_, ESCAPE) => At::Escape,
        (_, CONTROL_SEQUENCE) => At::Control,
        (_, OSC) => At::Enclosed(Enclosed::Osc),
        (_, DEVICE_CONTROL | START_OF_STRING | PRIVACY | APPLICATION) => At::Enclosed(Enclosed::Other),
        (_, CANCEL | SUBSTITUTE) => At::Text,
        (_, SHIFT_TWO | SHIFT_THREE) | (At::Escape, 'N' | 'O') => At::Shift,
        (At::Escape, '[') | (At::Control, ' '..='?') => At::Control,
        (At::Escape, ']') => At::Enclosed(Enclosed::Osc),
        (At::Escape, 'P' | 'X' | '^' | '_') => At::Enclosed(Enclosed::Other),
        (At::Escape | At::Intermediate, ' '..='/') => At::Intermediate,
        (At::Shift, _) | (At::Escape | At::Intermediate, '0'..='~') | (At::Control, '@'..='~') => At::Text,
        // A terminal would go on with the sequence in the next line, and take letters of it.
        (At::Escape | At::Intermediate | At::Control, '\n' | '\r') => {
            kept.push(character);
            At::Text
        }
        // Other controls act in the middle of a sequence, which goes on after them.
        (At::Escape | At::Intermediate | At::Control, '\t' | '\u{8}') => {
            kept.push(character);
            at
        }
        (At::Escape | At::Intermediate | At::Control, control) if control.is_control() => at,
        // No sequence has such a character: it was none, and what follows is text again.
        (_, other) => {
            if !other.is_control() || matches!(other, '\n' | '\r' | '\t' | '\u{8}') {
                kept.push(other);
            }
            At::Text
        }
    }
}

/// Carriage returns and backspaces overwrite: of a progress display the last state counts. Where the pieces of a line have
/// nothing in common, the carriage return was meant as a line break, as old files have it, and nothing is lost.
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

/// Is `piece` an earlier state of the progress that `next` tells of? Both say how many in a hundred, and what is between the
/// digits and the bar is the same, so that nothing but numbers is lost. All else is a line that somebody may want to read.
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

/// What bars are drawn with, that grow.
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

//! How known programs read their arguments: where `--` can be inserted, and which values have a special meaning
//! although they do not begin with `-`.

mod programs;

use std::net::Ipv6Addr;

use self::programs::PROGRAMS;
use super::file_values::{FileOption, FilledValue};

/// The argument conventions of a family of programs. Most programs are unknown.
#[derive(Debug)]
pub struct Conventions {
    names: &'static [&'static str],
    ending: OptionsEnd,
    /// Options that take the next element as their value: letters and long names.
    letters: &'static str,
    words: &'static [&'static str],
    marks: SpecialCharacters,
    /// Options whose values can name a file.
    files: &'static [FileOption],
    first: FirstElement,
    operands: Operands,
    lines: ValueLines,
    search: SearchMode,
    /// Letters of options that add more than lines to the output of a search.
    revealing: &'static str,
    /// The output of a search without matches.
    no_match: Option<&'static str>,
    /// An exit code other than 0 that is a valid answer. For a program that does more than search, it counts only for
    /// searches.
    answer: Option<u8>,
    /// The exit code of a program that could not read every directory.
    partial_exit: Option<u8>,
}

/// Whether options end at `--`, and `--` has no other effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OptionsEnd {
    AtDashes,
    Unknown,
}

/// Characters with a special meaning in values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SpecialCharacters {
    None,
    /// At the start of an element or of an option's value.
    Leading {
        signs: &'static str,
        why: &'static str,
    },
    Anywhere {
        signs: &'static str,
        why: &'static str,
    },
    /// All characters except letters, digits and these.
    AllBut {
        signs: &'static str,
        why: &'static str,
    },
}

/// Whether the first element is read as options even without a dash.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FirstElement {
    LikeOthers,
    Options,
}

/// The meaning of an element that is neither an option nor an option's value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Operands {
    Anything,
    /// A URL, whose scheme decides between a request and a local file. `{a,b}` and `[a-b]` expand to several URLs.
    Urls,
    /// A file, or a variable assignment of the form `name=value`.
    FilesOrSettings,
}

/// How many lines a value may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ValueLines {
    One,
    /// The value is a script. Only a document that says so may pass one.
    Many,
}

/// Whether it prints lines of files that match a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SearchMode {
    Never,
    Always,
    /// If this word is among the arguments.
    With(&'static str),
    /// If this option is given, as a letter or long name.
    WithOption(char, &'static str),
}

impl Conventions {
    /// Looks up a program by its command name and by the file that the name resolves to: `slogin` is an `ssh`. `None`
    /// if the two names have different conventions, because it is unclear which apply.
    pub fn of(command: &str, file_name: &str) -> Option<&'static Self> {
        match (Self::by_name(command), Self::by_name(file_name)) {
            (Some(called), Some(found)) => std::ptr::eq(called, found).then_some(called),
            (Some(known), None) | (None, Some(known)) => Some(known),
            (None, None) => Some(&UNKNOWN),
        }
    }

    /// `/usr/bin/python3.12` is a `python`, and `x86_64-linux-gnu-gcc-12` a `gcc`.
    fn by_name(command: &str) -> Option<&'static Self> {
        let name = command.rsplit('/').next().unwrap_or_default();
        let family = toolgate_spec::program_family(name);
        let is_named = |known: &&Conventions| {
            known.names.iter().any(|one| one.eq_ignore_ascii_case(name) || one.eq_ignore_ascii_case(&family))
        };
        PROGRAMS.iter().find(is_named)
    }

    pub fn ends_options_at_dashes(&self) -> bool {
        self.ending == OptionsEnd::AtDashes
    }

    /// Whether the element after this one is its value.
    pub fn takes_next(&self, option: &str) -> bool {
        if let Some(word) = option.strip_prefix("--") {
            return self.words.contains(&word);
        }
        // In `-rne`, the first letter that takes a value takes the rest of the element, or the next element.
        let letters = option.strip_prefix('-').unwrap_or_default();
        let taking = letters.find(|letter| self.letters.contains(letter));
        taking.is_some_and(|at| at + 1 == letters.len())
    }

    /// Whether a letter in this group takes the rest of the element as its value.
    pub fn takes_rest(&self, option: &str) -> bool {
        let letters = option.strip_prefix('-').and_then(|letters| letters.split('=').next());
        letters.is_some_and(|letters| {
            !letters.starts_with('-') && letters.contains(|letter| self.letters.contains(letter))
        })
    }

    /// Whether a value appended to this literal would be read as more option letters.
    pub fn glues_options(&self, literal: &str) -> bool {
        let letters = literal.strip_prefix('-').unwrap_or_default();
        self.ending == OptionsEnd::AtDashes
            && !letters.is_empty()
            && !letters.starts_with('-')
            && !letters.contains(|letter| self.letters.contains(letter))
    }

    /// Why this program gives the value a special meaning.
    pub fn refuses(&self, value: &str, before: &str) -> Option<String> {
        let begins = before.is_empty() || before.ends_with('=') || before.starts_with('-');
        let found = |signs: &str| value.chars().find(|sign| signs.contains(*sign));
        match self.marks {
            SpecialCharacters::None => None,
            SpecialCharacters::Leading { signs, why } => {
                let first = value.chars().next().filter(|sign| begins && signs.contains(*sign))?;
                Some(format!("begins with `{first}`, {why}"))
            }
            SpecialCharacters::Anywhere { signs, why } => {
                found(signs).map(|sign| format!("contains `{sign}`, {why}"))
            }
            SpecialCharacters::AllBut { signs, why } => {
                let other = value.chars().find(|c| !c.is_ascii_alphanumeric() && !signs.contains(*c))?;
                Some(format!("contains `{}`, {why}", other.escape_debug()))
            }
        }
    }

    /// Why a caller's value names a file. `part` follows `before` in the element; the option is `option` or in the
    /// same element.
    pub fn refuses_file(
        &self,
        option: Option<&str>,
        (before, part): (&str, &str),
        element: &str,
    ) -> Option<&'static str> {
        let (option, whole) = match option {
            Some(option) => (self.option_of(option)?.0, element),
            None => self.option_of(element)?,
        };
        let rule = self.files.iter().find(|rule| rule.options.contains(&option))?;
        let of_option = element.len() - whole.len();
        let filled = FilledValue { before: before.get(of_option..).unwrap_or_default(), part, whole };
        (rule.is_in)(&filled).then_some(rule.why)
    }

    /// The letter or long name of an option that takes a value, and the part of the value in the same element.
    fn option_of<'e>(&self, element: &'e str) -> Option<(&'e str, &'e str)> {
        if let Some(word) = element.strip_prefix("--") {
            return Some(word.split_once('=').unwrap_or((word, "")));
        }
        let letters = element.strip_prefix('-')?;
        let at = letters.find(|letter| self.letters.contains(letter))?;
        Some((letters.get(at..=at)?, letters.get(at + 1..)?))
    }

    /// Why an operand that starts with a caller's value is not a plain file or web address, and what to write
    /// instead.
    pub fn refuses_operand(&self, operand: &str) -> Option<(String, &'static str)> {
        match self.operands {
            Operands::Anything => None,
            Operands::Urls => {
                refuses_url(operand).map(|why| (why, "begin the value with `http://` or `https://`"))
            }
            Operands::FilesOrSettings => {
                let why = "contains `=` after a name, which this command reads as a setting";
                sets_variable(operand).then(|| (why.to_owned(), "a file is named `./a=b`"))
            }
        }
    }

    /// The option that takes an operand in the same element.
    pub fn operand_option(&self) -> Option<&'static str> {
        (self.operands == Operands::Urls).then_some("--url=")
    }

    pub fn reads_first_as_options(&self) -> bool {
        self.first == FirstElement::Options
    }

    /// Whether this command line searches for a text in files.
    pub fn searches(&self, line: &[String]) -> bool {
        match self.search {
            SearchMode::Never => false,
            SearchMode::Always => true,
            SearchMode::With(word) => line.iter().any(|element| element == word),
            SearchMode::WithOption(letter, word) => {
                line.iter().any(|element| is_option(element, letter, word))
            }
        }
    }

    /// The letters of a group, up to the first one that takes a value.
    pub fn letters_of<'e>(&self, element: &'e str) -> Option<&'e str> {
        let letters = element.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        letters.split_inclusive(|letter| self.letters.contains(letter)).next()
    }

    /// The option that adds headings, separators or totals to the output of a search.
    pub fn revealing_option<'l>(&self, line: &'l [String]) -> Option<&'l str> {
        let is_revealing = |element: &&str| {
            let is_word = |word: &&str| element.len() >= SHORTEST && word.starts_with(*element);
            let is_letter = |letters: &str| letters.contains(|letter| self.revealing.contains(letter));
            REVEALING.iter().any(is_word) || self.letters_of(element).is_some_and(is_letter)
        };
        let mut before = "";
        let options = line.iter().map(String::as_str).take_while(|element| *element != "--");
        let mut options = options.filter(|element| {
            let is_value = before == "-e" || self.takes_next(before);
            before = if is_value { "" } else { element };
            !is_value
        });
        options.find(is_revealing)
    }

    pub const fn no_match_message(&self) -> Option<&'static str> {
        self.no_match
    }

    pub fn takes_lines(&self) -> bool {
        self.lines == ValueLines::Many
    }

    pub fn is_partial_exit(&self, exit: u8) -> bool {
        self.partial_exit == Some(exit)
    }

    pub fn is_answer_exit(&self, exit: u8, line: &[String]) -> bool {
        self.answer == Some(exit) && (self.search == SearchMode::Never || self.searches(line))
    }
}

/// Also matches inside letter groups and abbreviations. False positives are accepted.
fn is_option(element: &str, letter: char, word: &str) -> bool {
    match element.strip_prefix("--") {
        Some(given) => {
            let given = given.split('=').next().unwrap_or_default();
            !given.is_empty() && word.starts_with(given)
        }
        None => element.strip_prefix('-').is_some_and(|letters| letters.contains(letter)),
    }
}

fn refuses_url(operand: &str) -> Option<String> {
    let start = operand.split('/').next().unwrap_or_default();
    let is_web = |scheme: &str| ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    match start.strip_suffix(':') {
        Some(scheme) if is_web(scheme) => None,
        Some(scheme) => Some(format!("begins with `{}:`, which is not a web address", scheme.escape_debug())),
        // The scheme could come from the set.
        None if start.contains(['{', '[']) && !begins_with_address(start) => {
            Some("begins with a set of alternatives".to_owned())
        }
        None => guessed_scheme(start)
            .map(|scheme| format!("begins with `{scheme}.`, which makes this command use another protocol")),
    }
}

/// Without a scheme, curl requests `ftp.example.com` by FTP.
fn guessed_scheme(start: &str) -> Option<&'static str> {
    let host = start.rsplit('@').next().unwrap_or_default();
    let label = host.split_once('.')?.0;
    ["dict", "ftp", "imap", "ldap", "pop3", "smtp"]
        .into_iter()
        .find(|guess| label.eq_ignore_ascii_case(guess))
}

/// `FS=x`, also with a namespace: `awk::FS=x`. Other forms (`9a=x`, `=x`) are files.
fn sets_variable(operand: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    operand.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_of_name)
    })
}

/// `[::1]`, with or without a port.
fn begins_with_address(start: &str) -> bool {
    let inside = start.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    inside.is_some_and(|(address, port)| {
        address.parse::<Ipv6Addr>().is_ok() && port.chars().all(|c| c == ':' || c.is_ascii_digit())
    })
}

const UNKNOWN: Conventions = Conventions {
    names: &[],
    ending: OptionsEnd::Unknown,
    letters: "",
    words: &[],
    marks: SpecialCharacters::None,
    files: &[],
    first: FirstElement::LikeOthers,
    operands: Operands::Anything,
    lines: ValueLines::One,
    search: SearchMode::Never,
    revealing: "",
    no_match: None,
    answer: None,
    partial_exit: None,
};

/// Options of search programs. Some programs accept abbreviations; below this length they mean other options.
const REVEALING: [&str; 7] =
    ["--break", "--group", "--heading", "--json", "--pretty", "--show-function", "--stats"];
const SHORTEST: usize = 6;

#[cfg(test)]
mod tests;

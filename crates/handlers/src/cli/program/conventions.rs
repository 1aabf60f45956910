//! What is known of a program's own ways with its arguments? Enough to put `--` where it belongs and to refuse values
//! that mean more to it than themselves, though they do not begin with `-`.

mod programs;

use std::net::Ipv6Addr;

use self::programs::PROGRAMS;
use super::file_values::{FileValue, Filled};

/// A program's habits, by the family that its name belongs to. Of most programs nothing is known.
#[derive(Debug)]
pub struct Known {
    names: &'static [&'static str],
    ending: OptionsEnd,
    /// Options that take the next element for their value, as letters and as words.
    letters: &'static str,
    words: &'static [&'static str],
    marks: Marks,
    /// Options of which some values are the names of files.
    files: &'static [FileValue],
    first: FirstElement,
    operands: Operands,
    lines: Lines,
    search: Search,
    /// Letters of options by which a search's answer has more than lines.
    telling: &'static str,
    /// What a search that finds nothing says.
    nothing_found: Option<&'static str>,
    /// An exit code besides 0 that is an answer and not a failure; of one that can do more than search, where it searches.
    answer: Option<u8>,
    /// The exit code of one that went through folders and could not look at everything.
    partly: Option<u8>,
}

/// Do options end at `--`, and does nothing else come of it?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OptionsEnd {
    AtDashes,
    Unknown,
}

/// Values that are more than values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Marks {
    None,
    /// At the beginning of an element or of an option's value.
    Leading {
        signs: &'static str,
        why: &'static str,
    },
    Anywhere {
        signs: &'static str,
        why: &'static str,
    },
    /// Everything but letters, digits and these.
    AllBut {
        signs: &'static str,
        why: &'static str,
    },
}

/// Is the first element read as options even without a dash?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FirstElement {
    LikeOthers,
    Options,
}

/// What is an element that is neither an option nor the value of one?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Operands {
    Anything,
    /// A URL, whose scheme decides whether a host is asked or a file is read. `{a,b}` and `[a-b]` in it stand for several.
    Urls,
    /// A file, unless it is a name with `=` and a value: that sets a variable of the program.
    FilesOrSettings,
}

/// How many lines may a value have?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lines {
    One,
    /// It is a script, and only a document that says so hands one over.
    Many,
}

/// Does it show the lines of files in which a text is found?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Search {
    Never,
    Always,
    /// With this word among its arguments.
    With(&'static str),
    /// With an option of this letter, or of this word.
    WithOption(char, &'static str),
}

impl Known {
    /// By the name that the program is called by and by that of the file which links lead to: `slogin` is an `ssh`. `None`
    /// where the two are known for different ways: one of them is wrong, and nobody knows which.
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
        let is_named = |known: &&Known| {
            known.names.iter().any(|one| one.eq_ignore_ascii_case(name) || one.eq_ignore_ascii_case(&family))
        };
        PROGRAMS.iter().find(is_named)
    }

    pub fn ends_options_at_dashes(&self) -> bool {
        self.ending == OptionsEnd::AtDashes
    }

    /// Is the element after this one its value?
    pub fn takes_next(&self, option: &str) -> bool {
        if let Some(word) = option.strip_prefix("--") {
            return self.words.contains(&word);
        }
        // In `-rne` the first letter that takes a value has the rest for it, or the next element.
        let letters = option.strip_prefix('-').unwrap_or_default();
        let taking = letters.find(|letter| self.letters.contains(letter));
        taking.is_some_and(|at| at + 1 == letters.len())
    }

    /// Is there a letter in this group that takes the rest of the element for its value?
    pub fn takes_rest(&self, option: &str) -> bool {
        let letters = option.strip_prefix('-').and_then(|letters| letters.split('=').next());
        letters.is_some_and(|letters| {
            !letters.starts_with('-') && letters.contains(|letter| self.letters.contains(letter))
        })
    }

    /// Would what a caller glues to this literal be more letters, each an option?
    pub fn glues_options(&self, literal: &str) -> bool {
        let letters = literal.strip_prefix('-').unwrap_or_default();
        self.ending == OptionsEnd::AtDashes
            && !letters.is_empty()
            && !letters.starts_with('-')
            && !letters.contains(|letter| self.letters.contains(letter))
    }

    /// Why a value means more to this program than itself.
    pub fn refuses(&self, value: &str, before: &str) -> Option<String> {
        let begins = before.is_empty() || before.ends_with('=') || before.starts_with('-');
        let found = |signs: &str| value.chars().find(|sign| signs.contains(*sign));
        match self.marks {
            Marks::None => None,
            Marks::Leading { signs, why } => {
                let first = value.chars().next().filter(|sign| begins && signs.contains(*sign))?;
                Some(format!("begins with `{first}`, {why}"))
            }
            Marks::Anywhere { signs, why } => found(signs).map(|sign| format!("contains `{sign}`, {why}")),
            Marks::AllBut { signs, why } => {
                let other = value.chars().find(|c| !c.is_ascii_alphanumeric() && !signs.contains(*c))?;
                Some(format!("contains `{}`, {why}", other.escape_debug()))
            }
        }
    }

    /// Why what a caller chose names a file: `part` of an element after `before`, as the value of `option` or with the option in
    /// the same element.
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
        let filled = Filled { before: before.get(of_option..).unwrap_or_default(), part, whole };
        (rule.is_in)(&filled).then_some(rule.why)
    }

    /// The letter or word of an option that takes a value, and what of the value stands in the same element.
    fn option_of<'e>(&self, element: &'e str) -> Option<(&'e str, &'e str)> {
        if let Some(word) = element.strip_prefix("--") {
            return Some(word.split_once('=').unwrap_or((word, "")));
        }
        let letters = element.strip_prefix('-')?;
        let at = letters.find(|letter| self.letters.contains(letter))?;
        Some((letters.get(at..=at)?, letters.get(at + 1..)?))
    }

    /// Why an operand that begins with a caller's value would be more than a file or an address on the web, and what to write
    /// instead.
    pub fn refuses_operand(&self, operand: &str) -> Option<(String, &'static str)> {
        match self.operands {
            Operands::Anything => None,
            Operands::Urls => {
                refuses_url(operand).map(|why| (why, "begin the value with `http://` or `https://`"))
            }
            Operands::FilesOrSettings => {
                let why = "contains `=` after a name, which to this command is a setting";
                sets_variable(operand).then(|| (why.to_owned(), "a file is named `./a=b`"))
            }
        }
    }

    /// The option that an operand can be glued to, and is one all the same.
    pub fn operand_option(&self) -> Option<&'static str> {
        (self.operands == Operands::Urls).then_some("--url=")
    }

    pub fn reads_first_as_options(&self) -> bool {
        self.first == FirstElement::Options
    }

    /// Does this command line look for a text in files?
    pub fn searches(&self, line: &[String]) -> bool {
        match self.search {
            Search::Never => false,
            Search::Always => true,
            Search::With(word) => line.iter().any(|element| element == word),
            Search::WithOption(letter, word) => line.iter().any(|element| is_option(element, letter, word)),
        }
    }

    /// The letters of a group, up to one that takes a value: behind it stands the value.
    pub fn letters_of<'e>(&self, element: &'e str) -> Option<&'e str> {
        let letters = element.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        letters.split_inclusive(|letter| self.letters.contains(letter)).next()
    }

    /// The option by which the answer of a search has headings, ends or sums besides lines.
    pub fn tells_besides_lines<'l>(&self, line: &'l [String]) -> Option<&'l str> {
        let is_telling = |element: &&str| {
            let is_word = |word: &&str| element.len() >= SHORTEST && word.starts_with(*element);
            let is_letter = |letters: &str| letters.contains(|letter| self.telling.contains(letter));
            TELLING.iter().any(is_word) || self.letters_of(element).is_some_and(is_letter)
        };
        let mut before = "";
        let options = line.iter().map(String::as_str).take_while(|element| *element != "--");
        let mut options = options.filter(|element| {
            let is_value = before == "-e" || self.takes_next(before);
            before = if is_value { "" } else { element };
            !is_value
        });
        options.find(is_telling)
    }

    pub const fn says_nothing_found(&self) -> Option<&'static str> {
        self.nothing_found
    }

    pub fn takes_lines(&self) -> bool {
        self.lines == Lines::Many
    }

    pub fn could_not_see_all(&self, exit: u8) -> bool {
        self.partly == Some(exit)
    }

    pub fn answers_by(&self, exit: u8, line: &[String]) -> bool {
        self.answer == Some(exit) && (self.search == Search::Never || self.searches(line))
    }
}

/// Also among other letters, and shortened; rather too often than not.
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
        Some(scheme) => Some(format!("begins with `{}:`, which is not the web", scheme.escape_debug())),
        // The scheme may come out of the set.
        None if start.contains(['{', '[']) && !begins_with_address(start) => {
            Some("begins with a set of beginnings".to_owned())
        }
        None => guessed_scheme(start)
            .map(|scheme| format!("begins with `{scheme}.`, by which this command chooses another protocol")),
    }
}

/// Without a scheme, `ftp.example.com` is asked by FTP.
fn guessed_scheme(start: &str) -> Option<&'static str> {
    let host = start.rsplit('@').next().unwrap_or_default();
    let label = host.split_once('.')?.0;
    ["dict", "ftp", "imap", "ldap", "pop3", "smtp"]
        .into_iter()
        .find(|guess| label.eq_ignore_ascii_case(guess))
}

/// `FS=x`, also in a namespace: `awk::FS=x`. What begins otherwise (`9a=x`, `=x`) is a file.
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

const UNKNOWN: Known = Known {
    names: &[],
    ending: OptionsEnd::Unknown,
    letters: "",
    words: &[],
    marks: Marks::None,
    files: &[],
    first: FirstElement::LikeOthers,
    operands: Operands::Anything,
    lines: Lines::One,
    search: Search::Never,
    telling: "",
    nothing_found: None,
    answer: None,
    partly: None,
};

/// Options of searches. Some programs take them shortened; shorter than this they are others.
const TELLING: [&str; 7] =
    ["--break", "--group", "--heading", "--json", "--pretty", "--show-function", "--stats"];
const SHORTEST: usize = 6;

#[cfg(test)]
mod tests;

//! Helpers that a worker implements itself. The usage report of a call has one bit for each helper used.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Helper {
    Console,
    Timers,
    Encoding,
    Url,
    Crypto,
    Intl,
    Html,
    Xml,
    Csv,
    Yaml,
}

impl Helper {
    pub const ALL: &[Self] = &[
        Self::Console,
        Self::Timers,
        Self::Encoding,
        Self::Url,
        Self::Crypto,
        Self::Intl,
        Self::Html,
        Self::Xml,
        Self::Csv,
        Self::Yaml,
    ];

    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Timers => "timers",
            Self::Encoding => "encoding",
            Self::Url => "url",
            Self::Crypto => "crypto",
            Self::Intl => "intl",
            Self::Html => "safety.parser.html",
            Self::Xml => "safety.parser.xml",
            Self::Csv => "safety.parser.csv",
            Self::Yaml => "safety.parser.yaml",
        }
    }

    /// The names of the bits that a worker sent; unknown bits are ignored.
    pub fn names(bits: u32) -> Vec<&'static str> {
        Self::ALL.iter().filter(|helper| bits & helper.bit() != 0).map(|helper| helper.name()).collect()
    }
}

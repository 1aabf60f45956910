//! Which helpers does a worker answer itself? It tells with the usage of a call which of them were asked, one bit each.

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

    /// The names behind the bits that a worker sent; a bit that stands for nothing is passed over.
    pub fn names(bits: u32) -> Vec<&'static str> {
        Self::ALL.iter().filter(|helper| bits & helper.bit() != 0).map(|helper| helper.name()).collect()
    }
}

//! Helpers that need no effects: pure functions of their input, in Rust.

mod charge;
mod collation;
mod crypto;
mod csv;
mod display_name;
mod encoding;
mod html;
mod segment;
mod url;
mod xml;
mod yaml;
mod zone;

pub use charge::charge;
use icu_locale_core::Locale;
use toolgate_engine::Op;

/// The value that JavaScript receives.
#[derive(Clone, Debug, PartialEq)]
pub enum HelperAnswer {
    Nothing,
    Text(String),
    /// JSON text, parsed by the engine.
    Json(String),
    Bytes(Vec<u8>),
}

/// Who caused the error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorClass {
    InvalidInput,
    HelperRuntime,
    Security,
}

impl ErrorClass {
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidInput => "INVALID_INPUT",
            Self::HelperRuntime => "HELPER_RUNTIME",
            Self::Security => "SECURITY",
        }
    }
}

/// Thrown in JavaScript as a `ToolError`.
#[derive(Clone, Debug, PartialEq)]
pub struct HelperError {
    pub class: ErrorClass,
    /// The name that tool authors know, such as `crypto.subtle.sign`.
    pub helper: String,
    /// A slug that programs can test.
    pub reason: String,
    pub message: String,
}

impl HelperError {
    pub fn invalid(helper: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::InvalidInput, helper, reason, message)
    }

    pub fn runtime(helper: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::HelperRuntime, helper, reason, message)
    }

    pub fn new(class: ErrorClass, helper: &str, reason: &str, message: impl Into<String>) -> Self {
        Self { class, helper: helper.to_owned(), reason: reason.to_owned(), message: message.into() }
    }

    /// The JSON from which the prelude builds the error.
    pub fn to_json(&self) -> String {
        serde_json::json!({
            "kind": self.class.name(),
            "helper": self.helper,
            "reason": self.reason,
            "message": self.message,
        })
        .to_string()
    }
}

/// Shows untrusted text completely, or only its length. A truncated secret could not be redacted by the gateway.
fn whole_or_length(text: &str, most: usize) -> String {
    match text.chars().count() {
        long if long > most => format!("({long} characters)"),
        _ => text.escape_debug().to_string(),
    }
}

/// Parses a locale tag. Returns `None` if it is invalid.
fn locale(tag: &str) -> Option<Locale> {
    const MAX_LENGTH: usize = 256;
    (tag.len() <= MAX_LENGTH).then(|| Locale::try_from_str(tag).ok())?
}

/// Answers a pure question; `None` for all other ops. Intermediate data larger than the response may use `room` bytes.
pub fn answer(op: Op, text: &str, bytes: &[u8], room: usize) -> Option<Result<HelperAnswer, HelperError>> {
    Some(match op {
        Op::Random => crypto::random(text),
        Op::Utf8Encode => Ok(HelperAnswer::Bytes(text.as_bytes().to_vec())),
        Op::Decode => encoding::decode(text, bytes),
        Op::EncodingName => Ok(encoding::name(text)),
        Op::UrlParse => url::parse(text),
        Op::UrlSet => url::set(text),
        Op::Digest => crypto::digest(text, bytes),
        Op::HmacSign => crypto::hmac_sign(text, bytes),
        Op::HmacVerify => crypto::hmac_verify(text, bytes),
        Op::AesGcmEncrypt => crypto::aes_gcm_encrypt(text, bytes),
        Op::AesGcmDecrypt => crypto::aes_gcm_decrypt(text, bytes),
        Op::Hkdf => crypto::hkdf(text, bytes),
        Op::Pbkdf2 => crypto::pbkdf2(text, bytes),
        Op::ZonedTime => zone::zoned_time(text),
        Op::ZoneName => zone::zone_name(text),
        Op::Collate => collation::compare(text),
        Op::Collator => collation::resolve(text),
        Op::Segment => segment::segment(text),
        Op::DisplayName => Ok(display_name::of(text)),
        Op::ParseHtml => html::parse(text, room),
        Op::ParseXml => xml::parse(text),
        Op::ParseCsv => csv::parse(text),
        Op::ParseYaml => yaml::parse(text),
        Op::Console | Op::Sleep | Op::Fetch | Op::FetchedText | Op::FetchedBytes | Op::Files => return None,
    })
}

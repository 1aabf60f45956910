//! Parses and changes URLs according to the URL standard.

use serde::Deserialize;
use url::{Position, Url, quirks};

use super::{HelperAnswer, HelperError};

/// JSON `[input, base?]`. Returns the parts, or nothing if the input is not a URL.
pub fn parse(text: &str) -> Result<HelperAnswer, HelperError> {
    let (input, base): (String, Option<String>) = question(text)?;
    if !fits(&input) || base.as_deref().is_some_and(|base| !fits(base)) {
        return Err(too_long());
    }
    let parsed = match base {
        None => Url::parse(&input),
        Some(base) => Url::parse(&base).and_then(|base| base.join(&input)),
    };
    Ok(parsed.as_ref().map_or(HelperAnswer::Nothing, parts))
}

/// JSON `[href, part, value]`. Returns the parts of the changed URL; of the same URL if the standard ignores the value;
/// or nothing if it is not a URL.
pub fn set(text: &str) -> Result<HelperAnswer, HelperError> {
    let (href, part, value): (String, UrlPart, String) = question(text)?;
    if !fits(&href) || value.len() > MAX_LENGTH {
        return Err(too_long());
    }
    let Ok(mut url) = Url::parse(&href) else { return Ok(HelperAnswer::Nothing) };
    change(&mut url, part, &value);
    Ok(reparsed(&url).as_ref().map_or(HelperAnswer::Nothing, parts))
}

/// Parses the changed URL again. Ignores a change that would turn a part of the path into the host, or the reverse.
fn reparsed(url: &Url) -> Option<Url> {
    let authority = |url: &Url| url[..Position::BeforePath].to_owned();
    Url::parse(url.as_str()).ok().filter(|read| authority(read) == authority(url))
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UrlPart {
    Protocol,
    Username,
    Password,
    Host,
    Hostname,
    Port,
    Pathname,
    Search,
    Hash,
}

/// Ignores values that do not fit, as the standard requires.
fn change(url: &mut Url, part: UrlPart, value: &str) {
    let _ignored_when_unfit = match part {
        UrlPart::Protocol => quirks::set_protocol(url, value),
        UrlPart::Username => quirks::set_username(url, value),
        UrlPart::Password => quirks::set_password(url, value),
        UrlPart::Host => quirks::set_host(url, value),
        UrlPart::Hostname => quirks::set_hostname(url, value),
        UrlPart::Port => quirks::set_port(url, value),
        UrlPart::Pathname => {
            quirks::set_pathname(url, value);
            Ok(())
        }
        UrlPart::Search => {
            quirks::set_search(url, value);
            Ok(())
        }
        UrlPart::Hash => {
            quirks::set_hash(url, value);
            Ok(())
        }
    };
}

fn parts(url: &Url) -> HelperAnswer {
    let parts = [
        quirks::href(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
        &quirks::origin(url),
    ];
    HelperAnswer::Json(serde_json::json!(parts).to_string())
}

fn question<'text, T: Deserialize<'text>>(text: &'text str) -> Result<T, HelperError> {
    serde_json::from_str(text).map_err(|error| {
        HelperError::invalid(HELPER, "invalid-arguments", format!("invalid arguments: {error}"))
    })
}

/// A host with non-ASCII letters costs quadratic time in the length of its labels, hence the limit. A `data:` URL has
/// no host.
fn fits(text: &str) -> bool {
    let is_data = text.get(..DATA.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(DATA));
    text.len() <= if is_data { MAX_DATA } else { MAX_LENGTH }
}

fn too_long() -> HelperError {
    HelperError::invalid(HELPER, "invalid-url", "the URL is longer than 64 KiB; send the data in a body")
}

const HELPER: &str = "URL";
const DATA: &str = "data:";
const MAX_LENGTH: usize = 64 << 10;
const MAX_DATA: usize = 1 << 20;

#[cfg(test)]
mod tests;

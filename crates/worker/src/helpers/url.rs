//! Which parts does an address have? Parsed and changed as the URL standard of the web says.

use serde::Deserialize;
use url::{Position, Url, quirks};

use super::{Answer, HelperError};

/// JSON `[input, base?]`. The parts come back, or nothing when the input is no URL.
pub fn parse(text: &str) -> Result<Answer, HelperError> {
    let (input, base): (String, Option<String>) = question(text)?;
    if !fits(&input) || base.as_deref().is_some_and(|base| !fits(base)) {
        return Err(too_long());
    }
    let parsed = match base {
        None => Url::parse(&input),
        Some(base) => Url::parse(&base).and_then(|base| base.join(&input)),
    };
    Ok(parsed.as_ref().map_or(Answer::Nothing, parts))
}

/// JSON `[href, part, value]`. The parts of the changed URL come back, of the same URL when the standard ignores the
/// value, or nothing when it is no URL.
pub fn set(text: &str) -> Result<Answer, HelperError> {
    let (href, part, value): (String, Part, String) = question(text)?;
    if !fits(&href) || value.len() > LONGEST {
        return Err(too_long());
    }
    let Ok(mut url) = Url::parse(&href) else { return Ok(Answer::Nothing) };
    change(&mut url, part, &value);
    Ok(settled(&url).as_ref().map_or(Answer::Nothing, parts))
}

/// What the changed URL reads as. A change after which a part of the path would be taken for the host, or the other way
/// round, is none.
fn settled(url: &Url) -> Option<Url> {
    let authority = |url: &Url| url[..Position::BeforePath].to_owned();
    Url::parse(url.as_str()).ok().filter(|read| authority(read) == authority(url))
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part {
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

/// The standard ignores values that do not fit; so do we.
fn change(url: &mut Url, part: Part, value: &str) {
    let _ignored_when_unfit = match part {
        Part::Protocol => quirks::set_protocol(url, value),
        Part::Username => quirks::set_username(url, value),
        Part::Password => quirks::set_password(url, value),
        Part::Host => quirks::set_host(url, value),
        Part::Hostname => quirks::set_hostname(url, value),
        Part::Port => quirks::set_port(url, value),
        Part::Pathname => {
            quirks::set_pathname(url, value);
            Ok(())
        }
        Part::Search => {
            quirks::set_search(url, value);
            Ok(())
        }
        Part::Hash => {
            quirks::set_hash(url, value);
            Ok(())
        }
    };
}

fn parts(url: &Url) -> Answer {
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
    Answer::Json(serde_json::json!(parts).to_string())
}

fn question<'text, T: Deserialize<'text>>(text: &'text str) -> Result<T, HelperError> {
    serde_json::from_str(text).map_err(|error| {
        HelperError::invalid(HELPER, "invalid-arguments", format!("the question is not understood: {error}"))
    })
}

/// A host in other letters than ASCII costs time in the square of its labels' length, hence the limit. Data that is
/// written as a URL has no host.
fn fits(text: &str) -> bool {
    let is_data = text.get(..DATA.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(DATA));
    text.len() <= if is_data { LONGEST_DATA } else { LONGEST }
}

fn too_long() -> HelperError {
    HelperError::invalid(HELPER, "invalid-url", "the URL is longer than 64 KiB; send such data in a body")
}

const HELPER: &str = "URL";
const DATA: &str = "data:";
const LONGEST: usize = 64 << 10;
const LONGEST_DATA: usize = 1 << 20;

#[cfg(test)]
mod tests;

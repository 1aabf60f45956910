//! Parses request lines and headers of a command. Rejects everything that two parsers could read differently.

use http::{
    HeaderName,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING},
};

use crate::error::{EgressError, EgressReason, quoted};

/// Request line and headers as the command wrote them.
#[derive(Debug)]
pub struct RequestHead {
    pub method: String,
    pub target: String,
    pub version: HttpVersion,
    headers: Vec<(HeaderName, String)>,
    /// The header names in the spelling of the request.
    pub names: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HttpVersion {
    Http10,
    Http11,
}

/// How the end of the body is marked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyFraming {
    Absent,
    Length(usize),
    Chunked,
}

/// Returns the position after the head, if it is complete. `from` is the length that was scanned before. A bare line
/// feed is an error at once, because the head could never be completed.
pub fn end(bytes: &[u8], from: usize) -> Result<Option<usize>, EgressError> {
    let start = from.saturating_sub(END.len());
    let fresh = bytes.get(start..).unwrap_or_default();
    let found = fresh.windows(END.len()).position(|window| window == END).map(|at| start + at + END.len());
    let head = bytes.get(..found.unwrap_or(bytes.len())).unwrap_or_default();
    let head = head.get(start..).unwrap_or_default();
    // An earlier call has already checked the byte before `start`.
    let is_bare = |pair: &[u8]| matches!(pair, [before, b'\n'] if *before != b'\r');
    if head.windows(2).any(is_bare) || bytes.starts_with(b"\n") {
        return Err(invalid("lines must end with CR LF"));
    }
    Ok(found)
}

impl RequestHead {
    /// Parses a head including its empty line.
    pub fn parse(bytes: &[u8]) -> Result<Self, EgressError> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
        let text = text.ok_or_else(|| invalid("it has bytes that are not ASCII; encode them"))?;
        let text = text.strip_suffix("\r\n\r\n").ok_or_else(|| invalid("it has no end"))?;
        let mut lines = text.split("\r\n");
        let (method, target, version) = request_line(lines.next().unwrap_or_default())?;
        let lines: Vec<&str> = lines.collect();
        let headers = lines.iter().map(|line| header(line)).collect::<Result<_, _>>()?;
        let names = lines.iter().filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_owned());
        Ok(Self { method, target, version, headers, names: names.collect() })
    }

    pub fn headers(&self) -> impl Iterator<Item = (&HeaderName, &str)> {
        self.headers.iter().map(|(name, value)| (name, value.as_str()))
    }

    pub fn values<'a>(&'a self, name: &HeaderName) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a header that must not be repeated.
    pub fn single(&self, name: &HeaderName) -> Result<Option<&str>, EgressError> {
        let mut values = self.values(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(invalid(&format!("header {} is repeated", quoted(name.as_str()))));
        }
        Ok(first)
    }

    /// Whether the Connection header lists this header, which limits it to this connection.
    pub fn is_nominated(&self, name: &HeaderName) -> bool {
        let words = self.values(&CONNECTION).flat_map(|value| value.split(','));
        words.map(str::trim).any(|word| word.eq_ignore_ascii_case(name.as_str()))
    }

    /// Rejects ambiguous lengths: the next server must read the same length as this proxy.
    pub fn framing(&self) -> Result<BodyFraming, EgressError> {
        let length = self.single(&CONTENT_LENGTH)?;
        let coding = self.single(&TRANSFER_ENCODING)?;
        match (length, coding) {
            (None, None) => Ok(BodyFraming::Absent),
            (Some(_), Some(_)) => Err(invalid("it has both Content-Length and Transfer-Encoding")),
            (None, Some(coding))
                if self.version == HttpVersion::Http11 && coding.eq_ignore_ascii_case("chunked") =>
            {
                Ok(BodyFraming::Chunked)
            }
            (None, Some(_)) => Err(invalid("its Transfer-Encoding is not `chunked`")),
            (Some(length), None) => {
                // `parse` alone would accept a sign.
                let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
                let length = length.parse().ok().filter(|_| is_number);
                length.map(BodyFraming::Length).ok_or_else(|| invalid("its Content-Length is not a number"))
            }
        }
    }
}

fn request_line(line: &str) -> Result<(String, String, HttpVersion), EgressError> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(invalid("the first line is not a method, a target and a version"));
    };
    let version = match version {
        "HTTP/1.1" => HttpVersion::Http11,
        "HTTP/1.0" => HttpVersion::Http10,
        _ => return Err(invalid("its version is neither HTTP/1.1 nor HTTP/1.0")),
    };
    if http::Method::from_bytes(method.as_bytes()).is_err() {
        return Err(invalid("its method is not a valid token"));
    }
    if target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(invalid("its target has characters that must be encoded"));
    }
    Ok((method.to_owned(), target.to_owned(), version))
}

/// Rejects a space before the colon and continuation lines, because parsers read them differently.
fn header(line: &str) -> Result<(HeaderName, String), EgressError> {
    if line.starts_with([' ', '\t']) {
        return Err(invalid("a header continues on the next line"));
    }
    let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header has no colon"))?;
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| invalid(&format!("{} is not a header name", quoted(name))))?;
    let value = value.trim_matches([' ', '\t']);
    if !value.bytes().all(|byte| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic()) {
        return Err(invalid(&format!("header {} has control characters", quoted(name.as_str()))));
    }
    Ok((name, value.to_owned()))
}

pub fn invalid(why: &str) -> EgressError {
    EgressError::new(EgressReason::InvalidRequest, format!("the request cannot be read: {why}"))
}

const END: &[u8] = b"\r\n\r\n";

#[cfg(test)]
mod tests;

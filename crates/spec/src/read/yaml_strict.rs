//! Rejects YAML that JSON cannot express or that other readers understand differently: tags and ambiguous numbers.

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};

use crate::{Code, Finding, Pointer, SourceSpan};

/// The first such position in a text that is already parsed and therefore bounded.
pub(super) fn refusal(text: &str) -> Option<Finding> {
    // A quick test; nearly every document ends here.
    if !text.contains('!') && !has_odd_digits(text.as_bytes()) {
        return None;
    }
    Parser::new_from_str(text).map_while(Result::ok).find_map(|(event, span)| {
        let (message, remedy) = problem(&event)?;
        let offset = span.start.byte_offset().unwrap_or_default();
        let finding = Finding::new(Code::SpecParse, Pointer::root(), message, remedy);
        Some(finding.at_span(SourceSpan::new(offset, offset)))
    })
}

fn problem(event: &Event<'_>) -> Option<(String, &'static str)> {
    match event {
        Event::Scalar(.., Some(tag))
        | Event::SequenceStart(.., Some(tag))
        | Event::MappingStart(.., Some(tag)) => Some((
            format!("tag `{}` is not supported", tag.to_string().escape_debug()),
            super::yaml_error::NO_TAGS,
        )),
        Event::Scalar(written, ScalarStyle::Plain, ..) if is_ambiguous(written) => Some((
            format!("`{}` is read differently by other YAML readers", written.escape_debug()),
            "write a number as JSON does: decimal, without leading zeros and underscores; quote it if a string is meant",
        )),
        _ => None,
    }
}

/// Depending on the YAML version, `0777` is 777 or 511, and `0b11` and `1_000` are numbers or strings.
fn is_ambiguous(written: &str) -> bool {
    let digits = written.strip_prefix(['+', '-']).unwrap_or(written);
    if let Some(rest) = digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0o")) {
        return rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    }
    if let Some(rest) = digits.strip_prefix("0x") {
        return rest.contains('_') && rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'_');
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_number = mantissa.starts_with(|first: char| first.is_ascii_digit())
        && mantissa.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.'))
        && mantissa.matches('.').count() <= 1
        && exponent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    is_number && (digits.contains('_') || has_leading_zero(mantissa))
}

fn has_leading_zero(mantissa: &str) -> bool {
    mantissa.strip_prefix('0').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Whether `is_ambiguous` can be true for any part of the text.
fn has_odd_digits(text: &[u8]) -> bool {
    text.windows(2).any(|pair| match pair {
        [b'0', b'0'..=b'9' | b'b' | b'o'] => true,
        [before, b'_'] => before.is_ascii_hexdigit() || *before == b'x',
        _ => false,
    })
}

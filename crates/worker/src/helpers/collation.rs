//! Compares texts by the rules of a language, with the collation data of the Unicode CLDR.
//!
//! The library needs quadratic time for runs of digits, marks and some letters. Texts longer than `PART` characters are
//! therefore compared in parts.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use icu_collator::{
    Collator, CollatorBorrowed, CollatorPreferences,
    options::{AlternateHandling, CaseLevel, CollatorOptions, Strength},
    preferences::{CollationCaseFirst, CollationNumericOrdering},
};
use icu_locale_core::Locale;
use serde_json::json;

use super::{HelperAnswer, HelperError, locale};

/// JSON `[locale, settings, text, text]` becomes `-1`, `0` or `1`.
pub fn compare(question: &str) -> Result<HelperAnswer, HelperError> {
    let (tag, settings, one, other): (String, String, String, String) = serde_json::from_str(question)
        .map_err(|_| invalid("bad-question", "expected [locale, settings, text, text]"))?;
    if one.len().saturating_add(other.len()) > MAX_BYTES {
        return Err(invalid(
            "text-too-long",
            "the texts to compare have more than 256 KiB together; compare shorter texts",
        ));
    }
    let Some(locale) = locale(&tag) else { return Ok(HelperAnswer::Nothing) };
    let settings = CollationSettings::parse(&settings);
    let is_long = [&one, &other].iter().any(|text| text.chars().nth(PART).is_some());
    let letters = if is_long {
        let base = CollationSettings { sensitivity: 'b', ..settings };
        compare_parts(&collator(&locale, base)?, &one, &other)
    } else {
        Ordering::Equal
    };
    let order = match letters {
        Ordering::Equal => compare_parts(&collator(&locale, settings)?, &one, &other),
        unequal => unequal,
    };
    Ok(HelperAnswer::Json((order as i8).to_string()))
}

/// JSON `[locale, settings]` becomes `[numeric, caseFirst, ignorePunctuation]` with the locale's defaults filled in.
pub fn resolve(question: &str) -> Result<HelperAnswer, HelperError> {
    let (tag, settings): (String, String) =
        serde_json::from_str(question).map_err(|_| invalid("bad-question", "expected [locale, settings]"))?;
    let Some(locale) = locale(&tag) else { return Ok(HelperAnswer::Nothing) };
    let resolved = collator(&locale, CollationSettings::parse(&settings))?.resolved_options();
    let case_first = match resolved.case_first {
        CollationCaseFirst::Upper => "upper",
        CollationCaseFirst::Lower => "lower",
        _ => "false",
    };
    let numeric = resolved.numeric == CollationNumericOrdering::True;
    let ignores_punctuation = resolved.alternate_handling == AlternateHandling::Shifted;
    Ok(HelperAnswer::Json(json!([numeric, case_first, ignores_punctuation]).to_string()))
}

/// One character each; see `Op::Collate`.
#[derive(Clone, Copy)]
struct CollationSettings {
    sensitivity: char,
    numeric: char,
    case_first: char,
    ignore_punctuation: char,
}

impl CollationSettings {
    fn parse(text: &str) -> Self {
        let mut letters = text.chars();
        let mut next = || letters.next().unwrap_or('-');
        Self { sensitivity: next(), numeric: next(), case_first: next(), ignore_punctuation: next() }
    }
}

fn collator(locale: &Locale, settings: CollationSettings) -> Result<CollatorBorrowed<'static>, HelperError> {
    let mut preferences = CollatorPreferences::from(locale);
    let mut options = CollatorOptions::default();
    options.strength = Some(match settings.sensitivity {
        'b' | 'c' => Strength::Primary,
        'a' => Strength::Secondary,
        _ => Strength::Tertiary,
    });
    options.case_level = (settings.sensitivity == 'c').then_some(CaseLevel::On);
    options.alternate_handling = match settings.ignore_punctuation {
        '0' => Some(AlternateHandling::NonIgnorable),
        '1' => Some(AlternateHandling::Shifted),
        _ => None,
    };
    match settings.numeric {
        '0' => preferences.numeric_ordering = Some(CollationNumericOrdering::False),
        '1' => preferences.numeric_ordering = Some(CollationNumericOrdering::True),
        _ => {}
    }
    match settings.case_first {
        'u' => preferences.case_first = Some(CollationCaseFirst::Upper),
        'l' => preferences.case_first = Some(CollationCaseFirst::Lower),
        '0' => preferences.case_first = Some(CollationCaseFirst::False),
        _ => {}
    }
    Collator::try_new(preferences, options)
        .map_err(|error| HelperError::runtime("Intl.Collator", "no-data", error.to_string()))
}

/// The first parts that differ decide.
fn compare_parts(collator: &CollatorBorrowed<'_>, mut one: &str, mut other: &str) -> Ordering {
    while !(one.is_empty() && other.is_empty()) {
        let (one_part, one_rest) = split_part(one);
        let (other_part, other_rest) = split_part(other);
        match collator.compare(one_part, other_part) {
            Ordering::Equal => (one, other) = (one_rest, other_rest),
            unequal => return unequal,
        }
    }
    Ordering::Equal
}

fn split_part(text: &str) -> (&str, &str) {
    let end = text.char_indices().nth(PART).map_or(text.len(), |(end, _)| end);
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn invalid(reason: &str, message: &str) -> HelperError {
    HelperError::invalid("Intl.Collator", reason, message)
}

/// Both texts together. A comparison cannot be interrupted; this size took less than 40 ms in a release build.
const MAX_BYTES: usize = 256 << 10;
/// Characters that are compared at once.
const PART: usize = 512;

//! Validates rules and derives their keywords.

use std::collections::BTreeSet;

use regex_automata::{meta, util::syntax};
use regex_syntax::hir::{Hir, HirKind, literal::Extractor};

use super::{
    Context, ContextLines, KeywordCase, MatchPosition, SecretRule,
    alphabet::Alphabet,
    file::{ContextText, RuleText},
};
use crate::check::RuleCheck;

pub(super) fn compile(text: &RuleText) -> Result<SecretRule, String> {
    for (field, value) in [("id", &text.id), ("provider", &text.provider), ("type", &text.kind)] {
        check_name(field, value)?;
    }
    if text.unverified.is_some() && text.check.is_none() {
        return Err("`unverified` needs a `check`; it is the tier for values that fail it".to_owned());
    }
    if text.unverified.is_some_and(|tier| tier >= text.tier) {
        return Err("`unverified` must be a lower tier than `tier`".to_owned());
    }
    if text.min_entropy.is_some() && text.context.is_none() {
        return Err("`minEntropy` alone matches anything random; add a `context`".to_owned());
    }
    let context = text.context.as_ref().map(read_context).transpose()?;
    let source = text.pattern.replace(VALUE_MACRO, &between_name_and_value());
    let hir = parse(&source)?;
    let longest = longest(&hir, text.check)?;
    let case = if text.pattern.starts_with("(?i)") { KeywordCase::Ignored } else { KeywordCase::Exact };
    let (words, place) = words(text, &hir, case, context.as_ref())?;
    let beginnings = beginnings(text, &hir, place)?;
    let pattern = meta::Builder::new()
        .configure(meta::Config::new().utf8_empty(false))
        .syntax(syntax())
        .build(&source)
        .map_err(|cause| format!("`pattern` cannot be compiled: {cause}"))?;
    let group = pattern.group_info().to_index(regex_automata::PatternID::ZERO, "secret");
    Ok(SecretRule {
        id: text.id.as_str().into(),
        provider: text.provider.as_str().into(),
        kind: text.kind.as_str().into(),
        tier: text.tier,
        unverified: text.unverified,
        words,
        case,
        place,
        beginnings,
        pattern,
        group,
        longest,
        shortest: hir.properties().minimum_len().unwrap_or(0),
        alphabet: Alphabet::of(&hir),
        needed: needed(&hir),
        check: text.check,
        context: context.filter(|_| !matches!(place, MatchPosition::After { .. })),
        min_entropy: text.min_entropy,
    })
}

/// Matches everything between a keyword in a name and the first character of the value, in common notations. Shared,
/// because several rules differ only in their keywords.
fn between_name_and_value() -> String {
    let quote = r#"\\{0,2}["'`]"#;
    let blank = r"[ \t]{0,4}";
    let lines = r"[ \t\r\n]{0,40}";
    let simple = format!(r"(?:true|false|null|[0-9]{{1,8}}|{quote}[a-z0-9_./:-]{{0,60}}{quote})");
    let member = format!(
        "{quote}{blank}(?::{blank}\\{{|,){lines}(?:(?:{quote})?[a-z_]{{1,24}}(?:{quote})?{blank}:{blank}{simple}{blank},{lines}){{0,3}}\
         (?:{quote})?(?:[a-z_]{{0,20}}value|s)(?:{quote})?{blank}:{blank}{quote}"
    );
    let argument =
        format!(r"{quote}{blank},{lines}(?:default[a-z_]{{0,10}} ?= ?)?[rbuf]{{0,2}}(?:{quote}){{1,2}}");
    let kind =
        format!(r"(?:{blank}:)?{blank}&?(?:'static )?(?:str|string|secretstr|char|text|any)\??[ \t]{{1,4}}=");
    let sign = r"[ \t]{0,40}(?:=>|:{1,3}=|\?\??=|\|\|=?|\.=|\+=|[!=]==?|=|:)";
    let list = format!(r"\[{lines}{quote}(?:{quote}{blank},{lines}{quote}){{0,3}}");
    let item = format!(r"\r?\n[ \t]{{0,40}}-[ \t]{{1,4}}(?:{quote})?");
    let next_line = format!(r"\r?\n[ \t]{{1,40}}{quote}");
    let block = r"[|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,40}";
    let assigned = format!(
        r"(?:{quote})?[\])]?(?:{kind}|{sign})[ \t]{{0,40}}(?:{list}|{item}|{next_line}|{block}|(?:[rbfu@$]{{0,2}}{quote})?)"
    );
    let next_value = format!("[\"']?{blank}\\r?\\n[ \\t]{{0,40}}value:{blank}[\"']?");
    let attributes = "(?:[ \\t]{1,4}[a-z:_-]{1,20}=[\"'][^\"'<>\\r\\n]{0,60}[\"']){0,3}";
    let beside = format!(
        "(?:[ \\t]{{1,4}}-[ \\t]{{1,4}}{quote}|\\([ \\t]{{0,2}}[rbfu@]{{0,2}}{quote}|{attributes}>(?:[ \\t]{{0,4}}\\r?\\n[ \\t]{{0,40}})?\
         |[ \\t]{{1,40}}(?:\\|[ \\t]{{1,40}})?(?:{quote})?|[\"'][ \\t]{{1,4}}value=[\"'])"
    );
    format!("(?:{member}|{argument}|{assigned}|{next_value}|{beside})[^\\s\"'`\\\\]")
}

/// Names are part of markers, and markers are parsed again.
fn check_name(field: &str, name: &str) -> Result<(), String> {
    let is_fine = (1..=40).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_fine {
        return Ok(());
    }
    Err(format!("`{field}` is `{name}`; use 1 to 40 of a-z, 0-9 and `-`"))
}

fn parse(pattern: &str) -> Result<Hir, String> {
    let parsed =
        regex_syntax::ParserBuilder::new().unicode(false).utf8(false).nest_limit(40).build().parse(pattern);
    parsed.map_err(|cause| {
        let cause = cause.to_string();
        format!("`pattern` cannot be read: {}", cause.lines().last().unwrap_or_default())
    })
}

fn syntax() -> syntax::Config {
    syntax::Config::new().unicode(false).utf8(false).nest_limit(40)
}

fn longest(hir: &Hir, check: Option<RuleCheck>) -> Result<usize, String> {
    let goes_on = matches!(check, Some(RuleCheck::Assigned | RuleCheck::AssignedKey | RuleCheck::Pem));
    if !goes_on && hir.properties().minimum_len().is_none_or(|least| least < MIN_MATCH) {
        return Err(format!("`pattern` can match fewer than {MIN_MATCH} characters; make it longer"));
    }
    match hir.properties().maximum_len() {
        Some(longest) if longest <= MAX_MATCH => Ok(longest),
        _ => {
            Err(format!("`pattern` may match more than {MAX_MATCH} characters; limit it, as in `{{20,200}}`"))
        }
    }
}

fn read_context(text: &ContextText) -> Result<Context, String> {
    if text.words.is_empty() || text.within == 0 || text.within > MAX_WITHIN {
        return Err(format!("`context` needs words, and `within` from 1 to {MAX_WITHIN}"));
    }
    let words = text.words.iter().map(|word| literal("context", &word.to_ascii_lowercase(), MIN_CONTEXT));
    let lines = if text.same_line { ContextLines::Same } else { ContextLines::Any };
    Ok(Context { words: words.collect::<Result<_, _>>()?, within: text.within, lines })
}

fn words(
    text: &RuleText,
    hir: &Hir,
    case: KeywordCase,
    context: Option<&Context>,
) -> Result<(Words, MatchPosition), String> {
    if text.reach > MAX_MATCH {
        return Err(format!("`reach` is more than {MAX_MATCH}"));
    }
    if !text.keywords.is_empty() {
        let words =
            text.keywords.iter().map(|word| literal("keywords", word, MIN_WORD)).collect::<Result<_, _>>()?;
        let place =
            if text.reach == 0 { MatchPosition::Here } else { MatchPosition::Around { reach: text.reach } };
        return Ok((words, place));
    }
    if case == KeywordCase::Exact
        && let Some(words) = prefixes(hir)
    {
        return Ok((shortened(words), MatchPosition::Here));
    }
    let Some(context) = context else {
        return Err(
            "`pattern` does not begin with three fixed characters; add `keywords` or a `context`".to_owned()
        );
    };
    Ok((context.words.clone(), MatchPosition::After { within: context.within, lines: context.lines }))
}

/// Fixed beginnings of a secret that contains the keyword; the search starts there.
fn beginnings(text: &RuleText, hir: &Hir, place: MatchPosition) -> Result<Words, String> {
    if !matches!(place, MatchPosition::Around { .. }) {
        return Ok(Vec::new());
    }
    if text.check == Some(RuleCheck::Loose) {
        return Err(
            "`loose` cannot be combined with `reach`, because it would match base64 from anywhere; add a `context`"
                .to_owned(),
        );
    }
    // Each beginning is searched at every hit, so many numbers do not qualify.
    let few = prefixes(hir).map(shortened).filter(|few| few.len() <= FEW_WORDS).unwrap_or_default();
    if text.reach > MAX_SEARCH && few.is_empty() {
        return Err(format!(
            "`reach` is more than {MAX_SEARCH}; let `pattern` begin with three fixed characters, in one of \
             {FEW_WORDS} ways at most"
        ));
    }
    Ok(few)
}

fn literal(field: &str, word: &str, least: usize) -> Result<Box<[u8]>, String> {
    if word.len() >= least && word.is_ascii() {
        return Ok(word.as_bytes().into());
    }
    Err(format!("`{word}` in `{field}` is too short or not ASCII; give at least {least} characters"))
}

type Words = Vec<Box<[u8]>>;

/// The fixed beginnings of all possible matches.
fn prefixes(hir: &Hir) -> Option<Words> {
    let mut extractor = Extractor::new();
    extractor.limit_class(10).limit_literal_len(24).limit_total(MAX_PREFIXES).limit_repeat(4);
    let found = extractor.extract(hir);
    let words: Words = found.literals()?.iter().map(|word| word.as_bytes().into()).collect();
    (!words.is_empty() && words.iter().all(|word| word.len() >= MIN_WORD)).then_some(words)
}

/// A rare byte that every match contains, but not at its start: a URL with a password has an `@`.
fn needed(hir: &Hir) -> Option<u8> {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().copied().find(|byte| RARE.contains(byte)),
        HirKind::Capture(capture) => needed(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => needed(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().skip(1).find_map(needed),
        _ => None,
    }
}

/// Shortens the beginnings if that leaves few of many: `xoxb-` for a thousand of `xoxb-000`. Each keyword costs time,
/// and a rule with many is not searched in encodings.
fn shortened(words: Words) -> Words {
    if words.len() <= FEW_WORDS {
        return words;
    }
    let longest = words.iter().map(|word| word.len()).max().unwrap_or(0);
    let cut = |length: usize| -> BTreeSet<&[u8]> {
        words.iter().map(|word| word.get(..length).unwrap_or(word)).collect()
    };
    let few = (MIN_CUT..longest).rev().map(cut).find(|few| few.len() <= FEW_WORDS);
    few.map(|few| few.into_iter().map(Into::into).collect()).unwrap_or(words)
}

/// In a pattern: the text that [`between_name_and_value`] matches.
const VALUE_MACRO: &str = "(?&value)";
/// The literal search extends a keyword of three by a token character.
const MIN_WORD: usize = 3;
/// Shorter keywords would occur everywhere.
const MIN_CUT: usize = 4;
const FEW_WORDS: usize = 16;
/// Few texts contain many of these, and searching one is much cheaper than running a regex.
const RARE: &[u8] = b"@?|~#$!";
const MIN_CONTEXT: usize = 4;
const MIN_MATCH: usize = 8;
const MAX_MATCH: usize = 8 * 1024;
/// The longest search before a keyword, unless the beginning of the pattern is fixed.
const MAX_SEARCH: usize = 256;
const MAX_WITHIN: usize = 400;
const MAX_PREFIXES: usize = 1500;

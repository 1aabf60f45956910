//! Searches a piece of text for secrets, including disguised ones.
//!
//! Searches the text itself first, then its *views*: each disguise that is undone gives a view, which is searched like
//! a text, at most two levels deep. A bounded number of views covers each byte, so the cost stays linear.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use crate::{
    check::body_end,
    disguises::{UnfoldBuffers, unfold},
    encoded::{self, Keyword},
    finding::{Encoding, Tier},
    literals::{LiteralCoding, Literals, Needle, NeedleMeaning},
    marker::Markers,
    rule::{KeywordCase, MatchEnd, SecretRule},
    spaced_tokens::spread,
    split_tokens::join,
    view::TextView,
};

pub(crate) struct Searcher {
    pub rules: Vec<SecretRule>,
    literals: Literals,
    /// The decoded forms of encoded keywords.
    keywords: Vec<Keyword>,
    markers: Markers,
}

/// A secret that one rule found in one view; several may cover the same span.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SecretCandidate {
    /// The index of the rule.
    pub rule: usize,
    pub tier: Tier,
    pub span: Range<usize>,
    pub encoding: Encoding,
    pub end: MatchEnd,
}

/// Buffers for undoing disguises, one per depth.
#[derive(Default)]
pub(crate) struct Scratch {
    rooms: [UnfoldBuffers; MAX_DEPTH as usize],
}

/// The current depth and the rules that apply.
#[derive(Clone, Copy)]
struct SearchLayer {
    depth: u8,
    scope: SearchScope,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum SearchScope {
    AllRules,
    /// The text was reassembled: apply only rules that need no context.
    StandingAlone,
}

/// Findings in the plain text: rule and start, with end and tier.
type PlainFindings = HashMap<(usize, usize), (usize, Tier)>;

impl Searcher {
    pub(crate) fn new(rules: Vec<SecretRule>) -> Self {
        let markers = Markers::new(rules.iter().map(|rule| (&*rule.kind, &*rule.provider)));
        let (needles, keywords) = needles(&rules);
        Self { rules, literals: Literals::new(needles), keywords, markers }
    }

    /// Returns all candidates, unordered.
    pub(crate) fn search(&self, hay: &[u8], scratch: &mut Scratch) -> Vec<SecretCandidate> {
        let mut found = Vec::new();
        self.search_layer(hay, SearchLayer { depth: 0, scope: SearchScope::AllRules }, scratch, &mut found);
        found
    }

    fn search_layer(
        &self,
        hay: &[u8],
        layer: SearchLayer,
        scratch: &mut Scratch,
        found: &mut Vec<SecretCandidate>,
    ) {
        self.search_plain(hay, layer, scratch, found);
        // A reassembled text cannot contain another split token.
        if layer.depth == MAX_DEPTH || layer.scope == SearchScope::StandingAlone {
            return;
        }
        // A secret that was found in plain text is not searched again in views.
        let plain: PlainFindings = found
            .iter()
            .map(|found| ((found.rule, found.span.start), (found.span.end, found.tier)))
            .collect();
        let deeper = SearchLayer { depth: layer.depth + 1, ..layer };
        let alone = SearchLayer { scope: SearchScope::StandingAlone, ..deeper };
        let mut room = scratch.take(layer);
        unfold(hay, &mut room, |view| self.search_view(hay, view, deeper, &plain, scratch, found));
        scratch.give_back(layer, room);
        join(hay, |view| self.search_view(hay, view, alone, &plain, scratch, found));
        spread(hay, |view| self.search_view(hay, view, alone, &plain, scratch, found));
    }

    fn search_view(
        &self,
        hay: &[u8],
        view: &TextView,
        layer: SearchLayer,
        plain: &PlainFindings,
        scratch: &mut Scratch,
        found: &mut Vec<SecretCandidate>,
    ) {
        let mut inner = Vec::new();
        self.search_layer(&view.text, layer, scratch, &mut inner);
        for candidate in inner {
            let original = match layer.scope {
                // The disguise may be next to the secret: a word boundary or its keyword.
                SearchScope::AllRules => view.original_or_beside(&candidate.span),
                // Between reassembled pieces there is no context.
                SearchScope::StandingAlone => view.original(&candidate.span),
            };
            let Some((mut span, encoding)) = original else { continue };
            // The same secret may continue behind an undone disguise; across joined lines it does not.
            let is_known = plain.get(&(candidate.rule, span.start)).is_some_and(|(end, tier)| {
                layer.scope == SearchScope::StandingAlone || (span.end <= *end && candidate.tier <= *tier)
            });
            if is_known {
                continue;
            }
            let mut end = candidate.end;
            if end == MatchEnd::Open {
                let (more, ends) = body_end(hay.get(span.end..).unwrap_or_default());
                span.end += more;
                end = ends;
            }
            let encoding = if candidate.encoding == Encoding::Plain { encoding } else { candidate.encoding };
            found.push(SecretCandidate { span, encoding, end, ..candidate });
        }
    }

    fn search_plain(
        &self,
        hay: &[u8],
        layer: SearchLayer,
        scratch: &mut Scratch,
        found: &mut Vec<SecretCandidate>,
    ) {
        let mut decoded = DecodedUntil::default();
        let marks = self.markers.find(hay);
        // Per rule, because another rule may be more certain.
        let mut keys_until: HashMap<usize, usize> = HashMap::new();
        self.literals.each(hay, |at, needle| match needle.meaning {
            NeedleMeaning::Rule(index) => {
                let Some(rule) = self.rules.get(index) else { return };
                let is_left_out = layer.scope == SearchScope::StandingAlone && !rule.stands_alone();
                if is_left_out || keys_until.get(&index).is_some_and(|until| at < *until) {
                    return;
                }
                rule.matches(hay, at..at + needle.text.len(), &marks, |matched| {
                    if let Some(until) = rule.covers_until(hay, &matched.span) {
                        keys_until.insert(index, until);
                    }
                    found.push(SecretCandidate {
                        rule: index,
                        tier: matched.tier,
                        span: matched.span,
                        encoding: Encoding::Plain,
                        end: matched.end,
                    });
                });
            }
            NeedleMeaning::Coded { coding, keyword } if layer.depth < MAX_DEPTH => {
                let Some(keyword) = self.keywords.get(keyword) else { return };
                self.search_decoded(hay, at, coding, keyword, &mut decoded, layer, scratch, found);
            }
            NeedleMeaning::Coded { .. } => {}
        });
    }

    #[expect(clippy::too_many_arguments, reason = "one hit and the state of the pass; used once")]
    fn search_decoded(
        &self,
        hay: &[u8],
        at: usize,
        coding: LiteralCoding,
        keyword: &Keyword,
        decoded: &mut DecodedUntil,
        layer: SearchLayer,
        scratch: &mut Scratch,
        found: &mut Vec<SecretCandidate>,
    ) {
        if decoded.covers(at, coding) {
            return;
        }
        let Some(run) = encoded::run(hay, at, coding, keyword) else { return };
        decoded.note(at, coding, run.span.end);
        let mut inner = Vec::new();
        let deeper = SearchLayer { depth: layer.depth + 1, scope: SearchScope::AllRules };
        self.search_layer(&run.decoded(hay), deeper, scratch, &mut inner);
        let encoding = match coding {
            LiteralCoding::Base64 { .. } => Encoding::Base64,
            LiteralCoding::Hex => Encoding::Hex,
        };
        found.extend(inner.into_iter().map(|candidate| {
            let span = run.covering(hay, &candidate.span);
            SecretCandidate { span, encoding, end: MatchEnd::Closed, ..candidate }
        }));
    }
}

impl Scratch {
    fn take(&mut self, layer: SearchLayer) -> UnfoldBuffers {
        self.rooms.get_mut(usize::from(layer.depth)).map(std::mem::take).unwrap_or_default()
    }

    fn give_back(&mut self, layer: SearchLayer, room: UnfoldBuffers) {
        if let Some(buffers) = self.rooms.get_mut(usize::from(layer.depth)) {
            *buffers = room;
        }
    }
}

/// How far encoded runs were decoded, per alignment of their groups. Each run is decoded once per alignment.
#[derive(Default)]
struct DecodedUntil {
    base64: [usize; 4],
    hex: [usize; 2],
}

impl DecodedUntil {
    fn covers(&mut self, at: usize, coding: LiteralCoding) -> bool {
        self.slot(at, coding).is_some_and(|until| at < *until)
    }

    fn note(&mut self, at: usize, coding: LiteralCoding, end: usize) {
        if let Some(until) = self.slot(at, coding) {
            *until = end;
        }
    }

    fn slot(&mut self, at: usize, coding: LiteralCoding) -> Option<&mut usize> {
        match coding {
            LiteralCoding::Base64 { offset } => {
                let group = (at + 4 - (offset * 8).div_ceil(6)) % 4;
                self.base64.get_mut(group)
            }
            LiteralCoding::Hex => self.hex.get_mut(at % 2),
        }
    }
}

/// The keywords of all rules, plain and encoded, and the decoded forms of the encoded ones.
fn needles(rules: &[SecretRule]) -> (Vec<Needle>, Vec<Keyword>) {
    let mut needles = Vec::new();
    let mut once: BTreeSet<Keyword> = BTreeSet::new();
    let mut twice: BTreeSet<Vec<u8>> = BTreeSet::new();
    for (index, rule) in rules.iter().enumerate() {
        let folds_case = rule.case == KeywordCase::Ignored || !rule.word_is_inside();
        let meaning = NeedleMeaning::Rule(index);
        needles.extend(rule.words.iter().map(|word| Needle { text: word.clone(), folds_case, meaning }));
        if !rule.word_is_inside() || rule.tier < Tier::Probable || rule.words.len() > MAX_CODED {
            continue;
        }
        for word in &rule.words {
            once.insert(Keyword { text: word.clone(), case: rule.case });
            if !folds_case {
                twice.extend((0..3).flat_map(|offset| encoded::fixed_base64(word, offset)));
            }
        }
    }
    twice.retain(|text| text.len() >= MIN_TWICE);
    for (at, keyword) in once.iter().enumerate() {
        for beginning in keyword.beginnings() {
            needles.extend(encoded::base64_needles(&beginning, at));
            needles.push(encoded::hex_needle(&beginning, at));
        }
    }
    for (text, at) in twice.iter().zip(once.len()..) {
        needles.extend(encoded::base64_needles(text, at));
    }
    let coded = twice.into_iter().map(|text| Keyword { text: text.into(), case: KeywordCase::Exact });
    (needles, once.into_iter().chain(coded).collect())
}

/// Base64 within base64, escapes within base64: at most two levels deep.
const MAX_DEPTH: u8 = 2;
/// A rule with more keywords is not searched in encodings; it would fill the filter.
const MAX_CODED: usize = 64;
/// Shorter pieces of base64 are not searched in base64: they occur everywhere.
const MIN_TWICE: usize = 4;

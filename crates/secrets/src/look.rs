//! Which secrets stand in a piece of text, in any disguise?
//!
//! First as it is written, then as it reads: each disguise gives a *view*, and a view is looked at like a text of its own,
//! at most two deep. Every byte is looked at by a bounded number of views, so that the cost stays linear.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use crate::{
    check::body_end,
    coded::{self, Keyword},
    finding::{Encoding, Tier},
    join::join,
    literals::{Coding, Literals, Meaning, Needle},
    marker::Markers,
    rule::{Case, End, Rule},
    spread::spread,
    unfold::{Room, unfold},
    view::View,
};

pub(crate) struct Looker {
    pub rules: Vec<Rule>,
    literals: Literals,
    /// What encoded words decode to.
    keywords: Vec<Keyword>,
    markers: Markers,
}

/// A secret that one rule found in one view; several may cover the same place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Candidate {
    /// The index of the rule.
    pub rule: usize,
    pub tier: Tier,
    pub span: Range<usize>,
    pub encoding: Encoding,
    pub end: End,
}

/// Room for undoing disguises, at each depth.
#[derive(Default)]
pub(crate) struct Scratch {
    rooms: [Room; MAX_DEPTH as usize],
}

/// What is looked at, and for what.
#[derive(Clone, Copy)]
struct Layer {
    depth: u8,
    scope: Scope,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Scope {
    AllRules,
    /// The text was put together by us: only what needs no neighbour to prove it.
    StandingAlone,
}

/// What is found as it is written, by its rule and where it begins: where it ends, and how sure it is.
type Known = HashMap<(usize, usize), (usize, Tier)>;

impl Looker {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let markers = Markers::new(rules.iter().map(|rule| (&*rule.kind, &*rule.provider)));
        let (needles, keywords) = needles(&rules);
        Self { rules, literals: Literals::new(needles), keywords, markers }
    }

    /// Everything that is found, in no order.
    pub(crate) fn look(&self, hay: &[u8], scratch: &mut Scratch) -> Vec<Candidate> {
        let mut found = Vec::new();
        self.look_deeper(hay, Layer { depth: 0, scope: Scope::AllRules }, scratch, &mut found);
        found
    }

    fn look_deeper(&self, hay: &[u8], layer: Layer, scratch: &mut Scratch, found: &mut Vec<Candidate>) {
        self.look_plain(hay, layer, scratch, found);
        // What was put together holds nothing that could be put together once more.
        if layer.depth == MAX_DEPTH || layer.scope == Scope::StandingAlone {
            return;
        }
        // What is found as it is written is not looked for again across what follows it.
        let plain: Known = found
            .iter()
            .map(|found| ((found.rule, found.span.start), (found.span.end, found.tier)))
            .collect();
        let deeper = Layer { depth: layer.depth + 1, ..layer };
        let alone = Layer { scope: Scope::StandingAlone, ..deeper };
        let mut room = scratch.take(layer);
        unfold(hay, &mut room, |view| self.look_at_view(hay, view, deeper, &plain, scratch, found));
        scratch.give_back(layer, room);
        join(hay, |view| self.look_at_view(hay, view, alone, &plain, scratch, found));
        spread(hay, |view| self.look_at_view(hay, view, alone, &plain, scratch, found));
    }

    fn look_at_view(
        &self,
        hay: &[u8],
        view: &View,
        layer: Layer,
        plain: &Known,
        scratch: &mut Scratch,
        found: &mut Vec<Candidate>,
    ) {
        let mut inner = Vec::new();
        self.look_deeper(&view.text, layer, scratch, &mut inner);
        for candidate in inner {
            let original = match layer.scope {
                // It may be what stands beside it that was disguised: the border of a word, or the word that tells it.
                Scope::AllRules => view.original_or_beside(&candidate.span),
                // Between pieces that were put together there is nothing that could tell.
                Scope::StandingAlone => view.original(&candidate.span),
            };
            let Some((mut span, encoding)) = original else { continue };
            // Where a disguise was undone the same secret may go on behind it; where lines were put together it does not.
            let is_known = plain.get(&(candidate.rule, span.start)).is_some_and(|(end, tier)| {
                layer.scope == Scope::StandingAlone || (span.end <= *end && candidate.tier <= *tier)
            });
            if is_known {
                continue;
            }
            let mut end = candidate.end;
            if end == End::Open {
                let (more, ends) = body_end(hay.get(span.end..).unwrap_or_default());
                span.end += more;
                end = ends;
            }
            let encoding = if candidate.encoding == Encoding::Plain { encoding } else { candidate.encoding };
            found.push(Candidate { span, encoding, end, ..candidate });
        }
    }

    fn look_plain(&self, hay: &[u8], layer: Layer, scratch: &mut Scratch, found: &mut Vec<Candidate>) {
        let mut decoded = DecodedUntil::default();
        let marks = self.markers.find(hay);
        // By rule, for one may be surer than another.
        let mut keys_until: HashMap<usize, usize> = HashMap::new();
        self.literals.each(hay, |at, needle| match needle.meaning {
            Meaning::Rule(index) => {
                let Some(rule) = self.rules.get(index) else { return };
                let is_left_out = layer.scope == Scope::StandingAlone && !rule.stands_alone();
                if is_left_out || keys_until.get(&index).is_some_and(|until| at < *until) {
                    return;
                }
                rule.matches(hay, at..at + needle.text.len(), &marks, |matched| {
                    if let Some(until) = rule.covers_until(hay, &matched.span) {
                        keys_until.insert(index, until);
                    }
                    found.push(Candidate {
                        rule: index,
                        tier: matched.tier,
                        span: matched.span,
                        encoding: Encoding::Plain,
                        end: matched.end,
                    });
                });
            }
            Meaning::Coded { coding, keyword } if layer.depth < MAX_DEPTH => {
                let Some(keyword) = self.keywords.get(keyword) else { return };
                self.look_decoded(hay, at, coding, keyword, &mut decoded, layer, scratch, found);
            }
            Meaning::Coded { .. } => {}
        });
    }

    #[expect(clippy::too_many_arguments, reason = "one hit and the state of the pass; used once")]
    fn look_decoded(
        &self,
        hay: &[u8],
        at: usize,
        coding: Coding,
        keyword: &Keyword,
        decoded: &mut DecodedUntil,
        layer: Layer,
        scratch: &mut Scratch,
        found: &mut Vec<Candidate>,
    ) {
        if decoded.covers(at, coding) {
            return;
        }
        let Some(run) = coded::run(hay, at, coding, keyword) else { return };
        decoded.note(at, coding, run.span.end);
        let mut inner = Vec::new();
        let deeper = Layer { depth: layer.depth + 1, scope: Scope::AllRules };
        self.look_deeper(&run.decoded(hay), deeper, scratch, &mut inner);
        let encoding = match coding {
            Coding::Base64 { .. } => Encoding::Base64,
            Coding::Hex => Encoding::Hex,
        };
        found.extend(inner.into_iter().map(|candidate| {
            let span = run.covering(hay, &candidate.span);
            Candidate { span, encoding, end: End::Closed, ..candidate }
        }));
    }
}

impl Scratch {
    fn take(&mut self, layer: Layer) -> Room {
        self.rooms.get_mut(usize::from(layer.depth)).map(std::mem::take).unwrap_or_default()
    }

    fn give_back(&mut self, layer: Layer, room: Room) {
        if let Some(place) = self.rooms.get_mut(usize::from(layer.depth)) {
            *place = room;
        }
    }
}

/// How far encoded runs were decoded, by where their groups begin. A run is decoded once for each.
#[derive(Default)]
struct DecodedUntil {
    base64: [usize; 4],
    hex: [usize; 2],
}

impl DecodedUntil {
    fn covers(&mut self, at: usize, coding: Coding) -> bool {
        self.slot(at, coding).is_some_and(|until| at < *until)
    }

    fn note(&mut self, at: usize, coding: Coding, end: usize) {
        if let Some(until) = self.slot(at, coding) {
            *until = end;
        }
    }

    fn slot(&mut self, at: usize, coding: Coding) -> Option<&mut usize> {
        match coding {
            Coding::Base64 { offset } => {
                let group = (at + 4 - (offset * 8).div_ceil(6)) % 4;
                self.base64.get_mut(group)
            }
            Coding::Hex => self.hex.get_mut(at % 2),
        }
    }
}

/// The words of the rules, as they are and encoded, and what the encoded ones decode to.
fn needles(rules: &[Rule]) -> (Vec<Needle>, Vec<Keyword>) {
    let mut needles = Vec::new();
    let mut once: BTreeSet<Keyword> = BTreeSet::new();
    let mut twice: BTreeSet<Vec<u8>> = BTreeSet::new();
    for (index, rule) in rules.iter().enumerate() {
        let folds_case = rule.case == Case::Ignored || !rule.word_is_inside();
        let meaning = Meaning::Rule(index);
        needles.extend(rule.words.iter().map(|word| Needle { text: word.clone(), folds_case, meaning }));
        if !rule.word_is_inside() || rule.tier < Tier::Probable || rule.words.len() > MAX_CODED {
            continue;
        }
        for word in &rule.words {
            once.insert(Keyword { text: word.clone(), case: rule.case });
            if !folds_case {
                twice.extend((0..3).flat_map(|offset| coded::fixed_base64(word, offset)));
            }
        }
    }
    twice.retain(|text| text.len() >= MIN_TWICE);
    for (at, keyword) in once.iter().enumerate() {
        for beginning in keyword.beginnings() {
            needles.extend(coded::base64_needles(&beginning, at));
            needles.push(coded::hex_needle(&beginning, at));
        }
    }
    for (text, at) in twice.iter().zip(once.len()..) {
        needles.extend(coded::base64_needles(text, at));
    }
    let coded = twice.into_iter().map(|text| Keyword { text: text.into(), case: Case::Exact });
    (needles, once.into_iter().chain(coded).collect())
}

/// Base64 within base64, escapes within base64: two deep, and no deeper.
const MAX_DEPTH: u8 = 2;
/// A rule with more words than that is not looked for in encodings; it would fill the filter.
const MAX_CODED: usize = 64;
/// Shorter pieces of base64 are not looked for in base64: they would be everywhere.
const MIN_TWICE: usize = 4;

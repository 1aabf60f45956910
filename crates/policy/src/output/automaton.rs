//! Evaluates all output rules at once while walking down the fields of a result.
//!
//! The rules form one automaton. A state is a set of positions in the patterns; it is computed when it is first reached. Each
//! field then costs one lookup of its name.

use std::collections::HashMap;

use toolgate_spec::{
    FieldStep,
    model::{OutputAction, OutputRule},
};

#[derive(Debug)]
pub struct OutputAutomaton<'r> {
    rules: Vec<Bounded<'r>>,
    /// The actions of rules that match every field: for the result itself, its fields, and everything below.
    of_catch_alls: [OutputAction; 3],
    names: HashMap<&'r str, usize>,
    /// For each name, and last for all other names: the positions that such a field advances.
    moved_by: Vec<Positions>,
    /// Positions that stay active for any name.
    staying: Positions,
    /// Positions from which the next one is reached without a name.
    skipping: Positions,
    /// Positions reached by names only, from which a rule continues to an allowed field.
    leading: Positions,
    states: Vec<AutomatonState>,
    known: HashMap<RuleProgress, usize>,
}

/// A rule with names. It has a position per step, one for a match of this field, and one for a match further up.
#[derive(Debug)]
struct Bounded<'r> {
    rule: &'r OutputRule,
    end: usize,
}

type Positions = Vec<u64>;

/// The rules' progress at a field. Fields with equal progress are treated alike.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct RuleProgress {
    positions: Positions,
    /// The action of the closest matching rule with names, for this field or one above.
    said: Option<OutputAction>,
    /// The depth, as far as it matters to rules without names.
    depth: usize,
}

#[derive(Debug)]
struct AutomatonState {
    reached: RuleProgress,
    action: OutputAction,
    /// By the index of the name.
    below: Vec<Option<usize>>,
}

impl<'r> OutputAutomaton<'r> {
    pub fn new(rules: &'r [OutputRule]) -> Self {
        let (catch_alls, others): (Vec<_>, Vec<_>) =
            rules.iter().partition(|rule| rule.pattern.is_catch_all());
        let mut names = HashMap::new();
        let mut bounded = Vec::with_capacity(others.len());
        let mut next = 0;
        for rule in others {
            for step in rule.pattern.steps() {
                if let FieldStep::Name(name) = step {
                    let number = names.len();
                    names.entry(name).or_insert(number);
                }
                next += 1;
            }
            bounded.push(Bounded { rule, end: next });
            next += 2;
        }
        let none: Positions = vec![0; next.div_ceil(BITS)];
        let mut automaton = Self {
            of_catch_alls: [0, 1, 2].map(|depth| of_catch_alls(&catch_alls, depth)),
            moved_by: vec![none.clone(); names.len() + 1],
            staying: none.clone(),
            skipping: none.clone(),
            leading: none,
            names,
            rules: bounded,
            states: Vec::new(),
            known: HashMap::new(),
        };
        automaton.lay_out();
        automaton.begin();
        automaton
    }

    /// The state of the result itself.
    pub const TOP: usize = 0;

    pub fn action(&self, state: usize) -> OutputAction {
        self.states.get(state).map_or(OutputAction::Redact, |state| state.action)
    }

    /// True if rules name this field only on the path to an allowed field in it.
    pub fn leads_on(&self, state: usize) -> bool {
        self.states.get(state).is_some_and(|AutomatonState { reached, .. }| {
            let leading = intersection(&reached.positions, &self.leading);
            reached.said.is_none() && leading.iter().any(|positions| *positions != 0)
        })
    }

    /// The state of a field below. Leave it before entering another one of the same depth.
    pub fn below(&mut self, state: usize, field: &str) -> usize {
        let name = self.names.get(field).copied().unwrap_or(self.names.len());
        match self.states.get(state).and_then(|state| state.below.get(name)) {
            Some(Some(known)) => *known,
            _ => self.come_to(state, name),
        }
    }

    /// Drops a state that exceeded the cache limit.
    pub fn leave(&mut self, state: usize) {
        if state >= MOST_STATES {
            self.states.truncate(state);
        }
    }

    fn lay_out(&mut self) {
        for Bounded { rule, end } in &self.rules {
            let first = end - rule.pattern.steps().count();
            for (position, step) in (first..).zip(rule.pattern.steps()) {
                match step {
                    FieldStep::Name(name) => {
                        let number = self.names.get(name).copied();
                        if let Some(moved) = number.and_then(|number| self.moved_by.get_mut(number)) {
                            add(moved, position);
                        }
                    }
                    FieldStep::AnyName => self.moved_by.iter_mut().for_each(|moved| add(moved, position)),
                    FieldStep::AnyDepth => {
                        add(&mut self.staying, position);
                        add(&mut self.skipping, position);
                    }
                }
            }
            self.moved_by.iter_mut().for_each(|moved| add(moved, *end));
            add(&mut self.staying, end + 1);
            let named = rule.pattern.steps().take_while(|step| matches!(step, FieldStep::Name(_))).count();
            // Before `..`, everything below stays at the same position.
            let stays = rule.pattern.steps().nth(named) == Some(FieldStep::AnyDepth);
            let named = if stays { named.saturating_sub(1) } else { named };
            let leading = (first + 1..=first + named).take_while(|position| position < end);
            for position in leading.filter(|_| rule.action != OutputAction::Redact) {
                add(&mut self.leading, position);
            }
        }
    }

    fn begin(&mut self) {
        let mut positions = vec![0; self.staying.len()];
        for Bounded { rule, end } in &self.rules {
            add(&mut positions, end - rule.pattern.steps().count());
        }
        self.skip(&mut positions);
        self.remember(RuleProgress { positions, said: None, depth: 0 });
    }

    fn come_to(&mut self, state: usize, name: usize) -> usize {
        let Some(reached) = self.reached_below(state, name) else { return state };
        let below = match self.known.get(&reached) {
            Some(known) => *known,
            None => self.remember(reached),
        };
        let is_kept = below < MOST_STATES;
        let place = self.states.get_mut(state).and_then(|state| state.below.get_mut(name));
        if let Some(place) = place.filter(|_| is_kept) {
            *place = Some(below);
        }
        below
    }

    fn reached_below(&self, state: usize, name: usize) -> Option<RuleProgress> {
        let RuleProgress { positions, said, depth } = &self.states.get(state)?.reached;
        let moving = intersection(positions, self.moved_by.get(name)?);
        let mut positions = union(&next_of(&moving), &intersection(positions, &self.staying));
        self.skip(&mut positions);
        // Fields below a masked one are redacted: their structure would reveal more than two characters.
        let inherited = said.map(|said| if said == OutputAction::Mask { OutputAction::Redact } else { said });
        let said = self.said_at(&positions).or(inherited);
        Some(RuleProgress { positions, said, depth: (depth + 1).min(2) })
    }

    /// The action of the most specific rule that matches here; among equals the stricter one.
    fn said_at(&self, positions: &Positions) -> Option<OutputAction> {
        let here = self.rules.iter().filter(|rule| holds(positions, rule.end));
        let said = here.map(|Bounded { rule, end }| {
            let action = match rule.action {
                OutputAction::Mask if holds(positions, end + 1) => OutputAction::Redact,
                action => action,
            };
            (rule.pattern.specificity_reaching(1), action)
        });
        said.max().map(|(_, action)| action)
    }

    fn skip(&self, positions: &mut Positions) {
        loop {
            let more = union(positions, &next_of(&intersection(positions, &self.skipping)));
            if more == *positions {
                return;
            }
            *positions = more;
        }
    }

    fn remember(&mut self, reached: RuleProgress) -> usize {
        let by_catch_all = self.of_catch_alls.get(reached.depth).copied().unwrap_or(OutputAction::Redact);
        let action = reached.said.unwrap_or(by_catch_all);
        let number = self.states.len();
        if number < MOST_STATES {
            self.known.insert(reached.clone(), number);
        }
        self.states.push(AutomatonState { reached, action, below: vec![None; self.moved_by.len()] });
        number
    }
}

/// Rules without names treat all fields of a depth alike.
fn of_catch_alls(rules: &[&OutputRule], depth: usize) -> OutputAction {
    let path = vec![""; depth];
    let said = |rule: &&OutputRule| Some((rule.pattern.specificity_at(&path)?, effective(rule, &path)));
    rules.iter().filter_map(said).max().map_or(OutputAction::Redact, |(_, action)| action)
}

/// The action of the rule for exactly this field.
pub fn effective(rule: &OutputRule, path: &[&str]) -> OutputAction {
    match rule.action {
        OutputAction::Mask if !rule.pattern.names(path) => OutputAction::Redact,
        action => action,
    }
}

fn add(positions: &mut Positions, position: usize) {
    if let Some(word) = positions.get_mut(position / BITS) {
        *word |= 1 << (position % BITS);
    }
}

fn holds(positions: &Positions, position: usize) -> bool {
    positions.get(position / BITS).is_some_and(|word| word >> (position % BITS) & 1 == 1)
}

fn intersection(one: &Positions, other: &Positions) -> Positions {
    one.iter().zip(other).map(|(one, other)| one & other).collect()
}

fn union(one: &Positions, other: &Positions) -> Positions {
    one.iter().zip(other).map(|(one, other)| one | other).collect()
}

/// The next position of each. The last position of a rule never advances, so none leaves its rule.
fn next_of(positions: &Positions) -> Positions {
    let carried = std::iter::once(0).chain(positions.iter().map(|word| word >> (BITS - 1)));
    positions.iter().zip(carried).map(|(word, carried)| word << 1 | carried).collect()
}

const BITS: usize = u64::BITS as usize;
/// Rules with many `..` and `*` could have very many states.
const MOST_STATES: usize = 4_096;

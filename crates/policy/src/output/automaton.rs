//! What do the rules say of a field, when one comes down to it name by name?
//!
//! All patterns are walked at once, as one automaton: how far each has come is a set of positions, and what the set says of a
//! field is worked out when it is first come to. Whatever the next field is called, it costs one look for its name.

use std::collections::HashMap;

use toolgate_spec::{
    FieldStep,
    model::{OutputAction, OutputRule},
};

#[derive(Debug)]
pub struct Automaton<'r> {
    rules: Vec<Bounded<'r>>,
    /// What rules say that reach every field: of the result itself, of its fields, and of what is below them.
    of_catch_alls: [OutputAction; 3],
    names: HashMap<&'r str, usize>,
    /// For each name, and at last for every other: the positions from which a field of that name leads to the next one.
    moved_by: Vec<Positions>,
    /// Positions that are kept, whatever the name.
    staying: Positions,
    /// Positions from which the next one is reached without a name.
    skipping: Positions,
    /// Positions that were come to by names alone, and from which a rule leads on to something that leaves.
    leading: Positions,
    states: Vec<State>,
    known: HashMap<Reached, usize>,
}

/// A rule that names something. It holds a position for each step, one for having come to its end, and one for having done so
/// further up.
#[derive(Debug)]
struct Bounded<'r> {
    rule: &'r OutputRule,
    end: usize,
}

type Positions = Vec<u64>;

/// Where the rules stand at a field. Two fields with the same are treated alike.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Reached {
    positions: Positions,
    /// What the closest rule that names something says, whether it names this field or one above.
    said: Option<OutputAction>,
    /// As far as it matters to a rule that names nothing.
    depth: usize,
}

#[derive(Debug)]
struct State {
    reached: Reached,
    action: OutputAction,
    /// By the number of the name.
    below: Vec<Option<usize>>,
}

impl<'r> Automaton<'r> {
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

    /// Do rules name this field only on their way to something in it that leaves?
    pub fn leads_on(&self, state: usize) -> bool {
        self.states.get(state).is_some_and(|State { reached, .. }| {
            let leading = intersection(&reached.positions, &self.leading);
            reached.said.is_none() && leading.iter().any(|positions| *positions != 0)
        })
    }

    /// The state of a field below. It is left again before another of the same depth is come to.
    pub fn below(&mut self, state: usize, field: &str) -> usize {
        let name = self.names.get(field).copied().unwrap_or(self.names.len());
        match self.states.get(state).and_then(|state| state.below.get(name)) {
            Some(Some(known)) => *known,
            _ => self.come_to(state, name),
        }
    }

    /// Forgets a state that there was no room to remember.
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
            // Before any depth, all that lies below is in the same place.
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
        self.remember(Reached { positions, said: None, depth: 0 });
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

    fn reached_below(&self, state: usize, name: usize) -> Option<Reached> {
        let Reached { positions, said, depth } = &self.states.get(state)?.reached;
        let moving = intersection(positions, self.moved_by.get(name)?);
        let mut positions = union(&next_of(&moving), &intersection(positions, &self.staying));
        self.skip(&mut positions);
        // Of what is below a field that is masked, nothing is: its form would tell more than two characters.
        let inherited = said.map(|said| if said == OutputAction::Mask { OutputAction::Redact } else { said });
        let said = self.said_at(&positions).or(inherited);
        Some(Reached { positions, said, depth: (depth + 1).min(2) })
    }

    /// What the most specific of the rules says that come to their end here; of two equally specific the stricter.
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

    fn remember(&mut self, reached: Reached) -> usize {
        let by_catch_all = self.of_catch_alls.get(reached.depth).copied().unwrap_or(OutputAction::Redact);
        let action = reached.said.unwrap_or(by_catch_all);
        let number = self.states.len();
        if number < MOST_STATES {
            self.known.insert(reached.clone(), number);
        }
        self.states.push(State { reached, action, below: vec![None; self.moved_by.len()] });
        number
    }
}

/// They say the same of all fields of a depth, whatever these are called.
fn of_catch_alls(rules: &[&OutputRule], depth: usize) -> OutputAction {
    let path = vec![""; depth];
    let said = |rule: &&OutputRule| Some((rule.pattern.specificity_at(&path)?, effective(rule, &path)));
    rules.iter().filter_map(said).max().map_or(OutputAction::Redact, |(_, action)| action)
}

/// What the rule does to this very field.
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

/// Each position's next one. None leaves its rule: the last of a rule is never moved.
fn next_of(positions: &Positions) -> Positions {
    let carried = std::iter::once(0).chain(positions.iter().map(|word| word >> (BITS - 1)));
    positions.iter().zip(carried).map(|(word, carried)| word << 1 | carried).collect()
}

const BITS: usize = u64::BITS as usize;
/// Rules with many `..` and `*` could be made to come to ever so many.
const MOST_STATES: usize = 4_096;

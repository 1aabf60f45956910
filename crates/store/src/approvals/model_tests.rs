//! Compares the queue with a simple in-memory model, for random sequences of events.

use std::time::SystemTime;

use proptest::prelude::*;
use toolgate_gate::{
    ApprovalError, ApprovalId, ApprovalQueue as _, ApprovalState, ApprovalStore as _, Binding, Decider,
};

use toolgate_gate::QueueLimit;

use super::tests::{LIMITS, QueueFile, at, question};

#[derive(Clone, Debug)]
enum Event {
    Open {
        call: usize,
        lives: u64,
    },
    Decide {
        question: usize,
        is_yes: bool,
    },
    Spend {
        call: usize,
        question: Option<usize>,
    },
    Get {
        question: usize,
    },
    /// Sets the clock, possibly back.
    Pass {
        seconds: i64,
    },
}

/// One request in the model. Its number is its index in the list.
#[derive(Clone, Debug)]
struct ModelRow {
    call: usize,
    state: ApprovalState,
    expires: u64,
}

#[derive(Default)]
struct Model {
    rows: Vec<ModelRow>,
}

/// The outcome of an event, with numbers instead of ids.
type ModelOutcome = Result<Option<(usize, ApprovalState)>, ApprovalError>;

impl Model {
    fn apply(&mut self, event: &Event, now: u64) -> ModelOutcome {
        for row in &mut self.rows {
            let is_open = matches!(row.state, ApprovalState::Pending | ApprovalState::Approved);
            if is_open && row.expires <= now {
                row.state = ApprovalState::Expired;
            }
        }
        match *event {
            Event::Open { call, lives } => self.open(call, now + lives),
            Event::Decide { question, is_yes } => {
                let row = self.rows.get_mut(question).ok_or(ApprovalError::Unknown)?;
                match row.state {
                    ApprovalState::Pending => {}
                    ApprovalState::Expired => return Err(ApprovalError::Expired),
                    other => return Err(ApprovalError::NotPending(other)),
                }
                row.state = if is_yes { ApprovalState::Approved } else { ApprovalState::Denied };
                Ok(Some((question, row.state)))
            }
            Event::Spend { call, question: None } => {
                let fits =
                    |row: &&(usize, ModelRow)| row.1.call == call && row.1.state == ApprovalState::Approved;
                let rows: Vec<(usize, ModelRow)> = self.rows.iter().cloned().enumerate().collect();
                let first = rows.iter().filter(fits).min_by_key(|(number, row)| (row.expires, *number));
                Ok(first.map(|(number, _)| self.used(*number)))
            }
            Event::Spend { call, question: Some(question) } => {
                let row = self.rows.get(question).ok_or(ApprovalError::Unknown)?;
                match row.state {
                    _ if row.call != call => Err(ApprovalError::OtherCall),
                    ApprovalState::Pending => Ok(None),
                    ApprovalState::Approved => Ok(Some(self.used(question))),
                    ApprovalState::Expired => Err(ApprovalError::Expired),
                    other => Err(ApprovalError::NotPending(other)),
                }
            }
            Event::Get { question } => {
                self.rows.get(question).map(|row| Some((question, row.state))).ok_or(ApprovalError::Unknown)
            }
            Event::Pass { .. } => Ok(None),
        }
    }

    fn open(&mut self, call: usize, expires: u64) -> ModelOutcome {
        let is_pending = |row: &&ModelRow| row.state == ApprovalState::Pending;
        if let Some(number) = self.rows.iter().position(|row| row.call == call && is_pending(&row)) {
            return Ok(Some((number, ApprovalState::Pending)));
        }
        let of_caller = self.rows.iter().filter(is_pending).filter(|row| row.call / 5 == call / 5).count();
        let all = self.rows.iter().filter(is_pending).count();
        if of_caller >= LIMITS.max_pending_per_caller as usize {
            let limit = QueueLimit::OfCaller(LIMITS.max_pending_per_caller.into());
            return Err(ApprovalError::QueueFull(limit));
        }
        if all >= LIMITS.max_pending as usize {
            return Err(ApprovalError::QueueFull(QueueLimit::InAll(LIMITS.max_pending.into())));
        }
        self.rows.push(ModelRow { call, state: ApprovalState::Pending, expires });
        Ok(Some((self.rows.len() - 1, ApprovalState::Pending)))
    }

    fn used(&mut self, number: usize) -> (usize, ApprovalState) {
        self.rows[number].state = ApprovalState::Used;
        (number, ApprovalState::Used)
    }
}

/// Fifteen calls: three callers, with five calls each that differ in one part.
fn binding(call: usize) -> Binding {
    let part = |which: usize| if call % 5 == which { "other" } else { "same" }.to_owned();
    Binding {
        caller: format!("caller {}", call / 5),
        tool: part(1),
        tool_digest: part(2),
        arguments_digest: part(3),
        policy_digest: part(4),
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..15_usize, 1..40_u64).prop_map(|(call, lives)| Event::Open { call, lives }),
        4 => (0..20_usize, prop::bool::weighted(0.8))
            .prop_map(|(question, is_yes)| Event::Decide { question, is_yes }),
        4 => (0..15_usize, prop::option::of(0..20_usize))
            .prop_map(|(call, question)| Event::Spend { call, question }),
        1 => (0..20_usize).prop_map(|question| Event::Get { question }),
        2 => (-5..15_i64).prop_map(|seconds| Event::Pass { seconds }),
    ]
}

/// The same event on the real queue; new ids are added to `ids`.
fn apply(state: &crate::StateDb, event: &Event, now: u64, ids: &mut Vec<ApprovalId>) -> ModelOutcome {
    let time: SystemTime = at(now);
    let id_of = |ids: &[ApprovalId], number: usize| {
        ids.get(number).cloned().unwrap_or_else(|| ApprovalId::from_random([9; 16]))
    };
    let number_of = |ids: &[ApprovalId], id: &ApprovalId| ids.iter().position(|known| known == id).unwrap();
    match *event {
        Event::Open { call, lives } => {
            let opened = state.open(question(binding(call), now, now + lives), time)?;
            if !ids.contains(&opened.id) {
                ids.push(opened.id.clone());
            }
            Ok(Some((number_of(ids, &opened.id), opened.state)))
        }
        Event::Decide { question, is_yes } => {
            let target = if is_yes { ApprovalState::Approved } else { ApprovalState::Denied };
            let decided =
                state.decide(&id_of(ids, question), target, &Decider::Operator("olga"), None, time)?;
            Ok(Some((number_of(ids, &decided.id), decided.state)))
        }
        Event::Spend { call, question } => {
            let id = question.map(|number| id_of(ids, number));
            let spent = state.consume(&binding(call), id.as_ref(), time)?;
            Ok(spent.map(|spent| (number_of(ids, &spent.id), ApprovalState::Used)))
        }
        Event::Get { question } => {
            let read = state.get(&id_of(ids, question), time)?;
            Ok(Some((number_of(ids, &read.id), read.state)))
        }
        Event::Pass { .. } => Ok(None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queue_matches_the_model(events in prop::collection::vec(event(), 1..60)) {
        let place = QueueFile::new();
        // Two connections, as two processes would have.
        let handles = [place.open(), place.open()];
        let (mut model, mut ids, mut now) = (Model::default(), Vec::new(), 100_u64);
        for (number, event) in events.iter().enumerate() {
            if let Event::Pass { seconds } = event {
                now = now.saturating_add_signed(*seconds);
                continue;
            }
            let seen = apply(&handles[number % 2], event, now, &mut ids);
            prop_assert_eq!(seen, model.apply(event, now), "event {}: {:?}", number, event);
        }
        let listed = handles[0].list(None, 1000, at(0)).unwrap();
        let states: Vec<ApprovalState> = listed.iter().rev().map(|approval| approval.state).collect();
        let expected: Vec<ApprovalState> = model.rows.iter().map(|row| row.state).collect();
        prop_assert_eq!(states, expected);
    }
}

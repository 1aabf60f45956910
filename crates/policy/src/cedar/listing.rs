//! Could any call of a tool be permitted? The rules, with every question about the call's arguments answered in favour of
//! the caller: a permit as if they fitted, a forbid as if they did not.
//!
//! INVARIANT: where a call is not forbidden, its permit in this form holds and none of its forbids in this form does, or
//! evaluating one of them fails. Hence: only what is neither allowed nor fails here is refused whatever the arguments are.

use std::sync::Arc;

use cedar_policy::{
    Policy,
    pst::{self, BinaryOp, Clause, Effect, Expr, Literal, StaticPolicy, UnaryOp, Var},
};

/// The rule as it stands before the arguments are known.
pub(super) fn without_arguments(rule: &pst::Template) -> Result<Policy, String> {
    let wanted = match rule.effect {
        Effect::Permit => Answer::Yes,
        Effect::Forbid => Answer::No,
    };
    let clauses: Vec<Clause> = rule
        .clauses()
        .iter()
        .map(|clause| match clause {
            Clause::When(condition) => Clause::When(favour(condition, wanted)),
            Clause::Unless(condition) => Clause::Unless(favour(condition, wanted.opposite())),
        })
        .collect();
    let rule = rule.clone().try_with_clauses(clauses).map_err(|error| error.to_string())?;
    let rule = StaticPolicy::try_from(rule).map_err(|error| error.to_string())?;
    Policy::from_pst(rule.into()).map_err(|error| error.to_string())
}

/// What a condition is taken to be where it depends on the arguments.
#[derive(Clone, Copy)]
enum Answer {
    Yes,
    No,
}

impl Answer {
    const fn opposite(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
        }
    }
}

fn favour(condition: &Arc<Expr>, wanted: Answer) -> Arc<Expr> {
    if !mentions_context(condition) {
        return Arc::clone(condition);
    }
    match &**condition {
        Expr::UnaryOp { op: UnaryOp::Not, expr } => {
            Arc::new(Expr::UnaryOp { op: UnaryOp::Not, expr: favour(expr, wanted.opposite()) })
        }
        Expr::BinaryOp { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
            binary(*op, favour(left, wanted), favour(right, wanted))
        }
        Expr::IfThenElse { cond, then_expr, else_expr } => {
            let (then_expr, else_expr) = (favour(then_expr, wanted), favour(else_expr, wanted));
            if !mentions_context(cond) {
                return Arc::new(Expr::IfThenElse { cond: Arc::clone(cond), then_expr, else_expr });
            }
            // Either branch may be taken: yes if one can be, no only if both are.
            match wanted {
                Answer::Yes => binary(BinaryOp::Or, then_expr, else_expr),
                Answer::No => binary(BinaryOp::And, then_expr, else_expr),
            }
        }
        _ => Arc::new(Expr::Literal(Literal::Bool(matches!(wanted, Answer::Yes)))),
    }
}

fn binary(op: BinaryOp, left: Arc<Expr>, right: Arc<Expr>) -> Arc<Expr> {
    Arc::new(Expr::BinaryOp { op, left, right })
}

fn mentions_context(expr: &Expr) -> bool {
    let here = |expr: &Expr| matches!(expr, Expr::Var(Var::Context)).then_some(true);
    expr.reduce(&here, &|one, other| one || other, false)
}

//! Decides whether any call of a tool could be permitted. Replaces every condition on arguments by the value that favours
//! the caller: true in a `permit`, false in a `forbid`.
//!
//! INVARIANT: if a call is permitted, its reduced permit holds and none of its reduced forbids does, or evaluation fails.
//! Therefore a tool that is neither allowed nor fails here is forbidden for all arguments.

use std::sync::Arc;

use cedar_policy::{
    Policy,
    pst::{self, BinaryOp, Clause, Effect, Expr, Literal, StaticPolicy, UnaryOp, Var},
};

/// The policy reduced to the conditions that do not depend on arguments.
pub(super) fn without_arguments(rule: &pst::Template) -> Result<Policy, String> {
    let wanted = match rule.effect {
        Effect::Permit => ArgumentAssumption::Yes,
        Effect::Forbid => ArgumentAssumption::No,
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

/// The value that a condition on arguments is replaced by.
#[derive(Clone, Copy)]
enum ArgumentAssumption {
    Yes,
    No,
}

impl ArgumentAssumption {
    const fn opposite(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
        }
    }
}

fn favour(condition: &Arc<Expr>, wanted: ArgumentAssumption) -> Arc<Expr> {
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
            // Either branch may be taken: true if one can be, false only if both are.
            match wanted {
                ArgumentAssumption::Yes => binary(BinaryOp::Or, then_expr, else_expr),
                ArgumentAssumption::No => binary(BinaryOp::And, then_expr, else_expr),
            }
        }
        _ => Arc::new(Expr::Literal(Literal::Bool(matches!(wanted, ArgumentAssumption::Yes)))),
    }
}

fn binary(op: BinaryOp, left: Arc<Expr>, right: Arc<Expr>) -> Arc<Expr> {
    Arc::new(Expr::BinaryOp { op, left, right })
}

fn mentions_context(expr: &Expr) -> bool {
    let here = |expr: &Expr| matches!(expr, Expr::Var(Var::Context)).then_some(true);
    expr.reduce(&here, &|one, other| one || other, false)
}

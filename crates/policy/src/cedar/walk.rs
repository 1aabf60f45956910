//! Collects the attributes that a policy reads or tests, and the texts that it compares them with.

use std::sync::Arc;

use cedar_policy::pst::{BinaryOp, Clause, EntityUID, Expr, Literal, Template, UnaryOp, Var};

/// Everything that the conditions of a policy mention, in order.
pub(super) fn mentions(policy: &Template) -> Mentions {
    let mut found = Mentions::default();
    for clause in policy.clauses() {
        match clause {
            Clause::When(condition) => found.walk(condition, Sign::For),
            Clause::Unless(condition) => found.walk(condition, Sign::Against),
        }
    }
    found
}

#[derive(Default)]
pub(super) struct Mentions {
    pub paths: Vec<AttributePath>,
    /// A path, and a text that its value is compared with.
    pub compared: Vec<(AttributePath, String)>,
    /// Compared with `==` or `!=`.
    pub actions: Vec<EntityUID>,
    /// The policy has an unknown form of expression, so the list may be incomplete.
    pub has_unknown_form: bool,
}

/// `context.input.path`: a variable and its attributes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct AttributePath {
    pub root: Var,
    pub names: Vec<String>,
    pub how: Use,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    /// `has`
    Asked(Sign),
    /// Its value is used.
    Read,
}

/// Whether a true expression makes the policy apply or not apply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sign {
    For,
    Against,
    /// Depends on the rest of the condition.
    Either,
}

impl Sign {
    const fn opposite(self) -> Self {
        match self {
            Self::For => Self::Against,
            Self::Against => Self::For,
            Self::Either => Self::Either,
        }
    }
}

impl Mentions {
    fn walk(&mut self, expr: &Expr, sign: Sign) {
        if let Some(mut path) = path_of(expr) {
            if path.how != Use::Read {
                path.how = Use::Asked(sign);
            }
            self.paths.push(path);
            return;
        }
        match expr {
            Expr::Literal(_) => {}
            Expr::UnaryOp { op: UnaryOp::Not, expr } => self.walk(expr, sign.opposite()),
            Expr::BinaryOp { op: BinaryOp::And | BinaryOp::Or, left, right } => {
                self.walk_all([left, right], sign);
            }
            Expr::IfThenElse { cond, then_expr, else_expr } => {
                self.walk(cond, Sign::Either);
                self.walk_all([then_expr, else_expr], sign);
            }
            Expr::UnaryOp { expr, .. }
            | Expr::GetAttr { expr, .. }
            | Expr::HasAttr { expr, .. }
            | Expr::Like { expr, .. } => self.walk(expr, Sign::Either),
            Expr::BinaryOp { op, left, right } => {
                self.compare(*op, left, right);
                self.walk_all([left, right], Sign::Either);
            }
            Expr::Is { expr, in_expr, .. } => {
                self.walk(expr, Sign::Either);
                self.walk_all(in_expr, Sign::Either);
            }
            Expr::Set(items) => self.walk_all(items, Sign::Either),
            Expr::Record(members) => self.walk_all(members.values(), Sign::Either),
            _ => self.has_unknown_form = true,
        }
    }

    fn walk_all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Arc<Expr>>, sign: Sign) {
        for expr in exprs {
            self.walk(expr, sign);
        }
    }

    fn compare(&mut self, op: BinaryOp, left: &Expr, right: &Expr) {
        let is_equality = matches!(op, BinaryOp::Eq | BinaryOp::NotEq);
        let is_membership = matches!(op, BinaryOp::Contains | BinaryOp::ContainsAll | BinaryOp::ContainsAny);
        if !is_equality && !is_membership {
            return;
        }
        for (side, other) in [(left, right), (right, left)] {
            let Some(path) = path_of(side) else { continue };
            match other {
                Expr::Literal(Literal::EntityUID(uid)) if is_equality && path.root == Var::Action => {
                    self.actions.push(uid.clone());
                }
                other => self.compared.extend(texts(other).into_iter().map(|text| (path.clone(), text))),
            }
        }
    }
}

/// A text, or a set of texts.
fn texts(expr: &Expr) -> Vec<String> {
    match expr {
        Expr::Literal(Literal::String(text)) => vec![text.to_string()],
        Expr::Set(items) => items.iter().flat_map(|item| texts(item)).collect(),
        _ => Vec::new(),
    }
}

/// The chain of attributes, if the expression is nothing else.
fn path_of(expr: &Expr) -> Option<AttributePath> {
    match expr {
        Expr::Var(root) => Some(AttributePath { root: root.clone(), names: Vec::new(), how: Use::Read }),
        Expr::GetAttr { expr, attr } => {
            let mut path = path_of(expr).filter(|path| path.how == Use::Read)?;
            path.names.push(attr.to_string());
            Some(path)
        }
        Expr::HasAttr { expr, attrs } => {
            let mut path = path_of(expr).filter(|path| path.how == Use::Read)?;
            path.names.extend(attrs.iter().map(ToString::to_string));
            path.how = Use::Asked(Sign::Either);
            Some(path)
        }
        _ => None,
    }
}

//! Of what does a policy speak? Every attribute that it reads or asks for, and every text that it compares one with.

use std::sync::Arc;

use cedar_policy::pst::{BinaryOp, Clause, EntityUID, Expr, Literal, Template, Var};

/// All that the conditions of a policy mention, in order.
pub(super) fn mentions(policy: &Template) -> Mentions {
    let mut found = Mentions::default();
    for clause in policy.clauses() {
        let (Clause::When(condition) | Clause::Unless(condition)) = clause;
        found.walk(condition);
    }
    found
}

#[derive(Default)]
pub(super) struct Mentions {
    pub paths: Vec<Path>,
    /// A path, and a text that its value is compared with.
    pub compared: Vec<(Path, String)>,
    /// Compared with `==` or `!=`.
    pub actions: Vec<EntityUID>,
    /// Some form of expression that this walk does not know; what it mentions cannot be told.
    pub has_unknown_form: bool,
}

/// `context.input.path`: a variable and the attributes behind it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Path {
    pub root: Var,
    pub names: Vec<String>,
    pub how: Use,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    /// `has`
    Asked,
    /// Its value counts.
    Read,
}

impl Mentions {
    fn walk(&mut self, expr: &Expr) {
        if let Some(path) = path_of(expr) {
            self.paths.push(path);
            return;
        }
        match expr {
            Expr::Literal(_) => {}
            Expr::UnaryOp { expr, .. }
            | Expr::GetAttr { expr, .. }
            | Expr::HasAttr { expr, .. }
            | Expr::Like { expr, .. } => self.walk(expr),
            Expr::BinaryOp { op, left, right } => {
                self.compare(*op, left, right);
                self.walk(left);
                self.walk(right);
            }
            Expr::Is { expr, in_expr, .. } => {
                self.walk(expr);
                self.walk_all(in_expr);
            }
            Expr::IfThenElse { cond, then_expr, else_expr } => self.walk_all([cond, then_expr, else_expr]),
            Expr::Set(items) => self.walk_all(items),
            Expr::Record(members) => self.walk_all(members.values()),
            _ => self.has_unknown_form = true,
        }
    }

    fn walk_all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Arc<Expr>>) {
        for expr in exprs {
            self.walk(expr);
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

/// The whole chain of attributes, if there is nothing else in it.
fn path_of(expr: &Expr) -> Option<Path> {
    match expr {
        Expr::Var(root) => Some(Path { root: root.clone(), names: Vec::new(), how: Use::Read }),
        Expr::GetAttr { expr, attr } => {
            let mut path = path_of(expr).filter(|path| path.how == Use::Read)?;
            path.names.push(attr.to_string());
            Some(path)
        }
        Expr::HasAttr { expr, attrs } => {
            let mut path = path_of(expr).filter(|path| path.how == Use::Read)?;
            path.names.extend(attrs.iter().map(ToString::to_string));
            path.how = Use::Asked;
            Some(path)
        }
        _ => None,
    }
}

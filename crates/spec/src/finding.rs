//! What is wrong with a document, where, and what to do about it.

use crate::{Code, Pointer, Span};

/// One thing to tell the author. Documents gather all of them; see `Code` for what each code promises.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    pub code: Code,
    pub at: Pointer,
    /// Where to point: the value, or the key where the key itself is at fault.
    pub target: Target,
    /// Filled once the whole document has been read; absent when the place has no text of its own.
    pub span: Option<Span>,
    pub message: String,
    pub remedy: String,
    /// A document with this finding is published only after an operator accepted its code.
    pub blocks_publishing: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    Key,
    Value,
}

impl Finding {
    pub fn new(code: Code, at: Pointer, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            code,
            at,
            target: Target::Value,
            span: None,
            message: message.into(),
            remedy: remedy.into(),
            blocks_publishing: false,
        }
    }

    #[must_use]
    pub fn at_key(self) -> Self {
        Self { target: Target::Key, ..self }
    }

    #[must_use]
    pub fn at_span(self, span: Span) -> Self {
        Self { span: Some(span), ..self }
    }

    #[must_use]
    pub fn blocking(self) -> Self {
        debug_assert!(self.code.may_block_publishing(), "{}", self.code.name());
        Self { blocks_publishing: true, ..self }
    }

    pub fn is_error(&self) -> bool {
        self.code.severity() == crate::Severity::Error
    }
}

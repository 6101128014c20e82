//! Syntax errors of a KDL text.

use super::tree::Span;
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) label: Cow<'static, str>,
    pub(crate) help: Option<String>,
    pub(crate) kind: SyntaxErrorKind,
}

/// Effect of a syntax error on the rest of the parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyntaxErrorKind {
    /// No effect: the rest can be parsed.
    Local,
    /// Text is unclosed; braces after it may belong to it.
    OpenText,
    /// A surplus `}`, perhaps the consequence of another error.
    StrayBrace,
    /// The text is in the other version of KDL.
    OtherDialect,
    /// Blocks are nested too deep; parsing stops.
    TooDeep,
    /// Too many items; parsing stops.
    TooMany,
}

impl SyntaxError {
    pub(super) fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            label: Cow::Borrowed(""),
            help: None,
            kind: SyntaxErrorKind::Local,
        }
    }

    pub(super) fn label(mut self, label: impl Into<Cow<'static, str>>) -> Self {
        self.label = label.into();
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn kind(mut self, kind: SyntaxErrorKind) -> Self {
        self.kind = kind;
        self
    }
}

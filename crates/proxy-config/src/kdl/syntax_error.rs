//! What can be wrong with the form of a text.

use super::tree::Span;
use std::borrow::Cow;

/// A fault of the text's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) label: Cow<'static, str>,
    pub(crate) help: Option<String>,
    pub(crate) trouble: Trouble,
}

/// What a fault means for the rest of the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing: what follows can be read.
    Local,
    /// Text is open; braces after it may belong to it.
    OpenText,
    /// A `}` too many, which may follow from another fault.
    StrayBrace,
    /// The other version of KDL is spoken here.
    OtherDialect,
    /// Blocks are too deep; nothing after it is read.
    TooDeep,
    /// There is too much; nothing after it is read.
    TooMany,
}

impl SyntaxError {
    pub(super) fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            label: Cow::Borrowed(""),
            help: None,
            trouble: Trouble::Local,
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

    pub(super) fn trouble(mut self, trouble: Trouble) -> Self {
        self.trouble = trouble;
        self
    }
}

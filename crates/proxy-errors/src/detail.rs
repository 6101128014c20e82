//! What is known about one case beyond its reason.

use std::borrow::Cow;
use std::time::Duration;

/// The particulars of a problem. Texts are for the log only; names and numbers, which come from
/// the configuration or from the client, are shown to clients too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Nothing beyond the reason.
    #[default]
    None,
    /// What exactly happened: an I/O error, a place in the request, an agent's words.
    Text(Cow<'static, str>),
    /// Who it happened with, by its name in the configuration (an upstream, an agent, a breaker's
    /// component, a service), and what exactly happened; an empty text stands for the reason's.
    Named {
        /// The name in the configuration.
        name: String,
        /// What exactly happened, for the log.
        text: Cow<'static, str>,
    },
    /// A limit was passed.
    Limit {
        /// What was counted.
        current: u64,
        /// What was allowed.
        limit: u64,
    },
    /// A limit was passed, and counting ended before all was counted.
    LimitAtLeast {
        /// What was counted.
        current: u64,
        /// What was allowed.
        limit: u64,
    },
    /// A timer, which the reason names, ran out.
    After(Duration),
}

impl Detail {
    /// What exactly happened.
    #[must_use]
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Who it happened with.
    #[must_use]
    pub fn name(name: impl Into<String>) -> Self {
        Self::named(name, "")
    }

    /// Who it happened with, and what exactly.
    #[must_use]
    pub fn named(name: impl Into<String>, text: impl Into<Cow<'static, str>>) -> Self {
        Self::Named {
            name: name.into(),
            text: text.into(),
        }
    }
}

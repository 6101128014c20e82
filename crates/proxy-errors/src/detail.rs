//! The details of a problem beyond its reason.

use std::borrow::Cow;
use std::time::Duration;

/// Details of a problem. Texts are only for the log; names and numbers, which come from the
/// configuration or from the client, are sent to clients too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// No details.
    #[default]
    None,
    /// A description: an I/O error, a place in the request, an agent's text.
    Text(Cow<'static, str>),
    /// The name of the component in the configuration (an upstream, an agent, a breaker's
    /// component, a service), and a description; empty for the reason's own.
    Named {
        /// The name in the configuration.
        name: String,
        /// Description, for the log.
        text: Cow<'static, str>,
    },
    /// A limit was exceeded.
    Limit {
        /// Value of the request, in the unit of the limit.
        current: u64,
        /// Configured maximum.
        limit: u64,
    },
    /// A limit was exceeded, and counting stopped before the end.
    LimitAtLeast {
        /// Value when the count was stopped.
        current: u64,
        /// The maximum.
        limit: u64,
    },
    /// The length of the timer that expired; the reason names the timer.
    After(Duration),
}

impl Detail {
    /// A description for the log.
    #[must_use]
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// The name of a component.
    #[must_use]
    pub fn name(name: impl Into<String>) -> Self {
        Self::named(name, "")
    }

    /// The name of a component, and a description.
    #[must_use]
    pub fn named(name: impl Into<String>, text: impl Into<Cow<'static, str>>) -> Self {
        Self::Named {
            name: name.into(),
            text: text.into(),
        }
    }
}

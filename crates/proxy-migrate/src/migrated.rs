//! The result of a migration.

use std::fmt;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// A directive that was not converted, or not with its whole meaning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotMigrated {
    /// The first line of the directive.
    pub place: Place,
    /// The directive as written, without its block.
    pub directive: String,
    /// The difference, and what to do about it.
    pub advice: String,
}

/// A configuration that was migrated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The configuration in KDL, with `tests` of what was converted.
    pub text: String,
    /// Directives that were not migrated, in the order of their places.
    pub notes: Vec<NotMigrated>,
}

/// A place where a text is not of its language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line where it was noticed.
    pub place: Place,
    /// Fault in a sentence, without the place.
    pub message: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for NotMigrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            directive,
            advice,
        } = self;
        write!(f, "{place}: `{directive}`: {advice}")
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

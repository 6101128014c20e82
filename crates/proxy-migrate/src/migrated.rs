//! The result of a migration.

use std::fmt;

/// A line in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// A directive that was not converted, or only in part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotMigrated {
    /// First line of the directive.
    pub place: Place,
    /// Text of the directive, without its block.
    pub directive: String,
    /// The difference, and the remedy.
    pub advice: String,
}

/// Result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Configuration in KDL, including `tests` of its routes.
    pub text: String,
    /// Directives that were not migrated, sorted by place.
    pub notes: Vec<NotMigrated>,
}

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line where the error was detected.
    pub place: Place,
    /// Description of the error, without its place.
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

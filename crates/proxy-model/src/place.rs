//! The place of a setting in the configuration's files.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A file of [`Sources`], by its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A range of text in a file of the configuration. Ordered by file and position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, by its id.
    pub file: FileId,
    /// Offset of the first byte, from 0.
    pub offset: u32,
    /// Length in bytes.
    pub len: u32,
    /// Line of the first byte, from 1.
    pub line: u32,
    /// Column of the first byte, from 1, in characters.
    pub column: u32,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The registry's default; the setting is not written.
    #[default]
    Default,
    /// Source location of the setting.
    At(Place),
}

/// A value with its origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Setting<T> {
    /// Value in effect.
    pub value: T,
    /// Place in the configuration, or the default.
    pub origin: Origin,
}

/// A file of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name in messages: the path as given or included.
    pub name: Arc<str>,
    /// Text of the file, as read.
    pub text: Arc<str>,
}

/// The files of a configuration, in reading order. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl<T> Setting<T> {
    /// A value that is not written.
    pub const fn defaulted(value: T) -> Self {
        Self {
            value,
            origin: Origin::Default,
        }
    }

    /// A value written at `place`.
    pub const fn at(value: T, place: Place) -> Self {
        Self {
            value,
            origin: Origin::At(place),
        }
    }

    /// The value made by `make`, with the same origin.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Setting<U> {
        Setting {
            value: make(self.value),
            origin: self.origin,
        }
    }

    /// Source location; `None` for a default.
    pub const fn place(&self) -> Option<Place> {
        match self.origin {
            Origin::Default => None,
            Origin::At(place) => Some(place),
        }
    }
}

impl<T> Deref for Setting<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Display> fmt::Display for Setting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl Sources {
    /// Adds a file and returns its id.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> FileId {
        let id = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(SourceFile {
            name: name.into(),
            text: text.into(),
        });
        FileId(id)
    }

    /// The file with this id; `None` for an id of other sources.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(usize::try_from(id.0).ok()?)
    }

    /// The name of the file with this id; empty for an id of other sources.
    pub fn name(&self, id: FileId) -> &str {
        self.file(id).map_or("", |file| &file.name)
    }

    /// All files, in the order of their ids.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// `file:line`, as in logs and `explain`.
    pub fn file_and_line(&self, place: Place) -> String {
        format!("{}:{}", self.name(place.file), place.line)
    }

    /// `file:line`, or `default`.
    pub fn origin(&self, origin: Origin) -> String {
        match origin {
            Origin::Default => "default".to_owned(),
            Origin::At(place) => self.file_and_line(place),
        }
    }
}

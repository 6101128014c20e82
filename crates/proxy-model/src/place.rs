//! Where a setting was written, so that everything said about it can point there.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A file of [`Sources`], by its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A stretch of text in a file of the configuration. Places order as a reader meets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// First byte, counted from 0.
    pub offset: u32,
    /// Length in bytes.
    pub len: u32,
    /// Line of the first byte, counted from 1.
    pub line: u32,
    /// Column of the first byte, counted from 1, in characters.
    pub column: u32,
}

/// Whether a value was written down, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Nobody wrote it; the registry's default holds.
    #[default]
    Default,
    /// Written here.
    At(Place),
}

/// A value, and where it came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// Where it was written.
    pub origin: Origin,
}

/// One file of a configuration, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name as messages show it: the path that was given or included.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

/// The files of a configuration, in the order in which they were met. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl<T> Setting<T> {
    /// A value that nobody wrote.
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

    /// The place where it was written, if it was.
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
    /// Adds a file and says by which id its places are known.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> FileId {
        let id = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(SourceFile {
            name: name.into(),
            text: text.into(),
        });
        FileId(id)
    }

    /// The file of this id, if it is one of these.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(usize::try_from(id.0).ok()?)
    }

    /// The name of the file of this id; empty for a file that is not one of these.
    pub fn name(&self, id: FileId) -> &str {
        self.file(id).map_or("", |file| &file.name)
    }

    /// All files.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// `file:line`, as logs and `explain` say it.
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

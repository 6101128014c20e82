//! Files of the project, read once for all checks.

use super::source::Source;
use std::fs;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Files that git tracks, or would track.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

#[derive(Debug)]
pub(super) struct File {
    /// Path relative to the root, with `/`.
    pub(super) path: String,
    /// Text; empty for a file that is not UTF-8.
    pub(super) text: String,
    /// Code and comments of a Rust file.
    pub(super) source: Option<Source>,
}

impl Tree {
    pub(super) fn read(workspace: &Workspace) -> Result<Self, TaskError> {
        let listing = command::read(workspace.command("git").args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let mut paths: Vec<&str> = listing.split_terminator('\0').collect();
        paths.sort_unstable();
        paths.dedup();
        let mut tree = Self::default();
        for path in paths {
            let full = workspace.root().join(path);
            // Skips a file that is deleted in the work tree but not in the index.
            if !full.is_file() {
                continue;
            }
            let bytes = fs::read(&full).map_err(|source| TaskError::File { path: full, source })?;
            let text = String::from_utf8(bytes).unwrap_or_default();
            tree.files.push(File::new(path, text));
        }
        Ok(tree)
    }

    /// Returns the Rust files, with their code and comments.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files
            .iter()
            .filter_map(|file| Some((file, file.source.as_ref()?)))
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Creates a tree from texts, for tests.
    #[cfg(test)]
    pub(super) fn from_files(files: &[(&str, &str)]) -> Self {
        let files = files.iter();
        Self {
            files: files
                .map(|(path, text)| File::new(path, (*text).to_owned()))
                .collect(),
        }
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let source = (extension(path) == "rs").then(|| Source::parse(&text));
        Self {
            path: path.to_owned(),
            text,
            source,
        }
    }

    /// Returns true if the whole file is test code.
    pub(super) fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/")
    }

    /// Text after the last dot of the name.
    pub(super) fn extension(&self) -> &str {
        extension(&self.path)
    }
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, end)| end)
}

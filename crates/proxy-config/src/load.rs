//! Entry points: a file, a text, files in memory.

use crate::decode::{self, Decoder};
use crate::files::Files;
use crate::read::read;
use crate::report::Report;
use crate::warnings;
use proxy_model::Model;
use std::collections::BTreeMap;
use std::path::Path;

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration, valid as a whole.
    pub model: Model,
    /// Doubtful settings.
    pub warnings: Report,
}

/// Reads the configuration in the file at `path` and its includes.
///
/// # Errors
///
/// All errors, and the warnings too.
pub fn load(path: &Path) -> Result<Loaded, Report> {
    load_from(Files::Disk, &path.to_string_lossy())
}

/// Reads a configuration from `text`; `name` stands for it in messages. It can include nothing, and
/// the files that its settings name need not exist.
///
/// # Errors
///
/// All errors, and the warnings too.
pub fn parse(text: &str, name: &str) -> Result<Loaded, Report> {
    let files = BTreeMap::from([(name.to_owned(), text.as_bytes().to_vec())]);
    load_from(Files::Memory(&files), name)
}

/// Reads the configuration with the main file `name` in `files`.
///
/// # Errors
///
/// All errors, and the warnings too.
pub fn load_from(files: Files<'_>, name: &str) -> Result<Loaded, Report> {
    let mut texts = read(files, name);
    let faults = std::mem::take(&mut texts.faults);
    // An unreadable part leaves holes; checks of the model would report misleading consequences.
    if faults.has_errors() {
        return Err(faults.into_report(texts.sources));
    }
    let mut decoder = Decoder::new(&texts, files);
    let model = decode::model(&mut decoder);
    let mut faults = decoder.into_faults();
    if faults.has_errors() {
        return Err(faults.into_report(texts.sources));
    }
    warnings::find(&model, files, &mut faults);
    let warnings = faults.into_report(texts.sources);
    Ok(Loaded { model, warnings })
}

/// The configuration used without a file: a welcome page and the health document on port 8080, the
/// admin interface on 127.0.0.1:9090.
///
/// # Errors
///
/// Never in a build that passes its tests: the text is part of this crate.
pub fn embedded() -> Result<Loaded, Report> {
    parse(include_str!("embedded.kdl"), "embedded.kdl")
}

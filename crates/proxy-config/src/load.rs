//! Loading of a configuration from a file, a text or files in memory.

pub(crate) mod loaded;

use crate::bundle_reach;
use crate::decode::{Decoder, model};
use crate::files::Files;
use crate::load::loaded::Loaded;
use crate::read::{Texts, read, read_bundle, read_over};
use crate::report::Report;
use crate::warnings;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads the configuration in the file at `path` and its includes.
///
/// # Errors
///
/// All errors, and the warnings too.
pub fn load(path: &Path) -> Result<Loaded, Report> {
    load_from(Files::Disk, &path.to_string_lossy())
}

/// Reads a configuration from `text`, called `name` in messages. Includes are refused, and files
/// named by its settings need not exist.
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
    decode(files, read(files, name))
}

/// Reads a bundle of the control plane with the main file `name`. Settings of the node's own
/// file are errors; settings that nodes must allow are warnings.
///
/// # Errors
///
/// All errors, and the warnings too.
pub fn load_bundle(files: Files<'_>, name: &str) -> Result<Loaded, Report> {
    decode(files, read_bundle(files, name))
}

/// Reads the bundle with the main file `bundle` over the node's file `own`, which provides only the
/// admin interface, the control plane, the logs and the settings of the process. The bundle is
/// restricted to what `control-plane { allow { … } }` of `own` allows.
///
/// # Errors
///
/// All errors, and the warnings too.
pub fn load_over(files: Files<'_>, bundle: &str, own: &str) -> Result<Loaded, Report> {
    decode(files, read_over(files, bundle, own))
}

fn decode(files: Files<'_>, mut texts: Texts) -> Result<Loaded, Report> {
    let faults = std::mem::take(&mut texts.faults);
    // An unreadable part leaves holes; checks of the model would report misleading consequences.
    if faults.has_errors() {
        return Err(faults.into_report(texts.sources));
    }
    let found = std::mem::take(&mut texts.warnings);
    let mut decoder = Decoder::new(&texts, files);
    for warning in found {
        decoder.push(warning);
    }
    let mut model = model(&mut decoder);
    let mut faults = decoder.into_faults();
    if let Some(bundle) = &texts.bundle {
        bundle_reach::check(&mut model, bundle, files, &mut faults);
    }
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

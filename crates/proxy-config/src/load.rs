//! Loading of a configuration from a file, a text or files in memory.

pub(crate) mod loaded;

use crate::bundle_reach;
use crate::decode::{Decoder, model};
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::files::Files;
use crate::load::loaded::Loaded;
use crate::read::{Texts, read, read_bundle, read_over};
use crate::report::Report;
use crate::warnings;
use proxy_model::Place;
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
    let mut faults = std::mem::take(&mut texts.faults);
    // An unreadable part leaves holes; checks of the model would report misleading consequences.
    let is_whole = faults.iter().all(|fault| leaves_text_whole(fault.code));
    if !is_whole || faults.is_full() {
        return Err(faults.into_report(texts.sources));
    }
    texts.has_gaps = faults.has_errors();
    let found = std::mem::take(&mut texts.warnings);
    let mut decoder = Decoder::new(&texts, files);
    for warning in found {
        decoder.push(warning);
    }
    let mut model = model(&mut decoder);
    let mut decoded = decoder.into_faults();
    if let Some(bundle) = &texts.bundle {
        bundle_reach::check(&mut model, bundle, files, &mut decoded);
    }
    faults.extend(decoded, |earlier, fault| !follows(earlier, fault));
    if faults.has_errors() {
        return Err(faults.into_report(texts.sources));
    }
    warnings::find(&model, files, &mut faults);
    let warnings = faults.into_report(texts.sources);
    Ok(Loaded { model, warnings })
}

/// Returns true for a fault of reading after which all of the text is known: a value without its
/// variable, or an `include` that includes nothing. In reading, only an `include` has a value of a
/// wrong type, or none.
const fn leaves_text_whole(code: DiagnosticCode) -> bool {
    matches!(
        code,
        DiagnosticCode::MissingVariable
            | DiagnosticCode::IncludeWithoutMatch
            | DiagnosticCode::WrongType
            | DiagnosticCode::MissingValue
    )
}

/// Returns true for a fault of decoding that may follow from `earlier` ones of reading: a name
/// that a missing file or variable may define, or the text of a variable without a value.
fn follows(earlier: &[Diagnostic], fault: &Diagnostic) -> bool {
    let is_unset = |one: &Diagnostic| one.code == DiagnosticCode::MissingVariable;
    let mut unset = earlier.iter().filter(|one| is_unset(one));
    let is_undefined = fault.code == DiagnosticCode::UndefinedName;
    is_undefined && !earlier.is_empty() || unset.any(|one| overlap(one.place, fault.place))
}

fn overlap(one: Place, other: Place) -> bool {
    let end = |place: Place| place.offset.saturating_add(place.len);
    one.file == other.file && one.offset < end(other) && other.offset < end(one)
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

//! The `observability` block.

mod otlp;

use super::block::Block;
use super::decoder::Decoder;
use super::values::no_value_twice;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::observability as spec;
use proxy_model::{
    AccessLog, ErrorLog, LogTarget, Observability, Recording, Setting, TraceContext,
};

pub(super) fn observability<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Observability {
    let access = b.inner(d, &spec::ACCESS_LOG).unwrap_or_else(Block::empty);
    let error = b.inner(d, &spec::ERROR_LOG).unwrap_or_else(Block::empty);
    let trace = b.inner(d, &spec::TRACE_CONTEXT);
    let trace = trace.unwrap_or_else(Block::empty);
    let observability = Observability {
        access_log: access_log(d, &access),
        error_log: error_log(d, &error),
        redact_query: redact_query(d, b),
        trace_context: TraceContext {
            begin: trace.setting(d, &spec::TRACE_BEGIN),
            sample_percent: trace.setting(d, &spec::TRACE_SAMPLE),
        },
        recording: recording(d, b),
        otlp: otlp::otlp(d, b),
    };
    trace.close(d);
    access.close(d);
    error.close(d);
    observability
}

fn access_log<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> AccessLog {
    let path = b.setting(d, &spec::ACCESS_PATH);
    AccessLog {
        enabled: b.setting(d, &spec::ACCESS_ENABLED),
        path: resolve_log_path(d, path),
        format: b.setting(d, &spec::ACCESS_FORMAT),
        buffer_lines: b.setting(d, &spec::ACCESS_BUFFER),
    }
}

fn error_log<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> ErrorLog {
    let path = b.setting(d, &spec::ERROR_PATH);
    ErrorLog {
        level: b.setting(d, &spec::ERROR_LEVEL),
        path: resolve_log_path(d, path),
    }
}

fn recording<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Recording> {
    let b = b.inner(d, &spec::RECORDING)?;
    let redact = b.values(d, &spec::RECORDING_REDACT);
    no_value_twice(d, spec::RECORDING_REDACT.name(), &redact);
    let recording = Recording {
        sample_percent: b.setting(d, &spec::RECORDING_SAMPLE),
        keep_bytes: b.setting(d, &spec::RECORDING_KEEP),
        redact,
    };
    b.close(d);
    Some(recording)
}

/// A log file's path, resolved against the folder of the file that names it. The log file need not
/// exist; its folder must.
fn resolve_log_path(d: &mut Decoder<'_, '_>, log: Setting<LogTarget>) -> Setting<LogTarget> {
    let (LogTarget::File(path), Some(place)) = (&log.value, log.place()) else {
        return log;
    };
    let path = d.resolve(place, &path.to_string_lossy());
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| d.lacks(folder)) {
        let message = format!("the folder `{}` does not exist", folder.display());
        d.fault(DiagnosticCode::MissingFile, place, message);
    }
    Setting::at(LogTarget::File(path), place)
}

/// Names in lower case, each of them once.
fn redact_query<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Setting<String>> {
    let names = b.values(d, &spec::REDACT_QUERY).into_iter();
    let names = names.map(|name| name.map(|name| name.to_lowercase()));
    let names: Vec<_> = names.collect();
    no_value_twice(d, spec::REDACT_QUERY.name(), &names);
    names
}

//! Diagnostics of files.

use super::foreign_format::ForeignFormat;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::{Span, SyntaxError, SyntaxErrorKind};
use proxy_model::Place;

/// The fault of a path outside its bundle.
pub(crate) fn outside(path: &str, place: Place) -> Diagnostic {
    let message = format!("`{path}` is outside of the bundle");
    Diagnostic::new(DiagnosticCode::BundleReach, place, message)
        .label("a bundle reads its own files only")
        .help("put the file into the bundle; private keys are in the control plane's certificates")
}

pub(crate) fn syntax_error(syntax: SyntaxError, place: Place) -> Diagnostic {
    let SyntaxError {
        span: _,
        message,
        label,
        help,
        kind,
    } = syntax;
    let code = match kind {
        SyntaxErrorKind::TooDeep => DiagnosticCode::NestingTooDeep,
        SyntaxErrorKind::TooMany => DiagnosticCode::FileTooLarge,
        SyntaxErrorKind::Local
        | SyntaxErrorKind::OpenText
        | SyntaxErrorKind::OtherDialect
        | SyntaxErrorKind::StrayBrace => DiagnosticCode::Syntax,
    };
    let fault = Diagnostic::new(code, place, message).label(label);
    Diagnostic { help, ..fault }
}

pub(crate) fn forbidden_fault(text: &str, span: Span, place: Place) -> Diagnostic {
    let c = text
        .get(span.start()..span.end())
        .and_then(|text| text.chars().next());
    let code = c.map_or(0, u32::from);
    let message = format!("the character U+{code:04X} is not allowed in a configuration");
    Diagnostic::new(DiagnosticCode::Syntax, place, message)
}

/// The diagnostic of a file in the notation of another program.
pub(crate) fn foreign_format_fault(format: ForeignFormat, place: Place) -> Diagnostic {
    let message = format!(
        "this is {}; a configuration is written in KDL",
        format.name()
    );
    let fault = Diagnostic::new(DiagnosticCode::ForeignFormat, place, message);
    fault.help(match format.server() {
        Some(server) => format!(
            "`proxyd config migrate --from {server} FILE -o proxyd.kdl` writes the same in KDL"
        ),
        None => "its blocks are `listeners`, `routes` and `upstreams`, each setting is `name \"value\"`: see \
             docs/reference/config.md"
            .to_owned(),
    })
}

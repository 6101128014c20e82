//! Redirects and fixed responses of a route.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::decode::field::{Field, Found};
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Value;
use proxy_model::registry::routes::answers as spec;
use proxy_model::registry::{Kind, Pair, Spec};
use proxy_model::{FixedResponse, PrefixReplacement, Redirect, Setting};

pub(super) fn redirect<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Redirect> {
    let b = b.merged(d, &spec::REDIRECT)?;
    let place = b.place(d);
    let is_empty = is_empty(&b);
    let to = b.argument_or_optional(d, &spec::REDIRECT_TO);
    let replace_prefix = prefix_replacement(d, &b, &spec::REDIRECT_REPLACE_PREFIX);
    let trailing_slash = b.optional(d, &spec::REDIRECT_TRAILING_SLASH);
    let status = b.setting(d, &spec::REDIRECT_STATUS);
    if is_empty {
        let message = "`redirect` names no URL";
        let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
        d.push(fault.help("write `redirect \"https\"` or `redirect \"https://www.example.com\"`"));
    }
    let has_path = to.as_ref().is_some_and(|to| to.path.is_some());
    let parts = [
        (
            "replace-prefix",
            replace_prefix.as_ref().and_then(Setting::place),
        ),
        (
            "trailing-slash",
            trailing_slash.as_ref().and_then(Setting::place),
        ),
    ];
    for (name, place) in parts {
        if let Some(place) = place.filter(|_| has_path) {
            let message = format!("`{name}` cannot be combined with a URL that has a path");
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            d.push(fault.help("write the URL without its path"));
        }
    }
    b.close(d);
    Some(Redirect {
        place,
        to,
        replace_prefix,
        trailing_slash,
        status,
    })
}

/// Returns true if no part of the URL is written.
fn is_empty(b: &Block<'_>) -> bool {
    let mut entries = b.nodes.iter().flat_map(|(_, node)| &node.entries);
    let parts = [
        spec::REDIRECT_TO.path,
        spec::REDIRECT_REPLACE_PREFIX.path,
        spec::REDIRECT_TRAILING_SLASH.path,
    ];
    let has_argument = entries.any(|entry| entry.name.is_none());
    !has_argument && !parts.iter().any(|path| b.has(path) || b.is_misread(path))
}

/// `replace-prefix "/old" "/new"`.
pub(in crate::decode) fn prefix_replacement<'t, D>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<Pair, D>,
) -> Option<Setting<PrefixReplacement>> {
    let fields: Vec<Field<'t>> = b.take(spec.path);
    let field = b.once(d, &fields)?;
    let place = field.place(d);
    let values = field.values(d)?;
    let [(Value::Text(from), _), (Value::Text(to), _)] = values.as_slice() else {
        let message = format!("`{}` takes two texts", spec.name());
        let fault = Diagnostic::new(DiagnosticCode::MissingValue, place, message);
        d.push(fault.help(format!("write `{} {}`", spec.name(), spec.kind.example())));
        return None;
    };
    match PrefixReplacement::new(from, to) {
        Ok(replacement) => Some(Setting::at(replacement, place)),
        Err(reason) => {
            let message = format!("`{}` takes two paths", spec.name());
            d.push(Diagnostic::new(DiagnosticCode::BadValue, place, message).label(reason));
            None
        }
    }
}

pub(super) fn respond<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<FixedResponse> {
    let b = b.merged(d, &spec::RESPOND)?;
    let place = b.place(d);
    let arguments = b.arguments(d);
    for (_, place) in arguments.iter().skip(2) {
        let message = "`respond` takes a status and a text";
        d.fault(DiagnosticCode::UnexpectedValue, *place, message);
    }
    let status = match arguments.first() {
        Some(found) => positional(d, &b, &spec::RESPOND_STATUS, found),
        None => b.required(d, &spec::RESPOND_STATUS),
    };
    let body = match arguments.get(1) {
        Some(found) => positional(d, &b, &spec::RESPOND_BODY, found),
        None => b.optional(d, &spec::RESPOND_BODY),
    };
    // An empty text is not a body.
    let body = body.filter(|body| !body.is_empty());
    let content_type = b.setting(d, &spec::RESPOND_CONTENT_TYPE);
    if let Some(place) = content_type.place().filter(|_| body.is_none()) {
        d.fault(
            DiagnosticCode::Conflict,
            place,
            "`content-type` requires a text",
        );
    }
    if let Some(status) = &status {
        check_status(d, status, body.as_ref());
    }
    b.close(d);
    Some(FixedResponse {
        place,
        status: status?,
        body,
        content_type,
    })
}

/// The argument `found` as the value of `spec`. Reports a second occurrence as a named setting.
fn positional<'t, K: Kind, D>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<K, D>,
    found: &Found<'t>,
) -> Option<Setting<K::Value>> {
    for field in b.take(spec.path) {
        let message = format!("`{}` is set twice in `respond`", spec.name());
        let fault = Diagnostic::new(DiagnosticCode::RepeatedSetting, field.place(d), message);
        d.push(fault.label("again here").related(found.1, "first here"));
    }
    b.read(d, spec, spec.name(), found)
}

/// Reports a status of another kind of answer, and a body that the status cannot have.
fn check_status(d: &mut Decoder<'_, '_>, status: &Setting<u16>, body: Option<&Setting<String>>) {
    let place = status.place().unwrap_or_default();
    if (300..400).contains(&status.value) {
        let message = format!("`respond` does not take {}", status.value);
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("a redirect is written `redirect \"URL\" status=308`"));
    }
    if let Some(body) = body.filter(|_| matches!(status.value, 204 | 205)) {
        let message = format!("a response of {} has no body", status.value);
        let place = body.place().unwrap_or_default();
        d.fault(DiagnosticCode::Conflict, place, message);
    }
}

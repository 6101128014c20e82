//! Edits of request and response headers.

use super::block::Block;
use super::decoder::Decoder;
use super::field::{Field, Found};
use super::suggest::nearest;
use super::values::no_value_twice;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::{Node, Value};
use http::{HeaderName, HeaderValue};
use proxy_model::registry::{self, Choice, Pair, Repeatable, Spec, Text, Unset};
use proxy_model::{
    FileId, HeaderEdits, HeaderField, HeaderPreset, Place, RequestValue, Setting, UnknownValue,
    ValueTemplate,
};

/// The registry's rows for request or response headers, and the headers that are protected there.
pub(super) struct Rows {
    pub(super) block: &'static Spec<registry::Block, Unset>,
    pub(super) set: &'static Spec<Pair, Repeatable>,
    pub(super) add: &'static Spec<Pair, Repeatable>,
    pub(super) remove: &'static Spec<Text<String>, Repeatable>,
    /// Presets of fields; `None` for requests.
    pub(super) preset: Option<&'static Spec<Choice<HeaderPreset>, Unset>>,
    pub(super) protected: fn(&HeaderName, Edit) -> Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Set,
    Add,
    Remove,
}

pub(super) fn edits<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>, rows: &Rows) -> HeaderEdits {
    let Some(b) = b.inner(d, rows.block) else {
        return HeaderEdits::default();
    };
    let fields = |d: &mut Decoder<'t, '_>, path: &str, edit| {
        let written = b.take(path);
        let written = written.iter().flat_map(|field| header_fields(d, field));
        let written: Vec<_> = written.collect();
        let checked = written.into_iter().filter(|field: &Setting<HeaderField>| {
            let place = field.place().unwrap_or_default();
            allowed(d, rows, &field.name, edit, place) && is_valid_host(d, rows, field, place)
        });
        checked.collect()
    };
    let preset = rows.preset.and_then(|row| b.optional(d, row));
    let mut edits = HeaderEdits {
        set: fields(d, rows.set.path, Edit::Set),
        add: fields(d, rows.add.path, Edit::Add),
        remove: removed(d, &b, rows),
    };
    let set = edits.set.iter();
    let names = set.filter_map(|field| Some(Setting::at(&field.name, field.place()?)));
    no_value_twice(d, rows.set.name(), &names.collect::<Vec<_>>());
    b.close(d);
    if let Some(Setting { value, origin }) = preset {
        for (name, value) in value.fields() {
            if !has_edit(&edits, &name) {
                let value = HeaderField {
                    name,
                    value,
                    template: None,
                };
                edits.set.push(Setting { value, origin });
            }
        }
    }
    edits
}

/// Returns true if a field of this name is edited.
fn has_edit(edits: &HeaderEdits, name: &HeaderName) -> bool {
    let HeaderEdits { remove, set, add } = edits;
    let mut fields = set.iter().chain(add);
    fields.any(|field| field.name == *name) || remove.iter().any(|one| one.value == *name)
}

/// `set "N" "v"`, or `set { "N" "v" }`.
fn header_fields<'t>(d: &mut Decoder<'t, '_>, field: &Field<'t>) -> Vec<Setting<HeaderField>> {
    let Some(node) = field.node() else {
        let place = field.place(d);
        let message = format!("write `{} \"Name\" \"value\"`", field.name());
        d.fault(DiagnosticCode::UnexpectedValue, place, message);
        return Vec::new();
    };
    let Some(children) = &node.children else {
        return header_field(d, field).into_iter().collect();
    };
    for entry in &node.entries {
        let place = d.place(field.file, entry.span);
        let message = format!(
            "`{}` takes a name and a value, or a block of them",
            field.name()
        );
        d.fault(DiagnosticCode::UnexpectedValue, place, message);
    }
    let named = children
        .iter()
        .filter_map(|child| named_field(d, field.file, child));
    named.collect()
}

/// `set "N" "v"`, with exactly two arguments.
fn header_field<'t>(d: &mut Decoder<'t, '_>, field: &Field<'t>) -> Option<Setting<HeaderField>> {
    let values = field.values(d)?;
    let [(Value::Text(name), name_place), value] = values.as_slice() else {
        let place = field.place(d);
        let message = format!("`{}` takes a header's name and its value", field.name());
        let fault = Diagnostic::new(DiagnosticCode::MissingValue, place, message);
        d.push(fault.help(format!("write `{} \"Name\" \"value\"`", field.name())));
        return None;
    };
    checked_field(d, name, *name_place, value)
}

/// `"N" "v"` within the braces of `set`.
fn named_field<'t>(
    d: &mut Decoder<'t, '_>,
    file: FileId,
    node: &'t Node,
) -> Option<Setting<HeaderField>> {
    let field = Field::from_node(file, node);
    let place = field.place(d);
    let values = field.values(d)?;
    if let Some((_, place)) = values.get(1) {
        d.fault(
            DiagnosticCode::UnexpectedValue,
            *place,
            "a header has one value here",
        );
    }
    checked_field(d, &node.name.text, place, values.first()?)
}

/// The field with this name and value, or `None` with a fault for each that is invalid.
fn checked_field(
    d: &mut Decoder<'_, '_>,
    name: &str,
    name_place: Place,
    (value, value_place): &Found<'_>,
) -> Option<Setting<HeaderField>> {
    let name = header_name(d, name, name_place);
    let Value::Text(text) = value else {
        let message = "a header's value is text";
        let fault = Diagnostic::new(DiagnosticCode::WrongType, *value_place, message);
        let written = d.text_at(*value_place);
        let quoted = format!("\"{}\"", written.trim_start_matches('#'));
        d.push(fault.help(format!("write it in quotes: `{quoted}`")));
        return None;
    };
    let Ok(value) = HeaderValue::from_str(text) else {
        let fault = Diagnostic::new(
            DiagnosticCode::BadValue,
            *value_place,
            "this is not a header value",
        );
        d.push(fault.label("no line breaks, no other controls"));
        return None;
    };
    let template = match template(d, text, *value_place) {
        Ok(template) => template,
        Err(unknown) => {
            d.push(unknown_value(unknown, *value_place));
            return None;
        }
    };
    let name = name?;
    Some(Setting::at(
        HeaderField {
            name,
            value,
            template,
        },
        name_place,
    ))
}

/// The values of the request in `text`; `None` in a raw text.
fn template(
    d: &Decoder<'_, '_>,
    text: &str,
    place: Place,
) -> Result<Option<ValueTemplate>, UnknownValue> {
    if d.text_at(place).starts_with('#') {
        return Ok(None);
    }
    ValueTemplate::parse(text)
}

/// The fault of a name in braces that is not a value of a request.
fn unknown_value(UnknownValue(name): UnknownValue, place: Place) -> Diagnostic {
    let known = RequestValue::ALL.map(RequestValue::name);
    let message = format!("a request has no value `{{{name}}}`");
    let fault = Diagnostic::new(DiagnosticCode::UnknownWord, place, message);
    let names = known.map(|name| format!("`{{{name}}}`")).join(", ");
    let help = format!("one of {names}; `#\"{{{name}}}\"#` is text as it is");
    match nearest(&name, known) {
        Some(near) => fault
            .label(format!("did you mean `{{{near}}}`?"))
            .help(help),
        None => fault.help(help),
    }
}

fn removed<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>, rows: &Rows) -> Vec<Setting<HeaderName>> {
    let mut removed = Vec::new();
    for field in b.take(rows.remove.path) {
        for (name, place) in names_to_remove(d, b, rows, &field) {
            let name = header_name(d, &name, place);
            let name = name.filter(|name| allowed(d, rows, name, Edit::Remove, place));
            removed.extend(name.map(|name| Setting::at(name, place)));
        }
    }
    no_value_twice(d, rows.remove.name(), &removed);
    removed
}

/// `remove "A" "B"`, or `remove { "A"; "B" }`.
fn names_to_remove<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    rows: &Rows,
    field: &Field<'t>,
) -> Vec<(String, Place)> {
    let block = field.node().and_then(|node| node.children.as_ref());
    let Some(children) = block else {
        let values = field.values(d).unwrap_or_default();
        let read = |found| b.read(d, rows.remove, "remove", found);
        let names = values.iter().filter_map(read);
        return names
            .filter_map(|name| Some((name.value.clone(), name.place()?)))
            .collect();
    };
    for node in children.iter().filter(|node| !node.entries.is_empty()) {
        let place = d.place(field.file, node.head);
        d.fault(
            DiagnosticCode::UnexpectedValue,
            place,
            "a header to remove has a name only",
        );
    }
    let names = children.iter().map(|node| {
        let place = d.place(field.file, node.name.span);
        (node.name.text.to_string(), place)
    });
    names.collect()
}

fn header_name(d: &mut Decoder<'_, '_>, name: &str, place: Place) -> Option<HeaderName> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
    if parsed.is_none() {
        d.fault(
            DiagnosticCode::BadValue,
            place,
            format!("`{name}` is not a header name"),
        );
    }
    parsed
}

fn allowed(
    d: &mut Decoder<'_, '_>,
    rows: &Rows,
    name: &HeaderName,
    edit: Edit,
    place: Place,
) -> bool {
    let Some(reason) = (rows.protected)(name, edit) else {
        return true;
    };
    let message = format!("`{name}` cannot be edited");
    d.push(Diagnostic::new(DiagnosticCode::ProtectedHeader, place, message).label(reason));
    false
}

/// Returns true unless the field is a request's constant `Host` that is no host.
fn is_valid_host(d: &mut Decoder<'_, '_>, rows: &Rows, field: &HeaderField, place: Place) -> bool {
    let is_response = rows.preset.is_some();
    if is_response || field.template.is_some() || field.may_be_sent(&field.value) {
        return true;
    }
    let value = String::from_utf8_lossy(field.value.as_bytes());
    let message = format!("{value:?} is not a host");
    let fault = Diagnostic::new(DiagnosticCode::BadValue, place, message);
    d.push(
        fault.help("write a name or an address, and a port if it has one: `\"app.internal:8080\"`"),
    );
    false
}

/// The reason why a request header must not be edited; `None` if it may be.
pub(super) fn protected_in_requests(name: &HeaderName, edit: Edit) -> Option<&'static str> {
    match name.as_str() {
        "host" if edit != Edit::Set => Some("a request has exactly one; `set` replaces it"),
        "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host" | "via" => {
            Some("the proxy writes it; `trusted-proxies` says what is kept of the client's")
        }
        name => protected(name),
    }
}

/// The reason why a response header must not be edited; `None` if it may be.
pub(super) fn protected_in_responses(name: &HeaderName, _edit: Edit) -> Option<&'static str> {
    protected(name.as_str())
}

fn protected(name: &str) -> Option<&'static str> {
    match name {
        "content-length" | "transfer-encoding" | "trailer" | "te" => {
            Some("it frames the message; the proxy writes it")
        }
        "connection" | "keep-alive" | "proxy-connection" | "upgrade" => {
            Some("it is between two hops only; the proxy writes it")
        }
        "x-correlation-id" => Some("the proxy writes it"),
        _ => None,
    }
}

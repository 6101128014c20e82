//! Arguments and name of a block.

use super::block::Block;
use super::decoder::Decoder;
use super::field::{Field, Found, Written};
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::{Entry, Value};
use proxy_model::{Place, Setting};

/// Maximum length of a name, in characters.
const MAX_NAME: usize = 128;

impl<'t> Block<'t> {
    /// The block's kind and name, for messages: ` in route "api"`.
    pub(super) fn within(&self, d: &Decoder<'_, '_>) -> String {
        let name = self.path.rsplit('.').next().unwrap_or_default();
        match (name, self.title(d)) {
            ("", _) => " at the top of a file".to_owned(),
            (name, Some((title, _))) => format!(" in {name} \"{title}\""),
            (name, None) => format!(" in `{name}`"),
        }
    }

    /// The first argument, if it is text.
    pub(super) fn title(&self, d: &Decoder<'_, '_>) -> Option<(&'t str, Place)> {
        let (file, node) = self.nodes.first()?;
        let first = node.entries.iter().find(|entry| entry.name.is_none())?;
        match &first.value {
            Value::Text(text) => Some((text, d.place(*file, first.span))),
            Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::Null => None,
        }
    }

    /// The place of the block's first node.
    pub(super) fn place(&self, d: &Decoder<'_, '_>) -> Place {
        let first = self.nodes.first();
        first.map_or_else(Place::default, |(file, node)| d.place(*file, node.head))
    }

    pub(super) fn arguments(&self, d: &mut Decoder<'t, '_>) -> Vec<Found<'t>> {
        let mut found = Vec::new();
        for (file, node) in &self.nodes {
            let field = Field {
                path: self.path,
                file: *file,
                written: Written::Node(node),
            };
            let arguments = node.entries.iter().filter(|entry| entry.name.is_none());
            found.extend(arguments.filter_map(|entry: &Entry| field.value(d, entry)));
        }
        found
    }

    /// Reports every argument.
    pub(super) fn no_arguments(&self, d: &mut Decoder<'t, '_>) {
        for (_, place) in self.arguments(d) {
            let name = self.path.rsplit('.').next().unwrap_or_default();
            let message = format!("`{name}` takes no value");
            d.fault(DiagnosticCode::UnexpectedValue, place, message);
        }
    }

    /// The block's name: its single argument, which must be text.
    pub(super) fn name(&self, d: &mut Decoder<'t, '_>) -> Option<Setting<String>> {
        let noun = self.path.rsplit('.').next().unwrap_or_default();
        let arguments = self.arguments(d);
        for (_, place) in arguments.iter().skip(1) {
            d.fault(
                DiagnosticCode::UnexpectedValue,
                *place,
                format!("`{noun}` has one name only"),
            );
        }
        match arguments.first() {
            Some((Value::Text(name), place)) if is_name(name) => {
                Some(Setting::at(name.to_string(), *place))
            }
            Some((Value::Text(_), place)) => {
                let message =
                    format!("a name has 1 to {MAX_NAME} characters, none of them a control");
                d.fault(DiagnosticCode::BadValue, *place, message);
                None
            }
            Some((_, place)) => {
                d.fault(
                    DiagnosticCode::WrongType,
                    *place,
                    format!("the name of a `{noun}` is text"),
                );
                None
            }
            None => {
                let place = self.place(d);
                let message = format!("this `{noun}` has no name");
                let fault = Diagnostic::new(DiagnosticCode::MissingValue, place, message);
                d.push(fault.help(format!("write `{noun} \"name\" {{ … }}`")));
                None
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    let plain = !text.trim().is_empty() && !text.contains(char::is_control);
    plain && text.chars().count() <= MAX_NAME
}

//! Reading of a block's settings by their rows in the registry.

use super::block::Block;
use super::decoder::Decoder;
use super::field::{Field, Found, raw};
use super::suggest::nearest;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Value;
use crate::read::environment::has_variable;
use proxy_model::registry::policies::REQUESTS_PER_SECOND;
use proxy_model::registry::{
    DefaultValue, Kind, Raw, Repeatable, Required, Shape, Spec, Text, Unset, ValueError,
};
use proxy_model::{Place, Setting};
use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::path::PathBuf;

impl<'t> Block<'t> {
    /// Reads a setting with a default.
    pub(super) fn setting<K: Kind>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, DefaultValue<K::DefaultValue>>,
    ) -> Setting<K::Value> {
        let written = self.written(d, spec);
        written.unwrap_or_else(|| Setting::defaulted(spec.default()))
    }

    /// Reads an optional setting.
    pub(super) fn optional<K: Kind>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, Unset>,
    ) -> Option<Setting<K::Value>> {
        self.written(d, spec)
    }

    /// Reads a required setting; reports its absence.
    pub(super) fn required<K: Kind>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, Required>,
    ) -> Option<Setting<K::Value>> {
        let fields = self.take(spec.path);
        if fields.is_empty() && !self.is_misread(spec.path) {
            let mut fault = self.absence(d, spec.name());
            if let Shape::Choice(words) = spec.kind.shape() {
                let words = words.iter().map(|word| format!("`{}`", word.name));
                fault = fault.help(format!("one of {}", words.collect::<Vec<_>>().join(", ")));
            }
            d.push(fault);
        }
        let field = self.once(d, &fields)?;
        self.read_one(d, spec, &field)
    }

    /// Reads a repeatable setting, each occurrence with any number of values. Reports duplicate
    /// values.
    pub(super) fn list<K: Kind<Value: Eq + Hash>>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, Repeatable>,
    ) -> Vec<Setting<K::Value>> {
        let list = self.values(d, spec);
        no_value_twice(d, spec.name(), &list);
        list
    }

    /// Like [`Self::list`], with duplicate values allowed.
    pub(super) fn values<K: Kind>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, Repeatable>,
    ) -> Vec<Setting<K::Value>> {
        let mut list = Vec::new();
        for field in self.take(spec.path) {
            let values = field.values(d).unwrap_or_default();
            let read = |found: &Found<'t>| self.read(d, spec, field.name(), found);
            list.extend(values.iter().filter_map(read));
        }
        list
    }

    /// Reads a path, resolved against the folder of the file that names it; the file need not
    /// exist.
    pub(super) fn path(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<Text<PathBuf>, Unset>,
    ) -> Option<Setting<PathBuf>> {
        let written = self.written(d, spec)?;
        let place = written.place()?;
        let path = d.resolve(place, &written.value.to_string_lossy());
        Some(Setting::at(path, place))
    }

    /// Like [`Self::path`], for a required setting.
    pub(super) fn required_path(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<Text<PathBuf>, Required>,
    ) -> Option<Setting<PathBuf>> {
        let written = self.required(d, spec)?;
        let place = written.place()?;
        let path = d.resolve(place, &written.value.to_string_lossy());
        Some(Setting::at(path, place))
    }

    /// Reads an optional path of an existing file; reports a missing file.
    pub(super) fn file(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<Text<PathBuf>, Unset>,
    ) -> Option<Setting<PathBuf>> {
        let written = self.written(d, spec)?;
        Some(existing(d, written))
    }

    /// Reads a required path of an existing file; reports a missing file.
    pub(super) fn required_file(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<Text<PathBuf>, Required>,
    ) -> Option<Setting<PathBuf>> {
        let written = self.required(d, spec)?;
        Some(existing(d, written))
    }

    /// Reads a required setting, as the block's argument or by its name.
    pub(super) fn argument_or_setting<K: Kind>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, Required>,
    ) -> Option<Setting<K::Value>> {
        match self.argument(d, spec) {
            Some(argument) => self.read(d, spec, spec.name(), &argument),
            None => self.required(d, spec),
        }
    }

    /// Like [`Self::argument_or_setting`], for a setting with a default.
    pub(super) fn argument_or_default<K: Kind>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, DefaultValue<K::DefaultValue>>,
    ) -> Setting<K::Value> {
        let argument = self.argument(d, spec);
        let read = argument.and_then(|argument| self.read(d, spec, spec.name(), &argument));
        read.unwrap_or_else(|| self.setting(d, spec))
    }

    /// Like [`Self::argument_or_setting`], for an optional setting.
    pub(super) fn argument_or_optional<K: Kind>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, Unset>,
    ) -> Option<Setting<K::Value>> {
        match self.argument(d, spec) {
            Some(argument) => self.read(d, spec, spec.name(), &argument),
            None => self.optional(d, spec),
        }
    }

    /// The block's argument as the value of `spec`. Reports further arguments, and the setting by
    /// name in addition to an argument.
    fn argument<K: Kind, D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, D>,
    ) -> Option<Found<'t>> {
        let arguments = self.arguments(d);
        let (first, further) = arguments.split_first()?;
        for (_, place) in further {
            let message = format!("there is one `{}` only", spec.name());
            d.fault(DiagnosticCode::UnexpectedValue, *place, message);
        }
        for field in self.take(spec.path) {
            let place = field.place(d);
            let message = format!("`{}` is set twice{}", spec.name(), self.within(d));
            let fault = Diagnostic::new(DiagnosticCode::RepeatedSetting, place, message);
            d.push(fault.label("again here").related(first.1, "first here"));
        }
        Some(*first)
    }

    /// Reports that the block lacks the setting `name`.
    pub(super) fn missing(&self, d: &mut Decoder<'t, '_>, name: &str) {
        let fault = self.absence(d, name);
        d.push(fault);
    }

    /// The fault of a block that lacks the setting `name`.
    fn absence(&self, d: &Decoder<'t, '_>, name: &str) -> Diagnostic {
        let message = format!("`{name}` is missing{}", self.within(d));
        let fault = Diagnostic::new(DiagnosticCode::MissingSetting, self.place(d), message);
        fault.label(format!("needs `{name}`"))
    }

    fn written<K: Kind, D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, D>,
    ) -> Option<Setting<K::Value>> {
        let fields = self.take(spec.path);
        let field = self.once(d, &fields)?;
        self.read_one(d, spec, &field)
    }

    /// Reads a field with exactly one value.
    pub(super) fn read_one<K: Kind, D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, D>,
        field: &Field<'t>,
    ) -> Option<Setting<K::Value>> {
        let values = field.values(d)?;
        for (_, place) in values.iter().skip(1) {
            let message = format!("`{}` takes one value", field.name());
            d.fault(DiagnosticCode::UnexpectedValue, *place, message);
        }
        self.read(d, spec, field.name(), values.first()?)
    }

    /// Reads one value by its row in the registry.
    #[expect(
        clippy::unused_self,
        reason = "it is called as the other readers of a block are"
    )]
    pub(super) fn read<K: Kind, D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, D>,
        name: &str,
        (value, place): &Found<'t>,
    ) -> Option<Setting<K::Value>> {
        let read = spec.read(name, raw(value));
        let read = match read {
            Err(ValueError::Type { .. }) => {
                typed(d, value, *place).map_or(read, |value| spec.read(name, value))
            }
            Ok(_) | Err(_) => read,
        };
        match read {
            Ok(value) => Some(Setting::at(value, *place)),
            Err(error) => {
                let help = sendable_host(&error, raw(value))
                    .map(|host| format!("write \"{host}\", the form of it in HTTP and DNS"))
                    .or_else(|| part_of_a_second(spec, name, raw(value)));
                let fault = value_fault(name, &d.text_at(*place), error, *place);
                d.push(match help {
                    Some(help) => fault.help(help),
                    None => fault,
                });
                None
            }
        }
    }
}

/// Reports each repeated value of the list `name`.
pub(super) fn no_value_twice<T: Eq + Hash>(
    d: &mut Decoder<'_, '_>,
    name: &str,
    list: &[Setting<T>],
) {
    for (first, again) in repeated(list) {
        let written = as_text(&d.text_at(again));
        d.push(there_twice(first, again, format!("{written} in `{name}`")));
    }
}

/// The fault of `what`, which occurs twice in one list.
pub(super) fn there_twice(first: Place, again: Place, what: impl Display) -> Diagnostic {
    let message = format!("{what} is there twice");
    let fault = Diagnostic::new(DiagnosticCode::RepeatedValue, again, message);
    fault.label("again here").related(first, "first here")
}

/// The places of duplicate values: of the earlier value, and their own.
pub(super) fn repeated<T: Eq + Hash>(list: &[Setting<T>]) -> Vec<(Place, Place)> {
    let mut seen = HashMap::new();
    let again = list.iter().filter_map(|one| {
        let place = one.place()?;
        Some((seen.insert(&one.value, place)?, place))
    });
    again.collect()
}

/// The number or boolean written as a text with environment variables.
fn typed(d: &Decoder<'_, '_>, value: &Value, place: Place) -> Option<Raw<'static>> {
    let Value::Text(text) = value else {
        return None;
    };
    if !has_variable(&d.text_at(place)) {
        return None;
    }
    match &**text {
        "true" | "#true" => Some(Raw::Flag(true)),
        "false" | "#false" => Some(Raw::Flag(false)),
        text => {
            let whole = text.parse().ok().map(Raw::Integer);
            whole.or_else(|| text.parse().ok().map(Raw::Decimal))
        }
    }
}

fn existing(d: &mut Decoder<'_, '_>, written: Setting<PathBuf>) -> Setting<PathBuf> {
    let Some(place) = written.place() else {
        return written;
    };
    let path = d.resolve(place, &written.value.to_string_lossy());
    if d.lacks(&path) {
        let message = format!("`{}` does not exist", path.display());
        d.fault(DiagnosticCode::MissingFile, place, message);
    }
    Setting::at(path, place)
}

fn value_fault(name: &str, written: &str, error: ValueError, place: Place) -> Diagnostic {
    match error {
        ValueError::Type { expected, found } => {
            let message = format!("`{name}` takes {expected}, not {found}");
            Diagnostic::new(DiagnosticCode::WrongType, place, message)
                .label(format!("this is {found}"))
        }
        ValueError::Range { least, greatest } => {
            let message = format!("`{name}` is out of range");
            let label = format!("at least {least}, at most {greatest}");
            Diagnostic::new(DiagnosticCode::OutOfRange, place, message).label(label)
        }
        ValueError::Word { known } => {
            let message = format!("`{name}` does not take {}", as_text(written));
            let words: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
            let fault = Diagnostic::new(DiagnosticCode::UnknownWord, place, message);
            let fault = fault.help(format!("one of {}", words.join(", ")));
            match nearest(written.trim_matches('"'), known) {
                Some(near) => fault.label(format!("did you mean `{near}`?")),
                None => fault,
            }
        }
        ValueError::Form { what, reason } => {
            let message = format!("{} is not {what}", as_text(written));
            let fault = Diagnostic::new(DiagnosticCode::BadValue, place, message).label(reason);
            match foreign_form(what, written) {
                Some(help) => fault.help(help),
                None => fault,
            }
        }
    }
}

/// The setting for a refused number of seconds, or of requests per second, with a fraction or of
/// zero.
fn part_of_a_second<K: Kind, D>(spec: &Spec<K, D>, name: &str, written: Raw<'_>) -> Option<String> {
    let number = match written {
        Raw::Decimal(number) if number > 0.0 => number,
        Raw::Integer(0) => 0.0,
        Raw::Decimal(_) | Raw::Integer(_) | Raw::Text(_) | Raw::Flag(_) | Raw::Null => return None,
    };
    if spec.path == REQUESTS_PER_SECOND.path {
        let per_minute = number * 60.0;
        let is_whole = per_minute >= 1.0 && per_minute.fract() < 1e-9;
        return Some(if is_whole {
            format!("write `rate \"{per_minute:.0}/min\"`")
        } else {
            "write `rate`, as in `rate \"30/min\"`".to_owned()
        });
    }
    let stem = name
        .strip_suffix("-secs")
        .or_else(|| name.strip_suffix("-seconds"))?;
    let millis = number * 1_000.0;
    let Shape::Time {
        least_ms: ..1_000,
        greatest_ms: _,
    } = spec.kind.shape()
    else {
        return None;
    };
    Some(if millis >= 1.0 {
        format!("write `{stem}-ms {millis:.0}`")
    } else {
        format!("write `{stem}-ms` for less than a second")
    })
}

/// The ASCII form of a host with other characters, as sent.
fn sendable_host(error: &ValueError, written: Raw<'_>) -> Option<String> {
    let (ValueError::Form { what, .. }, Raw::Text(text)) = (error, written) else {
        return None;
    };
    let is_host = what.starts_with("a host") && !text.is_ascii();
    is_host.then(|| idna::domain_to_ascii(text).ok()).flatten()
}

/// The syntax here for a value in another program's form: a variable, or a URL for a host.
fn foreign_form(what: &str, written: &str) -> Option<String> {
    if written.contains("${") || written.contains("{{") {
        let help =
            "write the value, or `{$NAME}` for an environment variable, which bundles do not have";
        return Some(help.to_owned());
    }
    let (scheme, rest) = written.trim_matches('"').split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    match what {
        _ if what.starts_with("a host or") => Some(format!(
            "write `{authority}`: the listener decides about {scheme}"
        )),
        _ if what.starts_with("a host and") => Some(format!(
            "write `{authority}`, with a port; the upstream's `tls` block decides about {scheme}"
        )),
        _ => None,
    }
}

/// Text as written, in the quotes that a message uses.
fn as_text(written: &str) -> String {
    if written.starts_with(['"', '#']) {
        written.to_owned()
    } else {
        format!("`{written}`")
    }
}

//! The `matches` block of a route.

use super::block::Block;
use super::decoder::Decoder;
use super::field::{Field, Written};
use super::values::no_value_twice;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Value;
use proxy_model::registry::matches as spec;
use proxy_model::registry::{Pair, Repeatable, Spec, Text};
use proxy_model::{Matches, Place, Setting};
use proxy_routing::{HeaderCondition, PathPattern, PatternError, QueryCondition};
use std::hash::Hash;

pub(super) fn matches<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Matches {
    let Some(b) = b.inner(d, &spec::MATCHES) else {
        return Matches::default();
    };
    let mut paths = b.list(d, &spec::PATH);
    paths.extend(b.list(d, &spec::PATH_PREFIX));
    paths.extend(regexes(d, &b, &spec::PATH_REGEX));
    // Sorted by position in the text, all kinds together.
    paths.sort_by_key(Setting::place);
    let header = |name: &str, value: Option<&str>| match value {
        Some(value) => HeaderCondition::equals(name, value),
        None => HeaderCondition::parse(name),
    };
    let query = |name: &str, value: Option<&str>| match value {
        Some(value) => QueryCondition::equals(name, value),
        None => QueryCondition::parse(name),
    };
    let matches = Matches {
        hosts: b.list(d, &spec::HOST),
        paths,
        headers: pairs(d, &b, &spec::HEADER, header),
        methods: b.list(d, &spec::METHOD),
        query_params: pairs(d, &b, &spec::QUERY_PARAM, query),
    };
    b.close(d);
    matches
}

/// Regular expressions. Their fault shows the position within the expression.
fn regexes<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<Text<PathPattern>, Repeatable>,
) -> Vec<Setting<PathPattern>> {
    let mut patterns = Vec::new();
    for field in b.take(spec.path) {
        for found in field.values(d).unwrap_or_default() {
            let (Value::Text(text), place) = found else {
                b.read(d, spec, field.name(), &found);
                continue;
            };
            if let Some(expression) = text.strip_prefix('~') {
                d.push(modifier_of_nginx(expression, place));
                continue;
            }
            let is_spent = d.regexes.is_spent();
            match PathPattern::regex_within(text, &mut d.regexes) {
                Ok(pattern) => patterns.push(Setting::at(pattern, place)),
                // Reported once; later patterns are not compiled.
                Err(PatternError::RegexesTooLarge(_)) if is_spent => {}
                Err(fault @ PatternError::RegexesTooLarge(_)) => {
                    let code = DiagnosticCode::RegexesTooLarge;
                    let message = "the regular expressions are too large together";
                    let fault = Diagnostic::new(code, place, message).label(fault.to_string());
                    d.push(fault.help("write `path` or `path-prefix` where they say the same"));
                }
                Err(fault) => d.push(bad_regex(&fault, place)),
            }
        }
    }
    no_value_twice(d, spec.name(), &patterns);
    patterns
}

/// The fault of `~ expression` and `~* expression`.
fn modifier_of_nginx(expression: &str, place: Place) -> Diagnostic {
    let (modifier, flag) = if expression.starts_with('*') {
        ("~*", "(?i)")
    } else {
        ("~", "")
    };
    let expression = expression.trim_start_matches('*').trim_start();
    let message = format!("`{modifier}` is nginx's notation, and no path begins with it");
    Diagnostic::new(DiagnosticCode::BadRegex, place, message)
        .help(format!("write `path-regex #\"{flag}{expression}\"#`"))
}

fn bad_regex(fault: &PatternError, place: Place) -> Diagnostic {
    let text = fault.to_string();
    // The last line of the error is the reason; the lines before it show the position.
    let (shown, reason) = text.rsplit_once('\n').unwrap_or(("", &text));
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    let shown = shown.strip_prefix("regex parse error:\n").unwrap_or(shown);
    let fault = Diagnostic::new(
        DiagnosticCode::BadRegex,
        place,
        "this regular expression does not compile",
    );
    match shown {
        "" => fault.label(reason),
        shown => fault.label(reason).help(shown),
    }
}

/// Conditions with a name and an optional value: `header "N" "v"` or `header name="N" value="v"`.
fn pairs<'t, T: Eq + Hash>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<Pair, Repeatable>,
    make: impl Fn(&str, Option<&str>) -> Result<T, PatternError>,
) -> Vec<Setting<T>> {
    let mut conditions = Vec::new();
    for field in b.take(spec.path) {
        let Some(condition) = name_and_value(d, &field) else {
            continue;
        };
        let NamedValue { name, value, place } = condition;
        match make(name, value) {
            Ok(condition) => conditions.push(Setting::at(condition, place)),
            Err(fault) => {
                let message = format!("this `{}` condition cannot be read", field.name());
                d.push(
                    Diagnostic::new(DiagnosticCode::BadValue, place, message)
                        .label(fault.to_string()),
                );
            }
        }
    }
    no_value_twice(d, spec.name(), &conditions);
    conditions
}

struct NamedValue<'t> {
    name: &'t str,
    value: Option<&'t str>,
    place: Place,
}

fn name_and_value<'t>(d: &mut Decoder<'t, '_>, field: &Field<'t>) -> Option<NamedValue<'t>> {
    let node = match field.written {
        Written::Node(node) if node.children.is_none() => node,
        Written::Node(_) | Written::Property(_) => {
            let place = field.place(d);
            let message = format!("write `{} \"name\" \"value\"`", field.name());
            d.fault(DiagnosticCode::UnexpectedBlock, place, message);
            return None;
        }
    };
    let mut parts = [None, None];
    let mut next = 0_usize;
    for entry in &node.entries {
        let (value, place) = field.value(d, entry)?;
        let slot = match entry.name.as_ref().map(|name| &*name.text) {
            None => next,
            Some("name") => 0,
            Some("value") => 1,
            Some(_) => usize::MAX,
        };
        next = slot.saturating_add(1);
        let free = parts.get_mut(slot).filter(|part| part.is_none());
        let (Some(part), Value::Text(text)) = (free, value) else {
            let message = format!("`{}` takes a name and a value, both text", field.name());
            d.fault(DiagnosticCode::UnexpectedValue, place, message);
            return None;
        };
        *part = Some(&**text);
    }
    let place = d.place(field.file, node.head);
    let [Some(name), value] = parts else {
        let message = format!("`{}` has no name", field.name());
        d.fault(DiagnosticCode::MissingValue, place, message);
        return None;
    };
    Some(NamedValue { name, value, place })
}

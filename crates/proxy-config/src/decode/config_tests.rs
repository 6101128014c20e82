//! The `tests` block.

use super::block::Block;
use super::decoder::Decoder;
use super::field::Field;
use super::references::Among;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Value;
use proxy_model::registry::{Spec, Text, Unset, config_tests as spec};
use proxy_model::{ConfigTest, Expectation, Place, Setting, TestRequest};

pub(super) fn config_test<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ConfigTest> {
    let name = b.name(d);
    let request = request(d, b);
    let expectations = expectations(d, b);
    Some(ConfigTest {
        name: name?.value,
        place: b.place(d),
        request: request?,
        expectations: expectations?,
    })
}

fn request<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<TestRequest> {
    let line = line(d, b);
    let headers = b.take(spec::HEADER.path);
    let headers = headers.iter().filter_map(|field| two_texts(d, field));
    let headers = headers.map(|(name, value, _)| (name, value)).collect();
    let listener = b.optional(d, &spec::LISTENER);
    let client_ip = b.optional(d, &spec::CLIENT_IP);
    if let Some(listener) = &listener {
        d.resolve_name(Among::Listeners, listener);
    }
    let (method, url, place) = line?;
    Some(TestRequest {
        place,
        method,
        url,
        headers,
        listener: listener.map(|name| name.value),
        client_ip: client_ip.map(|address| address.value),
    })
}

/// The method and the URL.
fn line<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<(String, String, Place)> {
    let fields = b.take(spec::REQUEST.path);
    if fields.is_empty() && !b.was_meant(spec::REQUEST.path) {
        b.missing(d, spec::REQUEST.name());
    }
    let field = b.once(d, &fields)?;
    two_texts(d, &field)
}

/// `name "A" "B"`, with exactly two arguments.
fn two_texts<'t>(d: &mut Decoder<'t, '_>, field: &Field<'t>) -> Option<(String, String, Place)> {
    let place = field.place(d);
    let values = field.values(d)?;
    if let [(Value::Text(first), _), (Value::Text(second), _)] = values.as_slice() {
        return Some((first.to_string(), second.to_string(), place));
    }
    let message = format!("`{}` takes two texts", field.name());
    let fault = Diagnostic::new(DiagnosticCode::MissingValue, place, message);
    let example = if field.path == spec::REQUEST.path {
        spec::REQUEST.kind.example()
    } else {
        spec::HEADER.kind.example()
    };
    d.push(fault.help(format!("write `{} {example}`", field.name())));
    None
}

fn expectations<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Vec<Setting<Expectation>>> {
    let Some(b) = b.inner(d, &spec::EXPECT) else {
        if !b.was_meant(spec::EXPECT.path) {
            b.missing(d, spec::EXPECT.name());
        }
        return None;
    };
    if b.fields.borrow().is_empty() {
        let message = "`expect` names no part of the decision";
        let fault = Diagnostic::new(DiagnosticCode::MissingSetting, b.place(d), message);
        d.push(fault.help("write `route \"name\"`, `upstream \"name\"` or `status 404`"));
    }
    let route = named(d, &b, &spec::EXPECT_ROUTE, Among::Routes);
    let upstream = named(d, &b, &spec::EXPECT_UPSTREAM, Among::Upstreams);
    let builtin = b.optional(d, &spec::EXPECT_BUILTIN);
    let status = b.optional(d, &spec::EXPECT_STATUS);
    let reason = b.optional(d, &spec::EXPECT_REASON);
    let expectations = [
        route.map(|one| one.map(Expectation::Route)),
        upstream.map(|one| one.map(Expectation::Upstream)),
        builtin.map(|one| one.map(Expectation::Builtin)),
        agents(d, &b),
        status.map(|one| one.map(Expectation::Status)),
        reason.map(|one| one.map(Expectation::Reason)),
    ];
    b.close(d);
    Some(expectations.into_iter().flatten().collect())
}

fn agents<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Setting<Expectation>> {
    let names = b.list(d, &spec::EXPECT_AGENTS);
    for name in &names {
        d.resolve_name(Among::Agents, name);
    }
    let place = names.first()?.place()?;
    let names = names.into_iter().map(|name| name.value);
    Some(Setting::at(Expectation::Agents(names.collect()), place))
}

/// Reads the name of a block that must be defined.
fn named<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<Text<String>, Unset>,
    among: Among,
) -> Option<Setting<String>> {
    let name = b.optional(d, spec)?;
    d.resolve_name(among, &name);
    Some(name)
}

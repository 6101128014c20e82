//! The `tests` block.

use super::block::Block;
use super::decoder::Decoder;
use super::field::{Field, TextPair};
use super::references::Among;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Value;
use http::{HeaderName, HeaderValue};
use proxy_model::registry::{Pair, Repeatable, Spec, Text, Unset, config_tests as spec};
use proxy_model::{ConfigTest, Expectation, LiveRequest, Prohibition, Setting, TestRequest};

pub(super) fn config_test<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ConfigTest> {
    let name = b.name(d);
    let request = request(d, b);
    let live = live(d, b, request.as_ref());
    let has_claims = request.as_ref().is_some_and(|one| !one.claims.is_empty());
    if let (Some(_), true, Some(request)) = (live, has_claims, &request) {
        let message = "a live test has no token of these claims: only the issuer signs one";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, request.place, message);
        d.push(fault.help("leave `live` or `claim` out"));
    }
    let expectations = expectations(d, b);
    if let (None, Some(expectations)) = (live, &expectations) {
        let mut needing = expectations.iter();
        let needing = needing.find(|one| one.value.needs_an_answer());
        if let Some(place) = needing.and_then(Setting::place) {
            let message = "there is no answer, as the test is not sent";
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            d.push(fault.help("write `live #true` into the test"));
        }
    }
    Some(ConfigTest {
        name: name?.value,
        place: b.place(d),
        request: request?,
        live,
        expectations: expectations?,
    })
}

/// The kind of request of a live test; `None` for other tests.
fn live<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    request: Option<&TestRequest>,
) -> Option<LiveRequest> {
    let is_live = b.setting(d, &spec::LIVE);
    let is_unsafe = b.setting(d, &spec::LIVE_UNSAFE);
    let http2 = b.setting(d, &spec::HTTP2);
    let upload_bytes = b.setting(d, &spec::UPLOAD);
    if !is_live.value
        && let Some(place) = is_unsafe.place().or(http2.place()).or(upload_bytes.place())
    {
        let message = "the test is not sent";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("write `live #true` into the test"));
    }
    if let (true, Some(request)) = (is_live.value, request) {
        check_method(d, request, &is_unsafe);
    }
    is_live.value.then_some(LiveRequest {
        http2: http2.value,
        upload_bytes: upload_bytes.value,
    })
}

/// Reports a method that may change data without `live-unsafe`, and `live-unsafe` with another
/// method. Relayed connections are reported separately.
fn check_method(d: &mut Decoder<'_, '_>, request: &TestRequest, is_unsafe: &Setting<bool>) {
    let method = &request.method;
    let (place, message, help) = match (request.has_safe_method(), is_unsafe.value) {
        (true, true) => (
            is_unsafe.place().unwrap_or(request.place),
            format!("`live-unsafe` is for methods that may change data, and `{method}` does not"),
            "leave `live-unsafe` out",
        ),
        (false, false) if !request.is_relayed() => (
            request.place,
            format!("a live test by `{method}` may change data: every node of a rollout sends it"),
            "write `live-unsafe #true` next to `live #true` if it may be repeated, or test with `GET`",
        ),
        _ => return,
    };
    let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
    d.push(fault.help(help));
}

fn request<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<TestRequest> {
    let line = line(d, b);
    let headers = b.take(spec::HEADER.path);
    let headers = headers
        .iter()
        .filter_map(|field| two_texts(d, field, &spec::HEADER.kind));
    let headers = headers.map(|pair| (pair.first, pair.second)).collect();
    let claims = pairs(d, b, &spec::CLAIM).into_iter();
    let claims = claims.map(|pair| (pair.first, pair.second)).collect();
    let listener = b.optional(d, &spec::LISTENER);
    let client_ip = b.optional(d, &spec::CLIENT_IP);
    if let Some(listener) = &listener {
        d.resolve_name(Among::Listeners, listener);
    }
    let TextPair {
        first: method,
        second: url,
        place,
    } = line?;
    Some(TestRequest {
        place,
        method,
        url,
        headers,
        listener: listener.map(|name| name.value),
        client_ip: client_ip.map(|address| address.value),
        claims,
    })
}

/// The method and the URL.
fn line<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<TextPair> {
    let fields = b.take(spec::REQUEST.path);
    if fields.is_empty() && !b.is_misread(spec::REQUEST.path) {
        b.missing(d, spec::REQUEST.name());
    }
    let field = b.once(d, &fields)?;
    two_texts(d, &field, &spec::REQUEST.kind)
}

/// `name "A" "B"`, with exactly two arguments.
fn two_texts<'t>(d: &mut Decoder<'t, '_>, field: &Field<'t>, kind: &Pair) -> Option<TextPair> {
    let place = field.place(d);
    let values = field.values(d)?;
    if let [(Value::Text(first), _), (Value::Text(second), _)] = values.as_slice() {
        return Some(TextPair {
            first: first.to_string(),
            second: second.to_string(),
            place,
        });
    }
    let message = format!("`{}` takes two texts", field.name());
    let fault = Diagnostic::new(DiagnosticCode::MissingValue, place, message);
    let example = kind.example();
    d.push(fault.help(format!("write `{} {example}`", field.name())));
    None
}

fn expectations<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Vec<Setting<Expectation>>> {
    let Some(b) = b.inner(d, &spec::EXPECT) else {
        if !b.is_misread(spec::EXPECT.path) {
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
    let redirect = b.optional(d, &spec::EXPECT_REDIRECT);
    let upstream_path = b.optional(d, &spec::EXPECT_UPSTREAM_PATH);
    let reason = b.optional(d, &spec::EXPECT_REASON);
    let listener = named(d, &b, &spec::EXPECT_LISTENER, Among::Listeners);
    let certificate = b.optional(d, &spec::EXPECT_CERTIFICATE);
    let certificate = certificate.map(|one| one.map(|name| name.to_ascii_lowercase()));
    let days = b.optional(d, &spec::EXPECT_CERTIFICATE_DAYS);
    let further = further_expectations(d, &b);
    let expectations = [
        route.map(|one| one.map(Expectation::Route)),
        upstream.map(|one| one.map(Expectation::Upstream)),
        builtin.map(|one| one.map(Expectation::Builtin)),
        agents(d, &b),
        status.map(|one| one.map(Expectation::Status)),
        upstream_path.map(|one| one.map(Expectation::UpstreamPath)),
        redirect.map(|one| one.map(Expectation::Redirect)),
        reason.map(|one| one.map(Expectation::Reason)),
        listener.map(|one| one.map(Expectation::Listener)),
        certificate.map(|one| one.map(Expectation::Certificate)),
        days.map(|one| one.map(Expectation::CertificateDays)),
        targets(d, &b),
    ];
    b.close(d);
    Some(expectations.into_iter().flatten().chain(further).collect())
}

/// Expectations on the response to a live test, in the order of their kinds.
fn answer_expectations<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Setting<Expectation>> {
    let status = b.optional(d, &spec::EXPECT_ANSWER_STATUS);
    let contains = b.optional(d, &spec::EXPECT_ANSWER_CONTAINS);
    let first_byte = b.optional(d, &spec::EXPECT_FIRST_BYTE);
    let total = b.optional(d, &spec::EXPECT_TOTAL);
    let single = [
        status.map(|one| one.map(Expectation::AnswerStatus)),
        contains.map(|one| one.map(Expectation::AnswerContains)),
        first_byte.map(|one| one.map(Expectation::FirstByte)),
        total.map(|one| one.map(Expectation::Total)),
    ];
    let mut all: Vec<Setting<Expectation>> = single.into_iter().flatten().collect();
    all.extend(fields(
        d,
        b,
        &spec::EXPECT_ANSWER_HEADER,
        Expectation::AnswerHeader,
    ));
    all.extend(names(
        d,
        b,
        &spec::EXPECT_NO_ANSWER_HEADER,
        Expectation::NoAnswerHeader,
    ));
    all
}

/// Settings and headers, in the order of their kinds.
fn further_expectations<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Setting<Expectation>> {
    let settings = pairs(d, b, &spec::EXPECT_SETTING).into_iter();
    let settings = settings.map(|pair| {
        let (name, value) = (pair.first, pair.second);
        Setting::at(Expectation::Setting { name, value }, pair.place)
    });
    let mut all: Vec<Setting<Expectation>> = settings.collect();
    all.extend(fields(
        d,
        b,
        &spec::EXPECT_REQUEST_HEADER,
        Expectation::RequestHeader,
    ));
    all.extend(names(
        d,
        b,
        &spec::EXPECT_NO_REQUEST_HEADER,
        Expectation::NoRequestHeader,
    ));
    all.extend(fields(
        d,
        b,
        &spec::EXPECT_RESPONSE_HEADER,
        Expectation::ResponseHeader,
    ));
    all.extend(names(
        d,
        b,
        &spec::EXPECT_NO_RESPONSE_HEADER,
        Expectation::NoResponseHeader,
    ));
    all.extend(answer_expectations(d, b));
    all
}

fn pairs<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<Pair, Repeatable>,
) -> Vec<TextPair> {
    let written = b.take(spec.path);
    let pairs = written
        .iter()
        .filter_map(|field| two_texts(d, field, &spec.kind));
    pairs.collect()
}

fn fields<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<Pair, Repeatable>,
    make: fn(HeaderName, HeaderValue) -> Expectation,
) -> Vec<Setting<Expectation>> {
    let pairs = pairs(d, b, spec).into_iter();
    let fields = pairs.filter_map(|pair| {
        let TextPair {
            first: name,
            second: value,
            place,
        } = pair;
        let field = HeaderName::from_bytes(name.as_bytes()).ok();
        let field = field.zip(HeaderValue::from_str(&value).ok());
        if field.is_none() {
            let message = format!("`{name}: {value}` is not a header");
            d.push(Diagnostic::new(DiagnosticCode::BadValue, place, message));
        }
        field.map(|(name, value)| Setting::at(make(name, value), place))
    });
    fields.collect()
}

fn names<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<Text<String>, Repeatable>,
    make: fn(HeaderName) -> Expectation,
) -> Vec<Setting<Expectation>> {
    let written = b.list(d, spec).into_iter();
    let names = written.filter_map(|name| {
        let place = name.place().unwrap_or_default();
        let Ok(field) = HeaderName::from_bytes(name.value.as_bytes()) else {
            let message = format!("`{}` is not a header name", name.value);
            d.push(Diagnostic::new(DiagnosticCode::BadValue, place, message));
            return None;
        };
        Some(Setting::at(make(field), place))
    });
    names.collect()
}

fn targets<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Setting<Expectation>> {
    let addresses = b.list(d, &spec::EXPECT_TARGETS);
    let place = addresses.first()?.place()?;
    let addresses = addresses.into_iter().map(|address| address.value);
    Some(Setting::at(
        Expectation::Targets(addresses.collect()),
        place,
    ))
}

pub(super) fn prohibition<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Prohibition> {
    let name = b.name(d);
    let listener = b.optional(d, &spec::NEVER_LISTENER);
    if let Some(listener) = &listener {
        d.resolve_name(Among::Listeners, listener);
    }
    let hosts = b.list(d, &spec::NEVER_HOST);
    let mut paths = b.list(d, &spec::NEVER_PATH);
    paths.extend(b.list(d, &spec::NEVER_PATH_PREFIX));
    let upstream = b.required(d, &spec::NEVER_UPSTREAM);
    if let Some(upstream) = &upstream {
        d.resolve_name(Among::Upstreams, upstream);
    }
    let without_agent = named(d, b, &spec::NEVER_WITHOUT_AGENT, Among::Agents);
    Some(Prohibition {
        name: name?.value,
        place: b.place(d),
        listener: listener.map(|name| name.value),
        hosts,
        paths,
        upstream: upstream?.value,
        without_agent: without_agent.map(|name| name.value),
    })
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

//! The `jwt` block of a route.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::decode::field::{Field, TextPair};
use crate::decode::headers::{Edit, protected_in_requests};
use crate::decode::references::Among;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Value;
use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE};
use proxy_auth::{JwtAlgorithm, JwtKeys, KeyError};
use proxy_model::registry::policies::jwt as spec;
use proxy_model::registry::{Pair, Spec};
use proxy_model::{
    ClaimHeader, JwtAuth, JwtKeyFile, JwtKeySource, Model, RemoteKeySet, RequiredClaim, Setting,
    TokenCarrier, UpstreamIndex,
};
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum size of a file of keys, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

pub(super) fn jwt<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<JwtAuth> {
    let b = b.inner(d, &spec::JWT)?;
    let place = b.place(d);
    let issuer = b.required(d, &spec::JWT_ISSUER);
    let audiences = b.list(d, &spec::JWT_AUDIENCE);
    if audiences.is_empty() && !b.is_misread(spec::JWT_AUDIENCE.path) {
        let message = "`jwt` names no audience";
        let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
        d.push(fault.help(
            "write `audience \"…\"`: the `aud` that the issuer puts into tokens for this service",
        ));
    }
    let keys = keys(d, &b);
    let claim_headers = claim_headers(d, &b);
    let required_claims = required_claims(d, &b);
    let required_scopes = b.list(d, &spec::JWT_REQUIRE_SCOPE);
    let clock_skew = b.setting(d, &spec::JWT_CLOCK_SKEW);
    let max_token_bytes = b.setting(d, &spec::JWT_MAX_TOKEN);
    let forward_token = b.setting(d, &spec::JWT_FORWARD);
    let realm = b.setting(d, &spec::JWT_REALM);
    let algorithms = b.list(d, &spec::JWT_ALGORITHMS);
    if let Some(keys) = &keys {
        for algorithm in &algorithms {
            check_algorithm(d, keys, algorithm);
        }
        if algorithms.is_empty() {
            check_secret(d, keys);
        }
    }
    let carrier = carrier(d, &b);
    b.close(d);
    Some(JwtAuth {
        place,
        issuer: issuer.unwrap_or_else(|| Setting::defaulted(String::new())),
        audiences,
        keys: keys?,
        algorithms,
        carrier,
        claim_headers,
        required_claims,
        required_scopes,
        clock_skew,
        max_token_bytes,
        forward_token,
        realm,
    })
}

/// Exactly one origin of keys.
fn keys<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<JwtKeySource> {
    let rows = [
        spec::JWKS_FILE.path,
        spec::HMAC_FILE.path,
        spec::JWKS_URL.path,
        spec::JWKS_UPSTREAM.path,
    ];
    let is_meant = rows.iter().any(|path| b.has(path) || b.is_misread(path));
    let file = b.optional(d, &spec::JWKS_FILE);
    let secret = b.optional(d, &spec::HMAC_FILE);
    let remote = remote(d, b);
    let url = remote.as_ref().and_then(|remote| remote.url.place());
    let places = [
        file.as_ref().and_then(Setting::place),
        secret.as_ref().and_then(Setting::place),
        url,
    ];
    let mut places = places.into_iter().flatten();
    if let (Some(first), Some(second)) = (places.next(), places.next()) {
        let message = "keys have one source: `jwks-file`, `jwks-url` or `hmac-file`";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, second, message);
        d.push(fault.related(first, "keys are here already"));
        return None;
    }
    if let Some(file) = file {
        return read(d, &file, JwtKeys::from_jwks).map(JwtKeySource::File);
    }
    if let Some(file) = secret {
        let keys = |bytes: &[u8]| {
            let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            JwtKeys::from_secret(bytes.strip_suffix(b"\r").unwrap_or(bytes))
        };
        return read(d, &file, keys).map(JwtKeySource::Secret);
    }
    if !is_meant {
        let message = "`jwt` has no keys";
        let fault = Diagnostic::new(DiagnosticCode::MissingSetting, b.place(d), message);
        d.push(fault.help(
            "write `jwks-url \"https://…\"` with `jwks-upstream`, `jwks-file`, or `hmac-file`",
        ));
    }
    remote.map(JwtKeySource::Remote)
}

/// The keys in a file. Its text is not shown: it may be a secret.
fn read(
    d: &mut Decoder<'_, '_>,
    written: &Setting<PathBuf>,
    parse: impl FnOnce(&[u8]) -> Result<JwtKeys, KeyError>,
) -> Option<Setting<JwtKeyFile>> {
    let place = written.place()?;
    let path = d.resolve(place, &written.value.to_string_lossy());
    let bytes = match d.read_present_file(&path, MAX_FILE_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("`{}` cannot be read: {error}", path.display());
            d.fault(DiagnosticCode::MissingFile, place, message);
            return None;
        }
    };
    // A missing file has no keys: such a configuration is never served.
    let parsed = bytes.map_or(Ok(JwtKeys::empty()), |bytes| parse(&bytes));
    match parsed {
        Ok(keys) => {
            let keys = Arc::new(keys);
            Some(Setting::at(JwtKeyFile { path, keys }, place))
        }
        Err(error) => {
            let message = format!("`{}` has no keys that verify tokens", path.display());
            let fault = Diagnostic::new(DiagnosticCode::BadValue, place, message);
            d.push(fault.label(error.to_string()));
            None
        }
    }
}

fn remote<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<RemoteKeySet> {
    let is_meant = |path: &str| b.has(path) || b.is_misread(path);
    let has_url = is_meant(spec::JWKS_URL.path);
    let has_upstream = is_meant(spec::JWKS_UPSTREAM.path);
    let url = b.optional(d, &spec::JWKS_URL);
    let upstream = d.reference(b, &spec::JWKS_UPSTREAM, Among::Upstreams);
    let min_interval = b.setting(d, &spec::JWKS_MIN_INTERVAL);
    let max_interval = b.setting(d, &spec::JWKS_MAX_INTERVAL);
    let max_age = b.setting(d, &spec::JWKS_MAX_AGE);
    if !has_url {
        let places = [
            upstream.as_ref().and_then(Setting::place),
            min_interval.place(),
            max_interval.place(),
            max_age.place(),
        ];
        if let Some(place) = places.into_iter().flatten().next() {
            let message = "this requires `jwks-url`";
            d.fault(DiagnosticCode::Conflict, place, message);
        }
        return None;
    }
    let url = url?;
    if !has_upstream {
        let place = url.place().unwrap_or_default();
        let message = "`jwks-url` needs the upstream that it is fetched from";
        let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
        d.push(fault.help(
            "write `jwks-upstream \"id\"`, and an upstream with the host as its target and with `tls`",
        ));
    }
    if *max_interval < *min_interval || *max_age < *max_interval {
        let places = [max_interval.place(), max_age.place(), min_interval.place()];
        let place = places.into_iter().flatten().next();
        let message = "`jwks-min-interval-secs`, `jwks-max-interval-secs` and `jwks-max-age-secs` must not decrease";
        let place = place.or(url.place()).unwrap_or_default();
        d.fault(DiagnosticCode::Conflict, place, message);
    }
    let upstream = upstream?;
    Some(RemoteKeySet {
        url,
        upstream: Setting {
            value: UpstreamIndex(upstream.value),
            origin: upstream.origin,
        },
        min_interval,
        max_interval,
        max_age,
    })
}

/// Reports algorithms that no key of the route has.
fn check_algorithm(
    d: &mut Decoder<'_, '_>,
    keys: &JwtKeySource,
    algorithm: &Setting<JwtAlgorithm>,
) {
    let Some(place) = algorithm.place() else {
        return;
    };
    let (is_known, keys) = match keys {
        JwtKeySource::Remote(_) => (!algorithm.is_symmetric(), "a key set has public keys alone"),
        JwtKeySource::File(file) | JwtKeySource::Secret(file) if file.keys.is_empty() => return,
        JwtKeySource::File(file) => {
            let keys = "no key in the file is used with it";
            (file.keys.allows(algorithm.value), keys)
        }
        JwtKeySource::Secret(file) => {
            let keys = "the secret is too short for it, or it takes public keys";
            (file.keys.allows(algorithm.value), keys)
        }
    };
    if !is_known {
        let message = format!("`{}` verifies no token of this route", algorithm.value);
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.label(keys));
    }
}

/// Reports a secret that does not verify every HMAC algorithm, where none is chosen.
fn check_secret(d: &mut Decoder<'_, '_>, keys: &JwtKeySource) {
    let JwtKeySource::Secret(file) = keys else {
        return;
    };
    let all = JwtAlgorithm::ALL.iter().copied();
    let (fitting, refused): (Vec<JwtAlgorithm>, Vec<JwtAlgorithm>) = all
        .filter(|it| it.is_symmetric())
        .partition(|it| file.keys.allows(*it));
    let Some(place) = file.place().filter(|_| !file.keys.is_empty()) else {
        return;
    };
    if refused.is_empty() {
        return;
    }
    let names = |all: &[JwtAlgorithm], before: &str| {
        let names = all.iter().map(|it| format!("{before}{it}{before}"));
        names.collect::<Vec<_>>()
    };
    let message = format!(
        "the secret is too short for {}: such tokens are answered 401",
        names(&refused, "`").join(" and ")
    );
    let fault = Diagnostic::new(DiagnosticCode::ShortSecret, place, message);
    d.push(fault.help(format!(
        "write `algorithms {}`, or take a secret of 64 bytes",
        names(&fitting, "\"").join(" ")
    )));
}

fn carrier<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> TokenCarrier {
    let header = b.optional(d, &spec::JWT_HEADER);
    let cookie = b.optional(d, &spec::JWT_COOKIE);
    let header_place = header.as_ref().and_then(Setting::place);
    if let Some((header, cookie)) = header_place.zip(cookie.as_ref().and_then(Setting::place)) {
        let message = "the token is in a header or in a cookie";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, header.max(cookie), message);
        d.push(fault.related(header.min(cookie), "named here already"));
    }
    if let (Some(header), Some(place)) = (&header, header_place) {
        let is_protected = **header != AUTHORIZATION
            && (**header == COOKIE || protected_in_requests(header, Edit::Remove).is_some());
        if is_protected {
            let message = format!("`{}` has no token", header.value);
            d.fault(DiagnosticCode::ProtectedHeader, place, message);
        }
    }
    match (cookie, header) {
        (Some(cookie), _) => TokenCarrier::Cookie(cookie),
        (None, Some(header)) => TokenCarrier::Header(header),
        (None, None) => TokenCarrier::Header(Setting::defaulted(AUTHORIZATION)),
    }
}

fn claim_headers<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Setting<ClaimHeader>> {
    let mut headers: Vec<Setting<ClaimHeader>> = Vec::new();
    for pair in pairs(d, b, &spec::JWT_CLAIM_HEADER) {
        let TextPair {
            first: name,
            second: claim,
            place,
        } = pair;
        let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
            let message = format!("`{name}` is not a header name");
            d.fault(DiagnosticCode::BadValue, place, message);
            continue;
        };
        if let Some(why) = protected_in_requests(&header, Edit::Add) {
            let message = format!("`{header}` is not for claims");
            let fault = Diagnostic::new(DiagnosticCode::ProtectedHeader, place, message);
            d.push(fault.label(why));
            continue;
        }
        if let Some(earlier) = headers.iter().find(|one| one.header == header) {
            let message = format!("`{header}` has a claim already");
            let fault = Diagnostic::new(DiagnosticCode::RepeatedValue, place, message);
            let first = earlier.place().unwrap_or(place);
            d.push(fault.label("again here").related(first, "first here"));
            continue;
        }
        headers.push(Setting::at(ClaimHeader { header, claim }, place));
    }
    headers
}

fn required_claims<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Setting<RequiredClaim>> {
    let pairs = pairs(d, b, &spec::JWT_REQUIRE_CLAIM).into_iter();
    let claims = pairs.map(|pair| {
        let (claim, value) = (pair.first, pair.second);
        Setting::at(RequiredClaim { claim, value }, pair.place)
    });
    claims.collect()
}

/// All `name "A" "B"` with exactly two arguments and a non-empty first one.
fn pairs<'t, D>(d: &mut Decoder<'t, '_>, b: &Block<'t>, spec: &Spec<Pair, D>) -> Vec<TextPair> {
    let fields = b.take(spec.path);
    let pairs = fields
        .iter()
        .filter_map(|field| two_texts(d, field, &spec.kind));
    pairs.collect()
}

fn two_texts<'t>(d: &mut Decoder<'t, '_>, field: &Field<'t>, kind: &Pair) -> Option<TextPair> {
    let values = field.values(d)?;
    if let [(Value::Text(first), place), (Value::Text(second), _)] = values.as_slice()
        && !first.is_empty()
        && !second.is_empty()
    {
        return Some(TextPair {
            first: first.to_string(),
            second: second.to_string(),
            place: *place,
        });
    }
    let message = format!("`{}` takes two texts", field.name());
    let fault = Diagnostic::new(DiagnosticCode::MissingValue, field.place(d), message);
    d.push(fault.help(format!("write `{} {}`", field.name(), kind.example())));
    None
}

/// Reports key sets with another scheme than their upstream.
pub(in crate::decode) fn check_upstreams(d: &mut Decoder<'_, '_>, model: &Model) {
    for route in &model.routes {
        let Some(JwtKeySource::Remote(remote)) = route.policies.jwt.as_ref().map(|jwt| &jwt.keys)
        else {
            continue;
        };
        let RemoteKeySet { url, upstream, .. } = remote;
        let (Some(place), Some(upstream)) = (url.place(), model.upstream(upstream.value)) else {
            continue;
        };
        if url.is_tls != upstream.tls.is_some() {
            let (message, label) = if url.is_tls {
                let message = "keys by `https` need an upstream with `tls`";
                (message, "this one has no `tls`")
            } else {
                let message = "keys by `http` need an upstream without `tls`";
                (message, "this one has `tls`")
            };
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            d.push(fault.related(upstream.place, label));
        }
    }
}

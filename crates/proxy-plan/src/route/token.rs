//! Tokens required by a route.

use crate::targets::{KeySetPlan, TargetTransaction};
use http::header::{AUTHORIZATION, COOKIE, HeaderValue};
use http::{HeaderMap, HeaderName};
use proxy_auth::{JwtKeys, TokenClaims, TokenRules};
use proxy_errors::{Detail, Problem, Reason};
use proxy_model::{
    ClaimHeader, JwtAuth, JwtKeySource, RequiredClaim, Setting, TokenCarrier, Upstream,
};
use std::sync::Arc;

const SCHEME: &[u8] = b"bearer ";

/// The tokens that a route accepts.
#[derive(Debug)]
pub struct TokenPlan {
    /// The rules of tokens.
    pub rules: TokenRules,
    /// The keys that verify them.
    pub keys: TokenKeys,
    /// Names of the fields with claims.
    pub claim_names: Vec<HeaderName>,
    /// True if the upstream gets the token.
    pub forward_token: bool,
    carrier: Carrier,
    claim_headers: Vec<ClaimHeader>,
    required_claims: Vec<RequiredClaim>,
    required_scopes: Vec<String>,
    challenges: Challenges,
}

/// The keys that verify a route's tokens.
#[derive(Debug)]
pub enum TokenKeys {
    /// Keys of a file.
    Fixed(Arc<JwtKeys>),
    /// Keys of the issuer.
    Remote(KeySetPlan),
    /// No keys: the model has no upstream for them.
    Absent,
}

#[derive(Debug)]
enum Carrier {
    /// `Authorization`, with the scheme `Bearer`.
    Authorization,
    /// Another field, with or without the scheme.
    Header(HeaderName),
    Cookie(String),
}

/// `WWW-Authenticate` by class of refusal. [RFC 6750 §3]
#[derive(Debug)]
struct Challenges {
    missing: HeaderValue,
    invalid: HeaderValue,
    insufficient: HeaderValue,
}

impl TokenPlan {
    pub(super) fn compile(
        auth: &JwtAuth,
        upstreams: &[Upstream],
        transaction: &mut TargetTransaction,
    ) -> Self {
        let JwtAuth {
            place: _,
            issuer,
            audiences,
            keys,
            algorithms,
            carrier,
            claim_headers,
            required_claims,
            required_scopes,
            clock_skew,
            max_token_bytes,
            forward_token,
            realm,
        } = auth;
        let keys = match keys {
            JwtKeySource::File(file) | JwtKeySource::Secret(file) => {
                TokenKeys::Fixed(Arc::clone(&file.keys))
            }
            JwtKeySource::Remote(remote) => match transaction.key_set(remote, upstreams) {
                Some(set) => TokenKeys::Remote(set),
                None => TokenKeys::Absent,
            },
        };
        let claim_headers = values(claim_headers);
        let required_scopes = values(required_scopes);
        Self {
            rules: TokenRules {
                issuer: issuer.value.clone(),
                audiences: values(audiences),
                algorithms: values(algorithms),
                clock_skew_secs: i64::try_from(clock_skew.as_secs()).unwrap_or(i64::MAX),
                max_bytes: usize::try_from(**max_token_bytes).unwrap_or(usize::MAX),
            },
            keys,
            claim_names: claim_headers.iter().map(|one| one.header.clone()).collect(),
            forward_token: **forward_token,
            carrier: match carrier {
                TokenCarrier::Header(name) if **name == AUTHORIZATION => Carrier::Authorization,
                TokenCarrier::Header(name) => Carrier::Header(name.value.clone()),
                TokenCarrier::Cookie(name) => Carrier::Cookie(name.value.clone()),
            },
            claim_headers,
            required_claims: values(required_claims),
            challenges: Challenges::new(realm, &required_scopes),
            required_scopes,
        }
    }

    /// The value of `WWW-Authenticate` for a request that is refused for `reason`.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most reasons have no challenge"
    )]
    pub(super) fn challenge(&self, reason: Reason) -> Option<&HeaderValue> {
        match reason {
            Reason::CredentialsMissing => Some(&self.challenges.missing),
            Reason::CredentialsInvalid => Some(&self.challenges.invalid),
            Reason::TokenClaimMissing => Some(&self.challenges.insufficient),
            _ => None,
        }
    }

    /// Returns true if the request has no token, not even a malformed one.
    pub(super) fn is_missing(&self, headers: &HeaderMap) -> bool {
        match &self.carrier {
            Carrier::Authorization => !headers.contains_key(AUTHORIZATION),
            Carrier::Header(name) => !headers.contains_key(name),
            Carrier::Cookie(name) => cookies(headers, name).next().is_none(),
        }
    }

    /// The token in `headers`; `None` unless there is exactly one.
    #[must_use]
    pub fn token<'h>(&self, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        let name = match &self.carrier {
            Carrier::Authorization => &AUTHORIZATION,
            Carrier::Header(name) => name,
            Carrier::Cookie(name) => {
                let mut cookies = cookies(headers, name);
                let token = cookies.next()?;
                return cookies.next().is_none().then_some(token);
            }
        };
        let mut fields = headers.get_all(name).iter();
        let field = fields.next()?.as_bytes();
        if fields.next().is_some() {
            return None;
        }
        let has_scheme = field
            .get(..SCHEME.len())
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
        match (has_scheme, &self.carrier) {
            (true, _) => field.get(SCHEME.len()..).map(<[u8]>::trim_ascii),
            (false, Carrier::Header(_)) => Some(field),
            (false, Carrier::Authorization | Carrier::Cookie(_)) => None,
        }
    }

    /// Fields with a token of this text, for a request that has claims and no token.
    pub(crate) fn carried(&self, token: &str) -> (String, String) {
        match &self.carrier {
            Carrier::Authorization => (AUTHORIZATION.to_string(), format!("Bearer {token}")),
            Carrier::Header(name) => (name.to_string(), token.to_owned()),
            Carrier::Cookie(name) => (COOKIE.to_string(), format!("{name}={token}")),
        }
    }

    /// Checks required claims and scopes.
    ///
    /// # Errors
    /// 403, for the first that the token does not have.
    pub fn authorize(&self, claims: &TokenClaims) -> Result<(), Problem> {
        let denied = |detail: String| {
            Err(Problem::new(
                Reason::TokenClaimMissing,
                Detail::text(detail),
            ))
        };
        for RequiredClaim { claim, value } in &self.required_claims {
            if !claims.has(claim, value) {
                return denied(format!("the claim {claim:?} is not {value:?}"));
            }
        }
        let scopes = self.required_scopes.iter();
        match scopes.into_iter().find(|scope| !claims.has_scope(scope)) {
            Some(scope) => denied(format!("the scope {scope:?} is missing")),
            None => Ok(()),
        }
    }

    /// Fields for the upstream with the claims that the token has.
    ///
    /// # Errors
    /// 403, for a claim that no field can carry.
    pub fn claim_fields(
        &self,
        claims: &TokenClaims,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Problem> {
        let mut fields = Vec::new();
        for ClaimHeader { header, claim } in &self.claim_headers {
            let value = claims.field_value(claim);
            let value = value.ok().map(|value| {
                let value = value.map(|text| HeaderValue::from_bytes(text.as_bytes()));
                value.transpose()
            });
            match value {
                Some(Ok(Some(value))) => fields.push((header.clone(), value)),
                Some(Ok(None)) => {}
                Some(Err(_)) | None => {
                    let detail = format!("no header field can carry the claim {claim:?}");
                    let detail = Detail::text(detail);
                    return Err(Problem::new(Reason::TokenClaimMissing, detail));
                }
            }
        }
        Ok(fields)
    }

    /// The field with the token, unless it is a cookie.
    #[must_use]
    pub fn token_field(&self) -> Option<&HeaderName> {
        match &self.carrier {
            Carrier::Authorization => Some(&AUTHORIZATION),
            Carrier::Header(name) => Some(name),
            Carrier::Cookie(_) => None,
        }
    }

    /// Removes the token.
    pub fn remove_token(&self, headers: &mut HeaderMap) {
        match &self.carrier {
            Carrier::Authorization => {
                headers.remove(AUTHORIZATION);
            }
            Carrier::Header(name) => {
                headers.remove(name);
            }
            Carrier::Cookie(name) => remove_cookie(headers, name),
        }
    }
}

impl TokenKeys {
    /// The current keys; `None` before the first fetch, and after the last keys have become too
    /// old.
    #[must_use]
    pub fn current(&self) -> Option<Arc<JwtKeys>> {
        match self {
            Self::Fixed(keys) => Some(Arc::clone(keys)),
            Self::Remote(set) => set.state.current(),
            Self::Absent => None,
        }
    }

    /// Requests newer keys, where there can be any.
    pub fn request(&self) {
        match self {
            Self::Fixed(_) | Self::Absent => {}
            Self::Remote(set) => set.state.request(),
        }
    }
}

impl Challenges {
    fn new(realm: &str, scopes: &[String]) -> Self {
        let value = |rest: &str| {
            let text = format!("Bearer realm=\"{realm}\"{rest}");
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("Bearer"))
        };
        let scope = match scopes {
            [] => String::new(),
            scopes => format!(", scope=\"{}\"", scopes.join(" ")),
        };
        Self {
            missing: value(""),
            invalid: value(", error=\"invalid_token\""),
            insufficient: value(&format!(", error=\"insufficient_scope\"{scope}")),
        }
    }
}

fn values<T: Clone>(settings: &[Setting<T>]) -> Vec<T> {
    settings.iter().map(|one| one.value.clone()).collect()
}

/// Values of the cookies called `name`.
fn cookies<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h [u8]> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| value_of(pair, name))
}

/// The value of `pair` if it is the cookie called `name`.
fn value_of<'h>(pair: &'h [u8], name: &str) -> Option<&'h [u8]> {
    let pair = pair.trim_ascii();
    let value = pair.strip_prefix(name.as_bytes())?.trim_ascii_start();
    let value = value.strip_prefix(b"=")?.trim_ascii();
    let unquoted = value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""));
    Some(unquoted.unwrap_or(value))
}

fn remove_cookie(headers: &mut HeaderMap, name: &str) {
    let lines: Vec<HeaderValue> = headers.get_all(COOKIE).iter().cloned().collect();
    headers.remove(COOKIE);
    for line in lines {
        let pairs = line.as_bytes().split(|byte| *byte == b';');
        let kept: Vec<&[u8]> = pairs
            .filter(|pair| value_of(pair, name).is_none())
            .map(<[u8]>::trim_ascii)
            .filter(|pair| !pair.is_empty())
            .collect();
        if let Ok(line) = HeaderValue::from_bytes(&kept.join(&b"; "[..]))
            && !kept.is_empty()
        {
            headers.append(COOKIE, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_and_removed_among_others() {
        let mut headers = HeaderMap::new();
        for line in ["a=1; session=x.y.z; xsession=2", "session2=3;b=4"] {
            headers.append(COOKIE, HeaderValue::from_static(line));
        }
        let found: Vec<_> = cookies(&headers, "session").collect();
        assert_eq!(found, [b"x.y.z"]);

        remove_cookie(&mut headers, "session");

        let left: Vec<_> = headers.get_all(COOKIE).iter().collect();
        assert_eq!(left, ["a=1; xsession=2", "session2=3; b=4"]);
        headers.insert(COOKIE, HeaderValue::from_static("session=x"));
        remove_cookie(&mut headers, "session");
        assert!(headers.is_empty());
    }
}

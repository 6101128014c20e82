//! JSON Web Tokens that a route requires. [RFC 7519, RFC 6750]

use crate::address::check_authority;
use crate::index::UpstreamIndex;
use crate::place::{Place, Setting};
use http::HeaderName;
use http::uri::{Authority, PathAndQuery, Uri};
use proxy_auth::{JwtAlgorithm, JwtKeys};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The tokens that a route accepts.
#[derive(Clone, Debug)]
pub struct JwtAuth {
    /// Place of the block.
    pub place: Place,
    /// `iss` of the tokens.
    pub issuer: Setting<String>,
    /// Accepted audiences, at least one; a token must have one of them.
    pub audiences: Vec<Setting<String>>,
    /// The keys that verify signatures.
    pub keys: JwtKeySource,
    /// Allowed algorithms; empty for the algorithms of the keys.
    pub algorithms: Vec<Setting<JwtAlgorithm>>,
    /// The part of a request that has the token.
    pub carrier: TokenCarrier,
    /// Fields with claims, for the upstream.
    pub claim_headers: Vec<Setting<ClaimHeader>>,
    /// Claims that a token must have.
    pub required_claims: Vec<Setting<RequiredClaim>>,
    /// Scopes that a token must have.
    pub required_scopes: Vec<Setting<String>>,
    /// Maximum difference between the clocks of issuer and proxy.
    pub clock_skew: Setting<Duration>,
    /// Maximum size of a token, in bytes.
    pub max_token_bytes: Setting<u64>,
    /// True if the upstream gets the token.
    pub forward_token: Setting<bool>,
    /// The name in challenges.
    pub realm: Setting<String>,
}

/// The origin of the keys.
#[derive(Clone, Debug)]
pub enum JwtKeySource {
    /// A key set in a file.
    File(Setting<JwtKeyFile>),
    /// A secret in a file, for HMAC.
    Secret(Setting<JwtKeyFile>),
    /// A key set of the issuer, fetched from an upstream.
    Remote(RemoteKeySet),
}

/// A file of keys.
#[derive(Clone, Debug)]
pub struct JwtKeyFile {
    /// Path, absolute or relative to the file that names it.
    pub path: PathBuf,
    /// The file's keys at the time of loading.
    pub keys: Arc<JwtKeys>,
}

/// A key set that is fetched.
#[derive(Clone, Debug)]
pub struct RemoteKeySet {
    /// URL of the JSON Web Key Set.
    pub url: Setting<KeySetUrl>,
    /// The upstream with the targets of the fetches.
    pub upstream: Setting<UpstreamIndex>,
    /// Minimum time between two fetches.
    pub min_interval: Setting<Duration>,
    /// Maximum time between two fetches.
    pub max_interval: Setting<Duration>,
    /// Maximum time for which a set is used after its fetch.
    pub max_age: Setting<Duration>,
}

/// The URL of a key set: its host is the `Host` of requests; their address is the upstream's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySetUrl {
    /// True if the scheme is `https`.
    pub is_tls: bool,
    /// Host and port.
    pub authority: Authority,
    /// Path and query.
    pub path: PathAndQuery,
}

/// The part of a request that has the token.
#[derive(Clone, Debug)]
pub enum TokenCarrier {
    /// A field, with or without `Bearer`; `Authorization` only with it.
    Header(Setting<HeaderName>),
    /// Value of the cookie with this name.
    Cookie(Setting<String>),
}

/// A field with a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimHeader {
    /// The name of the field.
    pub header: HeaderName,
    /// The name of the claim.
    pub claim: String,
}

/// A claim that a token must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredClaim {
    /// The name of the claim.
    pub claim: String,
    /// Value of the claim, or an element of its list.
    pub value: String,
}

impl FromStr for KeySetUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri = text.parse::<Uri>().map_err(|error| error.to_string())?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("it begins with neither `https://` nor `http://`".to_owned()),
        };
        let authority = uri.authority().cloned().ok_or("it has no host")?;
        if authority.as_str().contains('@') {
            return Err("a credential does not belong in it".to_owned());
        }
        check_authority(authority.as_str()).map_err(|error| error.to_string())?;
        if text.contains('#') {
            return Err("a fragment (`#…`) is never sent".to_owned());
        }
        let path = uri.path_and_query().cloned();
        Ok(Self {
            is_tls,
            authority,
            path: path.unwrap_or(PathAndQuery::from_static("/")),
        })
    }
}

impl fmt::Display for KeySetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            is_tls,
            authority,
            path,
        } = self;
        let scheme = if *is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{authority}{path}")
    }
}

impl fmt::Display for ClaimHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.header, self.claim)
    }
}

impl fmt::Display for RequiredClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.claim, self.value)
    }
}

//! Credentials required by a route.

use super::token::TokenPlan;
use crate::targets::TargetTransaction;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use proxy_auth::{BasicCredentials, UserTable};
use proxy_errors::Reason;
use proxy_model::{BasicAuth, Policies, Upstream, UsersFile};
use std::sync::Arc;

/// Credentials required by a route.
#[derive(Debug)]
pub enum CredentialsPlan {
    /// A user and a password.
    Basic(BasicAuthPlan),
    /// JSON Web Token, by `jwt`.
    Token(Box<TokenPlan>),
}

impl CredentialsPlan {
    pub(super) fn compile(
        policies: &Policies,
        upstreams: &[Upstream],
        transaction: &mut TargetTransaction,
    ) -> Option<Self> {
        if let Some(jwt) = &policies.jwt {
            let token = TokenPlan::compile(jwt, upstreams, transaction);
            return Some(Self::Token(Box::new(token)));
        }
        let basic = policies.basic_auth.as_ref();
        basic.map(|auth| Self::Basic(BasicAuthPlan::compile(auth)))
    }

    /// The value of `WWW-Authenticate` for a request that is refused for `reason`.
    #[must_use]
    pub fn challenge(&self, reason: Reason) -> Option<&HeaderValue> {
        match self {
            Self::Basic(auth) => auth.challenge(reason),
            Self::Token(token) => token.challenge(reason),
        }
    }

    /// Returns true if the request has no credentials.
    pub(crate) fn are_missing(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::Basic(_) => !headers.contains_key(AUTHORIZATION),
            Self::Token(token) => token.is_missing(headers),
        }
    }
}

/// The users that may use a route.
#[derive(Debug)]
pub struct BasicAuthPlan {
    challenge: HeaderValue,
    /// The users with their hashes.
    pub users: Arc<UserTable>,
    /// True if the upstream gets the credentials.
    pub forward_credentials: bool,
}

impl BasicAuthPlan {
    fn compile(auth: &BasicAuth) -> Self {
        let BasicAuth {
            place: _,
            realm,
            users,
            users_files,
            attempts: _, // Read by the registry of limits.
            forward_credentials,
        } = auth;
        let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", realm.value);
        let in_files = users_files.iter().flat_map(|file| {
            let UsersFile { path: _, users } = &file.value;
            users
        });
        let written = users.iter().map(|user| &user.value);
        // Users in the configuration override users of the same name in files.
        let users = in_files.chain(written);
        let users = users.map(|user| (user.name.clone(), user.hash.clone()));
        Self {
            challenge: HeaderValue::try_from(challenge)
                .unwrap_or(HeaderValue::from_static("Basic realm=\"restricted\"")),
            users: Arc::new(UserTable::new(users)),
            forward_credentials: **forward_credentials,
        }
    }

    fn challenge(&self, reason: Reason) -> Option<&HeaderValue> {
        let is_ours = matches!(
            reason,
            Reason::CredentialsMissing | Reason::CredentialsInvalid
        );
        is_ours.then_some(&self.challenge)
    }

    /// The credentials in `headers`: exactly one well-formed field.
    #[must_use]
    pub fn credentials(&self, headers: &HeaderMap) -> Option<BasicCredentials> {
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        let first = fields.next()?;
        let is_one = fields.next().is_none();
        BasicCredentials::parse(first.as_bytes()).filter(|_| is_one)
    }
}

//! Context of a browser's request, as set by admission.

use crate::request::failure::Failure;
use crate::request::fields::{Fields, csrf_token};
use crate::request::note::Note;
use crate::request::theme::Theme;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use control_app::{Allowance, BodyPermit, Call};
use control_auth::Secret;
use control_domain::{Access, Actor, Role, Tenant};
use control_wire::OrgId;
use jiff::Timestamp;
use std::net::IpAddr;
use std::sync::Arc;

/// Context of a request, without its actor.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// Time of the request, used throughout.
    pub(crate) now: Timestamp,
    pub(crate) client_ip: Option<IpAddr>,
    /// Short name of the browser, from its `User-Agent`.
    pub(crate) browser: String,
    /// Host and port under which the browser reached this server.
    pub(crate) host: Option<String>,
    /// Identifier of the request in logs and the audit log.
    pub(crate) correlation_id: String,
    /// Path with its query.
    pub(crate) path: String,
    /// Page to return to: this one, or the one of the form.
    pub(crate) back: String,
    /// Whether the request only keeps a page live.
    pub(crate) is_live: bool,
    /// Secret of a browser that has signed in before.
    pub(crate) known_browser: Option<Secret>,
    /// Secret of a sign-in that waits for its second factor.
    pub(crate) pending: Option<Secret>,
    pub(crate) query: Fields,
    /// CSRF token for the forms of this page.
    pub(crate) csrf: String,
    /// Theme selected in this browser; `None` for the system's.
    pub(crate) theme: Option<Theme>,
    /// New secret of the session, after a proof of identity in the form.
    pub(crate) renewed: Option<Secret>,
    /// Rate limit that refused the request.
    pub(crate) refused_by: Option<Allowance>,
    /// Permit for a large form.
    pub(crate) permit: Option<Arc<BodyPermit>>,
    /// Outcome of the previous form.
    pub(crate) note: Option<Note>,
}

/// A request with its actor.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) call: Call,
    pub(crate) visit: Visit,
}

impl Visit {
    /// The visit, for commands without a session.
    pub(crate) fn stranger(&self) -> control_app::Visit {
        control_app::Visit {
            client_ip: self.client_ip,
            browser: self.browser.clone(),
            known_browser: self.known_browser.clone(),
            now: self.now,
            correlation_id: self.correlation_id.clone(),
        }
    }
}

impl Caller {
    /// The caller with the session's new secret: the page's forms get the CSRF token of that
    /// secret.
    pub(crate) fn renewed(mut self, session: &Secret) -> Self {
        self.visit.csrf = csrf_token(session.reveal());
        self
    }

    /// A call that changes a resource only if it has the version that the form's page showed. A form
    /// without a version changes nothing.
    pub(crate) fn versioned(&self, fields: &Fields) -> Call {
        let version = fields.get("version").parse::<i64>();
        Call {
            if_match: Some(version.into_iter().collect()),
            ..self.call.clone()
        }
    }

    /// Returns true if the actor has the permission `access` for `tenant`; controls without
    /// permission are omitted.
    pub(crate) fn may(&self, access: Access, tenant: Tenant) -> bool {
        self.call.actor.require(access, tenant).is_ok()
    }

    /// The actor's role in an organization; `None` for actors without roles.
    pub(crate) fn role(&self, org: OrgId) -> Option<Role> {
        match &self.call.actor {
            Actor::User { roles, .. } => roles.get(&org).copied(),
            Actor::System
            | Actor::SetUp { .. }
            | Actor::Invitee { .. }
            | Actor::ApiKey { .. }
            | Actor::Enrolment { .. }
            | Actor::Node { .. } => None,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let visit = parts.extensions.get::<Self>().cloned();
        visit.ok_or_else(Failure::unauthenticated)
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(Failure::unauthenticated)
    }
}

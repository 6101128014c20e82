//! Sign-in through an identity provider, by redirects of the browser.
//!
//! These routes are outside `/api/v1`, because users and identity providers store their URLs.

use crate::request::body::BodyLimit;
use crate::request::extract;
use crate::response::page::{FailurePage, PageLink};
use crate::response::problem::Problem;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use control_app::{
    App, Call, Error, NewSession, Presented, SsoBrowser, SsoIntent, SsoOutcome, SsoRequest, Visit,
    metric,
};
use control_auth::Secret;
use control_domain::Actor;
use control_http::{RateClass, SessionCookie, cookie, write_allowance};
use control_wire::OrgId;
use metrics::counter;
use std::sync::Arc;

/// Maximum size of a form with a SAML response of 512 KiB, as Base64 and URL-encoded.
const RESPONSE_BYTES: usize = 1024 * 1024;
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Routes `/sso/{org}` and those that identity providers send responses to.
pub(crate) fn router(app: &Arc<App>) -> Router {
    Router::new()
        .route("/sso/{org}", get(begin))
        .route("/sso/{org}/oidc/callback", get(oidc_callback))
        .route("/sso/{org}/saml/acs", post(saml_response))
        .route("/sso/{org}/saml/finish", get(saml_finish))
        .route("/sso/{org}/saml/metadata", get(saml_metadata))
        .route_layer(from_fn_with_state(Arc::clone(app), limit))
        .with_state(Arc::clone(app))
}

/// Charges the rate limit of the client's address first.
async fn limit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let class = RateClass::General;
    let address = class.address(request.extensions());
    let taken = address.take(&app, app.now()).await;
    let allowance = match taken {
        Ok(allowance) => allowance,
        Err(error) => return Problem::from(error).into_response(),
    };
    let mut response = if allowance.admitted {
        next.run(request).await
    } else {
        counter!(metric::RATE_LIMITED, "class" => class.name()).increment(1);
        Problem::rate_limited(allowance.retry_after_secs).into_response()
    };
    write_allowance(&allowance, response.headers_mut());
    response
}

/// A browser during single sign-on: its cookies and its session.
struct Browser {
    visit: Visit,
    cookie: SessionCookie,
    attempt: Option<Secret>,
    actor: Option<Actor>,
}

impl Browser {
    async fn read(app: &App, parts: &Parts) -> Result<Self, Error> {
        let headers = &parts.headers;
        let visit = extract::visit_with(app.now(), headers, &parts.extensions);
        let scheme = parts.extensions.get::<SessionCookie>().copied();
        let scheme = scheme.unwrap_or_default();
        let attempt = cookie(headers, scheme.attempt_name());
        let session = cookie(headers, scheme.name()).filter(|secret| !secret.is_empty());
        let actor = match session {
            Some(secret) => {
                let presented = Presented::Session(secret);
                match app
                    .authenticate(presented, visit.client_ip, visit.now)
                    .await
                {
                    Ok(actor) => Some(actor),
                    Err(Error::Unauthenticated) => None,
                    Err(error) => return Err(error),
                }
            }
            None => None,
        };
        Ok(Self {
            attempt: attempt
                .filter(|secret| !secret.is_empty())
                .map(Secret::presented),
            actor,
            cookie: scheme,
            visit,
        })
    }

    fn returning(&self) -> SsoBrowser<'_> {
        SsoBrowser {
            browser: self.attempt.as_ref(),
            actor: self.actor.as_ref(),
        }
    }

    /// Redirect to the end of the sign-in: sets the session cookie if there is a session, and
    /// deletes the attempt's cookie.
    fn leave(&self, outcome: &SsoOutcome) -> Response {
        let mut response = see_other(&outcome.return_to);
        let started = outcome.session.iter();
        let mut fields: Vec<HeaderValue> =
            started.flat_map(|new| self.cookie.set_all(new)).collect();
        let notice = outcome.session.as_ref().and_then(NewSession::notice);
        fields.extend(notice.and_then(|notice| self.cookie.set_note(false, &notice)));
        fields.extend(self.cookie.end_attempt());
        for field in fields {
            response.headers_mut().append(header::SET_COOKIE, field);
        }
        response
    }

    fn refuse(&self, error: Error) -> Response {
        let another_way = PageLink {
            path: "/sign-in",
            text: "Sign in another way",
        };
        let (subject, message, link) = if matches!(error, Error::SsoRefused) {
            (
                "Sign-in refused",
                "Sign-in was refused. An administrator of your organization sees the reason under this reference.",
                another_way,
            )
        } else if matches!(error, Error::SsoEmailTaken) {
            (
                "Sign-in refused",
                "A user with your address exists. Sign in as before, and link this identity at your profile.",
                another_way,
            )
        } else if matches!(error, Error::SsoOtherSession) {
            (
                "You are signed in already",
                "Your identity provider sent an unrequested sign-in for another user than the one signed in here. To sign in \
                 as that user, sign out and begin again.",
                PageLink {
                    path: "/profile",
                    text: "Go to your profile",
                },
            )
        } else if matches!(error, Error::SsoNotAuthenticated) {
            (
                "No proof of identity",
                "Your identity provider did not ask you to sign in again, so its answer does not prove your identity. Sign out there, \
                 and try again. If that does not help, an administrator of your organization sees the reason under \
                 this reference, or creates a link for you to set a password.",
                PageLink {
                    path: "/profile",
                    text: "Go back to your profile",
                },
            )
        } else {
            return Problem::from(error).into_response();
        };
        // Only administrators see which rule was broken.
        let page = FailurePage {
            status: StatusCode::FORBIDDEN,
            subject,
            message,
            retry_after: None,
            reference: &self.visit.correlation_id,
            link,
        };
        page.into_response()
    }
}

/// Redirects to the identity provider. `return` is the path for afterwards. Links of this site set
/// `link` to link an identity, `prove` to renew the proof of identity, or `try` to test the
/// connection.
async fn begin(State(app): State<Arc<App>>, Path(org): Path<String>, parts: Parts) -> Response {
    let browser = match Browser::read(&app, &parts).await {
        Ok(browser) => browser,
        Err(error) => return Problem::from(error).into_response(),
    };
    let org = match app.org_of_sign_in(&org).await {
        Ok(org) => org,
        Err(error) => return browser.refuse(error),
    };
    let query = parts.uri.query().unwrap_or_default();
    let parameter = |name: &str| {
        let mut all = form_urlencoded::parse(query.as_bytes());
        all.find_map(|(own, value)| (own == name).then(|| value.into_owned()))
    };
    let (links, tries) = (parameter("link").is_some(), parameter("try").is_some());
    let proves = parameter("prove").is_some();
    if browser.actor.is_some() && !links && is_other_site(&parts) {
        return ask_first(&browser, &parts);
    }
    let call = if links || proves || tries {
        match signed_in_call(&browser, &parts) {
            Ok(call) => Some(call),
            Err(problem) => return problem.into_response(),
        }
    } else {
        None
    };
    let intent = match &call {
        None => SsoIntent::SignIn,
        Some(call) if links => SsoIntent::Link(call),
        Some(call) if proves => SsoIntent::Proof(call),
        Some(call) => SsoIntent::Trial(call),
    };
    let begun = SsoRequest {
        return_to: &parameter("return").unwrap_or_default(),
        browser: browser.attempt.as_ref(),
        intent,
    };
    match app.begin_sso(&browser.visit, org, begun).await {
        Ok(start) => {
            let mut response = see_other(&start.location);
            if let Ok(field) = browser.cookie.set_attempt(&start.browser) {
                response.headers_mut().append(header::SET_COOKIE, field);
            }
            response
        }
        Err(error) => browser.refuse(error),
    }
}

/// Returns true for a request from another origin, even from another host of the same domain.
fn is_other_site(parts: &Parts) -> bool {
    let site = parts.headers.get(FETCH_SITE);
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

/// Asks before a sign-in that another site started: it must not silently replace the browser's
/// session, or the next actions would be another user's. The page's link begins the sign-in.
fn ask_first(browser: &Browser, parts: &Parts) -> Response {
    let path = parts.uri.path_and_query();
    let page = FailurePage {
        status: StatusCode::CONFLICT,
        subject: "You are signed in already",
        message: "Another site asks to sign you in with an identity provider. Go on only if you want to leave your session.",
        retry_after: None,
        reference: &browser.visit.correlation_id,
        link: PageLink {
            path: path.map_or("/", PathAndQuery::as_str),
            text: "Leave this session and sign in",
        },
    };
    page.into_response()
}

/// Call of the signed-in user. Refuses requests from other sites, which could make the user link an
/// identity of their choice.
fn signed_in_call(browser: &Browser, parts: &Parts) -> Result<Call, Problem> {
    let site = parts.headers.get(FETCH_SITE);
    if site.is_none_or(|site| site != "same-origin") {
        return Err(Problem::other_site());
    }
    let actor = browser.actor.clone();
    let actor = actor.ok_or(Error::Unauthenticated)?;
    Ok(browser.visit.call(actor))
}

async fn oidc_callback(
    State(app): State<Arc<App>>,
    Path(org): Path<OrgId>,
    parts: Parts,
) -> Response {
    let browser = match Browser::read(&app, &parts).await {
        Ok(browser) => browser,
        Err(error) => return Problem::from(error).into_response(),
    };
    let query = parts.uri.query().unwrap_or_default();
    let finished = app.finish_oidc(&browser.visit, org, browser.returning(), query);
    match finished.await {
        Ok(outcome) => browser.leave(&outcome),
        Err(error) => browser.refuse(error),
    }
}

/// Accepts a SAML response. The browser posts it from the provider's site and omits `Lax` cookies,
/// so it is redirected to a GET with a ticket, which carries them. A cookie that this answer sets
/// is among them, because the redirect is followed as a navigation of the whole page.
async fn saml_response(
    State(app): State<Arc<App>>,
    Path(org): Path<OrgId>,
    Extension(cookie): Extension<SessionCookie>,
    request: Request,
) -> Response {
    let visit = extract::visit(app.now(), &request);
    let (parts, body) = request.into_parts();
    let browser = Browser {
        visit,
        cookie,
        attempt: None,
        actor: None,
    };
    if !is_form(&parts) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let form = match BodyLimit(RESPONSE_BYTES).read(&parts, body).await {
        Ok(form) => form,
        Err(problem) => return problem.into_response(),
    };
    let field = |name: &str| {
        let mut all = form_urlencoded::parse(&form);
        all.find_map(|(own, value)| (own == name).then(|| value.into_owned()))
    };
    let response = field("SAMLResponse").unwrap_or_default();
    let relay_state = field("RelayState").unwrap_or_default();
    let accepted = app.accept_saml(&browser.visit, org, &response, &relay_state);
    match accepted.await {
        Ok(ticket) => {
            let secret = ticket.secret.reveal();
            let mut response = see_other(&format!("/sso/{org}/saml/finish?ticket={secret}"));
            let field = ticket.browser.as_ref();
            let field = field.and_then(|secret| browser.cookie.set_attempt(secret).ok());
            if let Some(field) = field {
                response.headers_mut().append(header::SET_COOKIE, field);
            }
            response
        }
        Err(error) => browser.refuse(error),
    }
}

async fn saml_finish(
    State(app): State<Arc<App>>,
    Path(org): Path<OrgId>,
    parts: Parts,
) -> Response {
    let browser = match Browser::read(&app, &parts).await {
        Ok(browser) => browser,
        Err(error) => return Problem::from(error).into_response(),
    };
    let query = parts.uri.query().unwrap_or_default();
    let ticket = query.strip_prefix("ticket=").unwrap_or_default();
    let ticket = Secret::presented(ticket);
    let finished = app.finish_saml(&browser.visit, org, browser.returning(), &ticket);
    match finished.await {
        Ok(outcome) => browser.leave(&outcome),
        Err(error) => browser.refuse(error),
    }
}

/// SAML metadata of this service, for the identity provider.
async fn saml_metadata(State(app): State<Arc<App>>, Path(org): Path<OrgId>) -> Response {
    let kind = HeaderValue::from_static("application/samlmetadata+xml");
    match app.sp_metadata(org).await {
        Ok(xml) => ([(header::CONTENT_TYPE, kind)], xml).into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}

fn is_form(parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// 303 to a URL of this server or of the provider. The URL contains secrets, so no referrer is
/// sent.
fn see_other(location: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(location) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let fields = [
        (header::LOCATION, location),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (StatusCode::SEE_OTHER, fields).into_response()
}

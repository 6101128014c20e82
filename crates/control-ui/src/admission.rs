//! Admission of requests: rate limit, authentication, permission, forms.

mod rejection;

use crate::account::proof::{proof_of_form, wrong_words};
use crate::account::sign_in::{PENDING, refused};
use crate::frame::held::PROOF_FIELDS;
use crate::page::Page;
use crate::request::failure::Failure;
use crate::request::fields::{Fields, csrf_token};
use crate::request::note::Note;
use crate::request::path::is_own_path;
use crate::request::theme::Theme;
use crate::request::visit::{Caller, Visit};
use crate::ui::Ui;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{Extensions, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use control_app::{Allowance, Call, Error, NamedTenant, Presented, StrongProof, metric};
use control_auth::Secret;
use control_domain::{Access, Actor, Refusal};
use control_http::{
    CorrelationId, RateClass, browser, check_again, client_ip, cookie, identify, is_same_origin,
    named_tenant, write_allowance,
};
use metrics::counter;
use rejection::{Rejection, answer, held, held_unread};
use std::sync::Arc;
use uuid::Uuid;

/// Header field of requests that only keep a page live. They neither extend the session nor are
/// redirected to the sign-in.
pub(crate) const LIVE: HeaderName = HeaderName::from_static("x-live");

/// Cookie that identifies a browser before it has a session, so that the sign-in form has a CSRF
/// token as well.
const BEFORE: &str = "before";

/// Secret of a request: proves an identity, or at least that forms come from the same browser.
#[derive(Clone)]
enum Credential {
    /// From a link, or from the form of its page.
    Link(String),
    /// From the session cookie.
    Session(String),
    /// From the cookie of a browser without a session.
    Before(String),
    None,
}

/// Middleware in front of every page; gets the page's row of the table.
pub(crate) async fn admit(
    State((ui, page)): State<(Arc<Ui>, &'static Page)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut request, mut visit) = read_visit(&ui, request);
    let before = new_before(&ui, page, &request);
    let entered = enter(&ui, page, &mut request, &mut visit, before.as_deref()).await;
    let mut response = match entered {
        Ok(caller) => {
            let held = held(page, &request, &visit);
            request.extensions_mut().insert(visit.clone());
            if let Some(caller) = caller.clone() {
                request.extensions_mut().insert(caller);
            }
            let mut response = next.run(request).await;
            match response.extensions_mut().remove::<Failure>() {
                Some(failure) => answer(&ui, failure.into(), &visit, caller.as_ref(), held).await,
                None => response,
            }
        }
        Err(rejection) => {
            let held = held_unread(&ui, page, &mut request, &visit).await;
            answer(&ui, rejection, &visit, None, held).await
        }
    };
    keep_session(&ui, &visit, &mut response);
    if let Some(allowance) = &visit.refused_by {
        write_allowance(allowance, response.headers_mut());
    }
    let shown = visit.note.as_ref();
    let shown = shown.filter(|_| response.status() != StatusCode::SEE_OTHER);
    let fields = [
        shown.and_then(|_| ui.cookie.end_note()),
        before.and_then(|before| ui.cookie.field(BEFORE, &before, None).ok()),
    ];
    for field in fields.into_iter().flatten() {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    response
}

/// Reads the context of a request.
fn read_visit(ui: &Ui, request: Request) -> (Request, Visit) {
    let now = ui.app.now();
    let headers = request.headers();
    let id = request.extensions().get::<CorrelationId>();
    let path = request.uri().path_and_query();
    let path = path.map_or_else(|| "/".to_owned(), ToString::to_string);
    let query = request.uri().query().unwrap_or_default();
    let secret = |name: &str| {
        let found = cookie(headers, name).filter(|secret| !secret.is_empty());
        found.map(Secret::presented)
    };
    let visit = Visit {
        now,
        client_ip: client_ip(request.extensions()),
        browser: browser(request.headers()),
        host: own_host(&request).map(ToOwned::to_owned),
        correlation_id: id.map(|CorrelationId(id)| id.clone()).unwrap_or_default(),
        back: match *request.method() {
            Method::POST => page_of_form(&request).unwrap_or_else(|| "/".to_owned()),
            _ => path.clone(),
        },
        path,
        is_live: headers.contains_key(LIVE) || request.uri().path() == "/events",
        known_browser: secret(ui.cookie.browser_name()),
        pending: secret(&ui.cookie.named(PENDING)),
        query: Fields::parse(query.as_bytes()),
        csrf: String::new(),
        renewed: None,
        refused_by: None,
        permit: None,
        theme: Theme::from_request(request.headers(), ui.cookie),
        note: Note::from_request(request.headers(), ui.cookie),
    };
    (request, visit)
}

/// Path of the page that the form was sent from, by `Referer`.
fn page_of_form(request: &Request) -> Option<String> {
    let referer = request.headers().get(header::REFERER)?.to_str().ok()?;
    let (_, rest) = referer.split_once("://")?;
    let (host, path) = rest.split_at_checked(rest.find('/')?)?;
    let is_own = host.eq_ignore_ascii_case(own_host(request)?) && is_own_path(path);
    is_own.then(|| path.to_owned())
}

/// Host and port under which the browser reached this server.
fn own_host(request: &Request) -> Option<&str> {
    let authority = request.uri().authority().map(Authority::as_str);
    authority.or_else(|| request.headers().get(header::HOST)?.to_str().ok())
}

/// A new secret for forms, if the browser has none.
fn new_before(ui: &Ui, page: &Page, request: &Request) -> Option<String> {
    let known = cookie(request.headers(), &ui.cookie.named(BEFORE));
    let is_needed = page.access == Access::Public && page.method == Method::GET && known.is_none();
    is_needed.then(|| format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()))
}

/// Sets the cookie for a session that the form's proof of identity renewed, unless the page has
/// already renewed it.
fn keep_session(ui: &Ui, visit: &Visit, response: &mut Response) {
    let prefix = format!("{}=", ui.cookie.name());
    let mut sent = response.headers().get_all(header::SET_COOKIE).iter();
    let is_sent = sent.any(|field| field.as_bytes().starts_with(prefix.as_bytes()));
    let renewed = visit.renewed.as_ref().filter(|_| !is_sent);
    if let Some(field) = renewed.and_then(|secret| ui.cookie.set(secret).ok()) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
}

/// The steps before the handler. Returns the caller, or `None` on a public page.
async fn enter(
    ui: &Ui,
    page: &'static Page,
    request: &mut Request,
    visit: &mut Visit,
    before: Option<&str>,
) -> Result<Option<Caller>, Rejection> {
    let is_form = page.method == Method::POST;
    if is_form && !is_same_origin(request) {
        return Err(Failure::other_site().into());
    }
    visit.query.check_text()?;
    // The secret of a link is in its form, which is small. Other forms are read after
    // authentication.
    if is_form && page.is_linked() {
        read_form(page, request).await?;
    }
    let credential = credential(ui, page, request, visit, before);
    let actor = actor(ui, page, request.extensions(), &credential, visit).await?;
    let admitted = match actor {
        None if page.access == Access::Public => None,
        None => return Err(without_actor(page, visit).into()),
        Some(actor) => Some(Admitted::check(ui, page, request, actor).await?),
    };
    // An empty secret has no valid CSRF token.
    if is_form && credential.secret().is_empty() {
        return Err(Failure::stale_form().into());
    }
    visit.csrf = csrf_token(credential.secret());
    if is_form && !page.is_linked() {
        if let Some(Admitted { actor, .. }) = &admitted {
            let hint = request.body().size_hint().upper();
            let bytes = hint.and_then(|bytes| usize::try_from(bytes).ok());
            let bytes = bytes.map_or(page.max_form_bytes, |bytes| bytes.min(page.max_form_bytes));
            visit.permit = ui.app.body_permit(actor, bytes).await?.map(Arc::new);
        }
        read_form(page, request).await?;
        if let Some(admitted) = &admitted {
            admitted
                .check_again(ui, request.extensions(), &credential, visit)
                .await?;
        }
    }
    let proof = check_form(page, request, visit)?;
    let Some(admitted) = admitted else {
        return Ok(None);
    };
    let actor = match (proof, admitted.refusal.is_some()) {
        (None, false) => admitted.actor,
        (proof, _) => prove(ui, request.extensions(), visit, admitted, proof).await?,
    };
    let (call, visit) = (call(actor, visit), visit.clone());
    Ok(Some(Caller { call, visit }))
}

/// An actor with the permission for a page, perhaps after a proof of identity.
struct Admitted {
    page: &'static Page,
    actor: Actor,
    named: NamedTenant,
    /// Why a proof of identity is needed; `None` if it is not.
    refusal: Option<Refusal>,
}

impl Admitted {
    async fn check(
        ui: &Ui,
        page: &'static Page,
        request: &mut Request,
        actor: Actor,
    ) -> Result<Self, Rejection> {
        let named = tenant_of_path(request).await;
        let checked = ui.app.check_access_to(&actor, page.access, named).await;
        let refusal = match checked {
            Ok(()) => None,
            Err(Error::Refused(refusal @ (Refusal::NotFresh | Refusal::NoSecondFactor)))
                if page.method == Method::POST =>
            {
                Some(refusal)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            page,
            actor,
            named,
            refusal,
        })
    }

    /// Checks the credential again after a form has arrived, which may take a while.
    async fn check_again(
        &self,
        ui: &Ui,
        extensions: &Extensions,
        credential: &Credential,
        visit: &Visit,
    ) -> Result<(), Rejection> {
        if self.refusal.is_some() {
            return Ok(());
        }
        let presented = credential.presented(visit.is_live);
        let access = self.page.access;
        let checked = check_again(
            &ui.app,
            presented,
            extensions,
            &self.actor,
            access,
            visit.now,
        );
        match checked.await {
            Err(Error::Unauthenticated) => Err(without_actor(self.page, visit).into()),
            checked => Ok(checked?),
        }
    }
}

/// Checks the CSRF token and the names of fields; returns the proof of identity in the form, if
/// there is one.
fn check_form(
    page: &Page,
    request: &mut Request,
    visit: &Visit,
) -> Result<Option<StrongProof>, Failure> {
    let Some(fields) = request.extensions().get::<Fields>() else {
        return Ok(None);
    };
    fields.check_csrf(&visit.csrf)?;
    let proof = proof_of_form(fields);
    let fields = PROOF_FIELDS
        .into_iter()
        .fold(fields.clone(), Fields::without);
    fields.check_names(page.fields, page.boxes)?;
    request.extensions_mut().insert(fields);
    Ok(proof)
}

/// Verifies the proof of identity in the form, and admits the actor again with the session's new
/// secret.
async fn prove(
    ui: &Ui,
    extensions: &Extensions,
    visit: &mut Visit,
    admitted: Admitted,
    proof: Option<StrongProof>,
) -> Result<Actor, Rejection> {
    let Admitted {
        page,
        actor,
        named,
        refusal,
    } = admitted;
    let refusal = refusal.unwrap_or(Refusal::NotFresh);
    let caller = Caller {
        call: call(actor, visit),
        visit: visit.clone(),
    };
    let Some(proof) = proof else {
        return Err(Rejection::unproved(refusal, caller, None));
    };
    // Guessing passwords here is as limited as at sign-in.
    let class = RateClass::Strict;
    let (allowance, _) = identify(&ui.app, class, None, extensions, visit.now, |_| true).await?;
    if !allowance.admitted {
        return Err(rate_limited(class, allowance, visit).into());
    }
    let wrong = wrong_words(&proof);
    let secret = match ui.app.prove_again(&caller.call, proof).await {
        Ok(secret) => secret,
        Err(error) => {
            let wrong = refused(error, wrong)?;
            return Err(Rejection::unproved(refusal, caller, Some(wrong)));
        }
    };
    let presented = Presented::Session(secret.reveal());
    let actor = ui
        .app
        .authenticate(presented, visit.client_ip, visit.now)
        .await?;
    ui.app.check_access_to(&actor, page.access, named).await?;
    visit.csrf = csrf_token(secret.reveal());
    visit.renewed = Some(secret);
    Ok(actor)
}

/// Identifiers in the path that determine the page's tenant.
async fn tenant_of_path(request: &mut Request) -> NamedTenant {
    let (mut parts, body) = std::mem::take(request).into_parts();
    let named = named_tenant(&mut parts).await;
    *request = Request::from_parts(parts, body);
    named
}

fn credential(
    ui: &Ui,
    page: &Page,
    request: &Request,
    visit: &Visit,
    before: Option<&str>,
) -> Credential {
    if page.is_linked() {
        let fields = request.extensions().get::<Fields>();
        let token = fields.unwrap_or(&visit.query).get("token");
        return Credential::Link(token.to_owned());
    }
    let own = |name: &str| cookie(request.headers(), name).map(str::to_owned);
    if page.access == Access::Public {
        let before = before.map(str::to_owned);
        let before = before.or_else(|| own(&ui.cookie.named(BEFORE)));
        return before.map_or(Credential::None, Credential::Before);
    }
    own(ui.cookie.name()).map_or(Credential::None, Credential::Session)
}

impl Credential {
    fn secret(&self) -> &str {
        match self {
            Self::Link(secret) | Self::Session(secret) | Self::Before(secret) => secret,
            Self::None => "",
        }
    }

    fn presented(&self, is_live: bool) -> Option<Presented<'_>> {
        match self {
            Self::Link(secret) => Some(Presented::Bearer(secret)),
            Self::Session(secret) if is_live => Some(Presented::LiveSession(secret)),
            Self::Session(secret) => Some(Presented::Session(secret)),
            Self::Before(_) | Self::None => None,
        }
    }
}

/// Authenticates the credential, after the rate limit.
async fn actor(
    ui: &Ui,
    page: &Page,
    extensions: &Extensions,
    credential: &Credential,
    visit: &mut Visit,
) -> Result<Option<Actor>, Failure> {
    let presented = credential.presented(visit.is_live);
    let found = identify(&ui.app, page.rate, presented, extensions, visit.now, |_| {
        true
    })
    .await;
    let (allowance, actor) = found?;
    if !allowance.admitted {
        return Err(rate_limited(page.rate, allowance, visit));
    }
    Ok(actor)
}

fn rate_limited(class: RateClass, allowance: Allowance, visit: &mut Visit) -> Failure {
    counter!(metric::RATE_LIMITED, "class" => class.name()).increment(1);
    let seconds = allowance.retry_after_secs;
    visit.refused_by = Some(allowance);
    Failure::rate_limited(seconds)
}

/// Failure for a request without a valid credential: redirects to the sign-in, and from there back.
fn without_actor(page: &Page, visit: &Visit) -> Failure {
    if page.is_linked() {
        return Failure::link_ended();
    }
    if visit.is_live {
        return Failure::unauthenticated();
    }
    Failure::SignIn
}

async fn read_form(page: &Page, request: &mut Request) -> Result<(), Failure> {
    let body = std::mem::take(request.body_mut());
    let fields = Fields::read(request.headers(), body, page.max_form_bytes).await?;
    request.extensions_mut().insert(fields);
    Ok(())
}

fn call(actor: Actor, visit: &Visit) -> Call {
    Call {
        actor,
        client_ip: visit.client_ip,
        browser: visit.browser.clone(),
        now: visit.now,
        correlation_id: visit.correlation_id.clone(),
        if_match: None,
        reservation: None,
    }
}

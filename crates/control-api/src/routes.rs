//! The table of routes.

use crate::account::{
    api_key, invitation, member_sign_in, second_factor, session, setup, sign_in, user,
};
use crate::bundle::{archive as bundle_archive, signing_key};
use crate::definition::{certificate, managed_certificate, service, upstream};
use crate::node::{drift, enrolment_token, session as node_session};
use crate::org::{member, removed_member, security};
use crate::project::{role as project_role, webhook};
use crate::reference::{docs, openapi};
use crate::request::{admission, answer};
use crate::route::{PREFIX, Route, row};
use crate::sso::browser as sso_browser;
use crate::{audit, bundle, node, org, project, rollout, sso};
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use axum::{Extension, Router};
use control_app::{App, MAX_REPORT_BYTES};
use control_domain::Access;
use control_http::SessionCookie;
use serde_json::Value;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum size of a body with an address and a password or a code.
const SIGN_IN_BYTES: usize = 16 * 1024;

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PATCH: Method = Method::PATCH;
const PUT: Method = Method::PUT;
const DELETE: Method = Method::DELETE;

/// All routes, grouped by resource.
#[rustfmt::skip]
pub static ROUTES: &[Route] = &[
    row(POST, "/setup", Access::SetUp, || routes!(setup::set_up)).tagged().with_cookies().strict()
        .creates("/orgs/{org}"),
    row(GET, "/installation", Access::InstanceAdmin, || routes!(setup::status::view)),

    row(POST, "/sign-in", Access::Public, || routes!(sign_in::sign_in)).with_cookies().strict().with_body(SIGN_IN_BYTES),
    row(POST, "/sign-in/code", Access::Public, || routes!(sign_in::code)).with_cookies().strict().with_body(SIGN_IN_BYTES),
    row(POST, "/sign-in/recovery", Access::Public, || routes!(sign_in::recovery)).with_cookies().strict().with_body(SIGN_IN_BYTES),
    row(POST, "/sign-out", Access::Session, || routes!(session::sign_out)).with_cookies(),

    row(GET, "/users/me", Access::SignedIn, || routes!(user::me)).tagged(),
    row(PATCH, "/users/me", Access::Session, || routes!(user::rename)).tagged().versioned(),
    row(POST, "/users/me/password", Access::FreshSession, || routes!(user::change_password)).with_cookies().strict(),
    row(POST, "/users/me/strong", Access::Session, || routes!(sign_in::prove_again)).with_cookies().strict(),
    row(GET, "/users/me/sessions", Access::Session, || routes!(session::list)),
    row(DELETE, "/users/me/sessions", Access::Session, || routes!(session::revoke_others)),
    row(DELETE, "/users/me/sessions/{session}", Access::Session, || routes!(session::revoke)),
    row(GET, "/users/me/totp", Access::Session, || routes!(second_factor::view)),
    row(POST, "/users/me/totp", Access::FreshSession, || routes!(second_factor::start)),
    row(POST, "/users/me/totp/confirm", Access::FreshSession, || routes!(second_factor::confirm)).with_cookies().strict(),
    row(DELETE, "/users/me/totp", Access::FreshSession, || routes!(second_factor::remove)),
    row(POST, "/users/me/recovery-codes", Access::FreshSession, || routes!(second_factor::renew_codes)),

    row(GET, "/users/me/identities", Access::Session, || routes!(sso::identities)),
    row(DELETE, "/users/me/identities/{identity}", Access::FreshSession, || routes!(sso::unlink)),

    row(GET, "/orgs", Access::SignedIn, || routes!(org::list)),
    row(POST, "/orgs", Access::FreshInstanceAdmin, || routes!(org::create)).tagged()
        .creates("/orgs/{org}"),
    row(GET, "/orgs/{org}", Access::READ_ORG, || routes!(org::view)).tagged(),
    row(PATCH, "/orgs/{org}", Access::ADMINISTER, || routes!(org::rename)).tagged().versioned(),
    row(DELETE, "/orgs/{org}", Access::CONTROL, || routes!(org::delete)).versioned(),
    row(GET, "/orgs/{org}/limits", Access::READ_ORG, || routes!(org::limits::view)),

    row(GET, "/orgs/{org}/members", Access::ADMINISTER, || routes!(member::list)),
    row(GET, "/orgs/{org}/members/{user}", Access::ADMINISTER, || routes!(member::view)).tagged(),
    row(PATCH, "/orgs/{org}/members/{user}", Access::CONTROL, || routes!(member::change_role)).tagged().versioned(),
    row(DELETE, "/orgs/{org}/members/{user}", Access::CONTROL, || routes!(member::remove)).versioned(),

    row(GET, "/orgs/{org}/members/{user}/sessions", Access::CONTROL, || routes!(member_sign_in::sessions)),
    row(DELETE, "/orgs/{org}/members/{user}/sessions", Access::CONTROL, || routes!(member_sign_in::end_sessions)),
    row(DELETE, "/orgs/{org}/members/{user}/totp", Access::CONTROL, || routes!(member_sign_in::reset_second_factor)),
    row(POST, "/orgs/{org}/members/{user}/reset-password", Access::CONTROL, || routes!(member_sign_in::create_reset)),
    row(POST, "/password-resets/use", Access::Public, || routes!(member_sign_in::use_reset)).with_cookies().strict().with_body(SIGN_IN_BYTES),

    row(GET, "/orgs/{org}/removed-members", Access::ADMINISTER, || routes!(removed_member::list)),
    row(DELETE, "/orgs/{org}/removed-members/{user}", Access::CONTROL, || routes!(removed_member::readmit)),

    row(GET, "/orgs/{org}/security", Access::ADMINISTER, || routes!(security::view)).tagged(),
    row(PUT, "/orgs/{org}/security", Access::CONTROL, || routes!(security::update)).tagged().versioned(),

    row(GET, "/orgs/{org}/invitations", Access::ADMINISTER, || routes!(invitation::list)),
    row(POST, "/orgs/{org}/invitations", Access::CONTROL, || routes!(invitation::create)).tagged()
        .creates("/orgs/{org}/invitations/{invitation}"),
    row(GET, "/orgs/{org}/invitations/{invitation}", Access::ADMINISTER, || routes!(invitation::view)).tagged(),
    row(DELETE, "/orgs/{org}/invitations/{invitation}", Access::CONTROL, || routes!(invitation::delete)).versioned(),
    row(POST, "/invitations/accept", Access::Invitee, || routes!(invitation::accept)).tagged().with_cookies().strict()
        .creates("/orgs/{org}/members/{user}"),
    row(POST, "/invitations/join", Access::Session, || routes!(invitation::join)).tagged().strict()
        .creates("/orgs/{org}/members/{user}"),

    row(GET, "/orgs/{org}/audit", Access::ADMINISTER, || routes!(audit::list)),
    row(GET, "/orgs/{org}/audit/export", Access::ADMINISTER, || routes!(audit::export)),

    row(GET, "/orgs/{org}/sso", Access::ADMINISTER, || routes!(sso::view)).tagged(),
    row(PUT, "/orgs/{org}/sso", Access::CONTROL, || routes!(sso::update)).tagged().versioned(),
    row(DELETE, "/orgs/{org}/sso", Access::CONTROL, || routes!(sso::delete)).versioned(),
    row(GET, "/orgs/{org}/sso/domains", Access::InstanceAdmin, || routes!(sso::domains)).tagged(),
    row(PUT, "/orgs/{org}/sso/domains", Access::FreshInstanceAdmin, || routes!(sso::set_domains)).tagged().versioned(),

    row(GET, "/orgs/{org}/signing-keys", Access::READ_ORG, || routes!(signing_key::list)),
    row(POST, "/orgs/{org}/signing-keys", Access::CONTROL, || routes!(signing_key::create)).tagged(),
    row(POST, "/orgs/{org}/signing-keys/rotate", Access::CONTROL, || routes!(signing_key::rotate)).tagged(),
    row(POST, "/orgs/{org}/signing-keys/{signing_key}/deactivate", Access::CONTROL, || routes!(signing_key::deactivate)).tagged().versioned(),
    row(GET, "/orgs/{org}/jwks.json", Access::Public, || routes!(signing_key::jwks)),

    row(GET, "/orgs/{org}/projects", Access::READ_ORG, || routes!(project::list)),
    row(POST, "/orgs/{org}/projects", Access::WRITE_PROJECTS, || routes!(project::create)).tagged()
        .creates("/projects/{project}"),
    row(GET, "/projects/{project}", Access::READ_ORG, || routes!(project::view)).tagged(),
    row(PATCH, "/projects/{project}", Access::WRITE_PROJECTS, || routes!(project::rename)).tagged().versioned(),
    row(DELETE, "/projects/{project}", Access::CONTROL, || routes!(project::delete)).versioned(),
    row(PUT, "/projects/{project}/policy", Access::CONTROL, || routes!(project::set_policy)).tagged().versioned(),

    row(GET, "/projects/{project}/roles", Access::ADMINISTER, || routes!(project_role::list)),
    row(GET, "/projects/{project}/roles/{user}", Access::ADMINISTER, || routes!(project_role::view)).tagged(),
    row(PUT, "/projects/{project}/roles/{user}", Access::CONTROL, || routes!(project_role::grant)).tagged().versioned(),
    row(DELETE, "/projects/{project}/roles/{user}", Access::CONTROL, || routes!(project_role::revoke)).versioned(),

    row(GET, "/projects/{project}/webhooks", Access::ADMINISTER, || routes!(webhook::list)),
    row(POST, "/projects/{project}/webhooks", Access::CONTROL, || routes!(webhook::create)).tagged()
        .creates("/projects/{project}/webhooks/{webhook}"),
    row(GET, "/projects/{project}/webhooks/{webhook}", Access::ADMINISTER, || routes!(webhook::view)).tagged(),
    row(PUT, "/projects/{project}/webhooks/{webhook}", Access::CONTROL, || routes!(webhook::update)).tagged().versioned(),
    row(DELETE, "/projects/{project}/webhooks/{webhook}", Access::CONTROL, || routes!(webhook::delete)).versioned(),
    row(POST, "/projects/{project}/webhooks/{webhook}/rotate-secret", Access::CONTROL, || routes!(webhook::rotate_secret)).tagged().versioned(),
    row(POST, "/projects/{project}/webhooks/{webhook}/test", Access::CONTROL, || routes!(webhook::test)).versioned(),
    row(GET, "/projects/{project}/webhooks/{webhook}/deliveries", Access::ADMINISTER, || routes!(webhook::deliveries)),

    row(GET, "/projects/{project}/enrolment-tokens", Access::READ_NODES, || routes!(enrolment_token::list)),
    row(POST, "/projects/{project}/enrolment-tokens", Access::WRITE_NODES, || routes!(enrolment_token::create)).tagged(),
    row(PATCH, "/projects/{project}/enrolment-tokens/{enrolment_token}", Access::WRITE_NODES, || routes!(enrolment_token::rename)).tagged().versioned(),
    row(DELETE, "/projects/{project}/enrolment-tokens/{enrolment_token}", Access::WRITE_NODES, || routes!(enrolment_token::delete)).versioned(),
    row(POST, "/projects/{project}/enrolment-tokens/{enrolment_token}/revoke", Access::WRITE_NODES, || routes!(enrolment_token::revoke)).tagged().versioned(),

    row(GET, "/projects/{project}/nodes", Access::READ_NODES, || routes!(node::list)),
    row(GET, "/projects/{project}/nodes/stats", Access::READ_NODES, || routes!(node::stats)),
    row(GET, "/projects/{project}/traffic", Access::READ_NODES, || routes!(node::traffic::view)),
    row(GET, "/projects/{project}/nodes/{node}", Access::READ_NODES, || routes!(node::view)).tagged(),
    row(PATCH, "/projects/{project}/nodes/{node}", Access::WRITE_NODES, || routes!(node::update)).tagged().versioned(),
    row(DELETE, "/projects/{project}/nodes/{node}", Access::WRITE_NODES, || routes!(node::delete)).versioned(),
    row(POST, "/projects/{project}/nodes/{node}/approve", Access::WRITE_NODES, || routes!(node::approve)).tagged().versioned(),
    row(POST, "/projects/{project}/nodes/{node}/rotate-key", Access::WRITE_NODES, || routes!(node::rotate_key)).tagged().versioned(),
    row(GET, "/projects/{project}/nodes/{node}/events", Access::READ_NODES, || routes!(node::events)),

    row(POST, "/projects/{project}/nodes/register", Access::Enrolment, || routes!(node_session::register)).tagged().strict()
        .creates("/projects/{project}/nodes/{node}"),
    row(POST, "/nodes/{node}/token", Access::OwnNodeKey, || routes!(node_session::token)).strict(),
    row(POST, "/nodes/{node}/heartbeat", Access::OwnNode, || routes!(node_session::heartbeat)).with_body(MAX_REPORT_BYTES),
    row(GET, "/nodes/{node}/desired", Access::OwnNode, || routes!(node_session::desired)).tagged(),
    row(POST, "/nodes/{node}/events", Access::OwnNode, || routes!(node_session::events)),
    row(POST, "/nodes/{node}/challenges", Access::OwnNode, || routes!(node_session::challenges)),
    row(GET, "/nodes/{node}/certificates/{certificate}", Access::OwnNode, || routes!(node_session::certificate)).tagged().delivered(),
    row(GET, "/nodes/{node}/bundles/{bundle}/archive", Access::OwnNode, || routes!(bundle_archive::node_archive)).tagged(),

    row(GET, "/projects/{project}/bundles", Access::READ_BUNDLES, || routes!(bundle::list)),
    row(POST, "/projects/{project}/bundles", Access::WRITE_BUNDLES, || routes!(bundle::create)).tagged()
        .with_body(bundle::MAX_BODY_BYTES)
        .creates("/projects/{project}/bundles/{bundle}"),
    row(POST, "/projects/{project}/bundles/preview", Access::READ_BUNDLES, || routes!(bundle::preview::preview))
        .with_body(bundle::MAX_BODY_BYTES),
    row(GET, "/projects/{project}/bundles/{bundle}", Access::READ_BUNDLES, || routes!(bundle::view)).tagged(),
    row(PATCH, "/projects/{project}/bundles/{bundle}", Access::WRITE_BUNDLES, || routes!(bundle::rename)).tagged().versioned(),
    row(DELETE, "/projects/{project}/bundles/{bundle}", Access::WRITE_BUNDLES, || routes!(bundle::delete)).versioned(),
    row(POST, "/projects/{project}/bundles/{bundle}/revoke", Access::WRITE_BUNDLES, || routes!(bundle::revoke)).tagged().versioned(),
    row(POST, "/projects/{project}/bundles/{bundle}/assign", Access::WRITE_BUNDLES, || routes!(bundle::assign)).versioned(),
    row(GET, "/projects/{project}/bundles/{bundle}/download", Access::READ_BUNDLES, || routes!(bundle_archive::download)).tagged(),
    row(GET, "/projects/{project}/bundles/{bundle}/verify", Access::READ_BUNDLES, || routes!(bundle_archive::verify)),
    row(GET, "/projects/{project}/bundles/{bundle}/sbom", Access::READ_BUNDLES, || routes!(bundle_archive::sbom)),
    row(GET, "/projects/{project}/bundles/{bundle}/diff", Access::READ_BUNDLES, || routes!(bundle_archive::diff)),
    row(POST, "/projects/{project}/bundles/{bundle}/explain", Access::READ_BUNDLES, || routes!(bundle::explanation::explain)),
    row(POST, "/projects/{project}/bundles/{bundle}/replay", Access::READ_BUNDLES, || routes!(bundle::replay::replay))
        .with_body(bundle::replay::MAX_BODY_BYTES),

    row(GET, "/projects/{project}/rollouts", Access::READ_ROLLOUTS, || routes!(rollout::list)),
    row(POST, "/projects/{project}/rollouts", Access::WRITE_ROLLOUTS, || routes!(rollout::create)).tagged()
        .creates("/projects/{project}/rollouts/{rollout}"),
    row(GET, "/projects/{project}/rollouts/{rollout}", Access::READ_ROLLOUTS, || routes!(rollout::view)).tagged(),
    row(DELETE, "/projects/{project}/rollouts/{rollout}", Access::WRITE_ROLLOUTS, || routes!(rollout::delete)).versioned(),
    row(GET, "/projects/{project}/rollouts/{rollout}/nodes", Access::READ_ROLLOUTS, || routes!(rollout::nodes)),
    row(POST, "/projects/{project}/rollouts/{rollout}/start", Access::WRITE_ROLLOUTS, || routes!(rollout::start)).tagged().versioned(),
    row(POST, "/projects/{project}/rollouts/{rollout}/approve", Access::WRITE_ROLLOUTS, || routes!(rollout::approve)).tagged().versioned(),
    row(POST, "/projects/{project}/rollouts/{rollout}/pause", Access::WRITE_ROLLOUTS, || routes!(rollout::pause)).tagged().versioned(),
    row(POST, "/projects/{project}/rollouts/{rollout}/resume", Access::WRITE_ROLLOUTS, || routes!(rollout::resume)).tagged().versioned(),
    row(POST, "/projects/{project}/rollouts/{rollout}/cancel", Access::WRITE_ROLLOUTS, || routes!(rollout::cancel)).tagged().versioned(),
    row(POST, "/projects/{project}/rollouts/{rollout}/rollback", Access::WRITE_ROLLOUTS, || routes!(rollout::rollback)).tagged().versioned(),

    row(GET, "/projects/{project}/drift", Access::READ_NODES, || routes!(drift::list)),
    row(GET, "/projects/{project}/drift/{drift}", Access::READ_NODES, || routes!(drift::view)).tagged(),
    row(POST, "/projects/{project}/drift/{drift}/resolve", Access::WRITE_NODES, || routes!(drift::resolve)).tagged().versioned(),

    row(GET, "/projects/{project}/services", Access::READ_SERVICES, || routes!(service::list)),
    row(POST, "/projects/{project}/services", Access::WRITE_SERVICES, || routes!(service::create)).tagged()
        .creates("/projects/{project}/services/{service}"),
    row(GET, "/projects/{project}/services/{service}", Access::READ_SERVICES, || routes!(service::view)).tagged(),
    row(PUT, "/projects/{project}/services/{service}", Access::WRITE_SERVICES, || routes!(service::update)).tagged().versioned(),
    row(DELETE, "/projects/{project}/services/{service}", Access::WRITE_SERVICES, || routes!(service::delete)).versioned(),

    row(GET, "/projects/{project}/upstreams", Access::READ_SERVICES, || routes!(upstream::list)),
    row(POST, "/projects/{project}/upstreams", Access::WRITE_SERVICES, || routes!(upstream::create)).tagged()
        .creates("/projects/{project}/upstreams/{upstream}"),
    row(GET, "/projects/{project}/upstreams/{upstream}", Access::READ_SERVICES, || routes!(upstream::view)).tagged(),
    row(PUT, "/projects/{project}/upstreams/{upstream}", Access::WRITE_SERVICES, || routes!(upstream::update)).tagged().versioned(),
    row(DELETE, "/projects/{project}/upstreams/{upstream}", Access::WRITE_SERVICES, || routes!(upstream::delete)).versioned(),

    row(GET, "/projects/{project}/certificates", Access::READ_SERVICES, || routes!(certificate::list)),
    row(POST, "/projects/{project}/certificates", Access::WRITE_SERVICES, || routes!(certificate::create)).tagged()
        .creates("/projects/{project}/certificates/{certificate}"),
    row(GET, "/projects/{project}/certificates/{certificate}", Access::READ_SERVICES, || routes!(certificate::view)).tagged(),
    row(PUT, "/projects/{project}/certificates/{certificate}", Access::WRITE_SERVICES, || routes!(certificate::update)).tagged().versioned(),
    row(DELETE, "/projects/{project}/certificates/{certificate}", Access::WRITE_SERVICES, || routes!(certificate::delete)).versioned(),

    row(GET, "/projects/{project}/managed-certificates", Access::READ_SERVICES, || routes!(managed_certificate::list)),
    row(POST, "/projects/{project}/managed-certificates", Access::WRITE_SERVICES, || routes!(managed_certificate::create)).tagged()
        .creates("/projects/{project}/managed-certificates/{managed_certificate}"),
    row(GET, "/projects/{project}/managed-certificates/{managed_certificate}", Access::READ_SERVICES, || routes!(managed_certificate::view)).tagged(),
    row(PUT, "/projects/{project}/managed-certificates/{managed_certificate}", Access::WRITE_SERVICES, || routes!(managed_certificate::update)).tagged().versioned(),
    row(DELETE, "/projects/{project}/managed-certificates/{managed_certificate}", Access::WRITE_SERVICES, || routes!(managed_certificate::delete)).versioned(),
    row(POST, "/projects/{project}/managed-certificates/{managed_certificate}/renew", Access::WRITE_SERVICES, || routes!(managed_certificate::renew)).tagged().versioned(),

    row(GET, "/api-keys", Access::READ_API_KEYS, || routes!(api_key::list)),
    row(POST, "/api-keys", Access::WRITE_API_KEYS, || routes!(api_key::create)).tagged()
        .creates("/api-keys/{api_key}"),
    row(GET, "/api-keys/{api_key}", Access::READ_API_KEYS, || routes!(api_key::view)).tagged(),
    row(PATCH, "/api-keys/{api_key}", Access::WRITE_API_KEYS, || routes!(api_key::rename)).tagged().versioned(),
    row(POST, "/api-keys/{api_key}/revoke", Access::WRITE_API_KEYS, || routes!(api_key::revoke)).tagged().versioned(),
    row(DELETE, "/api-keys/{api_key}", Access::WRITE_API_KEYS, || routes!(api_key::delete)).versioned(),
];

/// Wraps `router` with the interface's log line, correlation ID and failure bodies.
pub fn answering(app: &Arc<App>, router: Router) -> Router {
    router.layer(from_fn_with_state(Arc::clone(app), answer::answer))
}

/// The `OpenAPI` document that `/api/v1/openapi.json` serves where browsers connect over TLS.
pub fn description() -> Value {
    let mut api = OpenApiRouter::with_openapi(openapi::base());
    for row in ROUTES {
        api = api.routes((row.handler)());
    }
    let whole = OpenApiRouter::with_openapi(openapi::base());
    let api: OpenApiRouter<Arc<App>> = whole.nest(PREFIX, api);
    let (_, document) = api.split_for_parts();
    openapi::complete(&document, ROUTES, SessionCookie::Tls)
}

/// The REST interface with its reference, merged with the routes of `further`. All responses have a
/// correlation ID; all failures have a body.
pub fn router(app: &Arc<App>, further: Router, cookie: SessionCookie) -> Router {
    let mut api = OpenApiRouter::with_openapi(openapi::base());
    for row in ROUTES {
        let (schemas, paths, methods) = (row.handler)();
        let methods =
            methods.route_layer(from_fn_with_state((Arc::clone(app), row), admission::admit));
        api = api.routes((schemas, paths, methods));
    }
    let api = OpenApiRouter::with_openapi(openapi::base())
        .nest(PREFIX, api)
        .with_state(Arc::clone(app));
    let (router, document) = api.split_for_parts();
    let document = openapi::complete(&document, ROUTES, cookie);
    let router = router
        .merge(docs::router(&document))
        .merge(sso_browser::router(app))
        // A route and not a fallback: a fallback of merged routers would apply to all paths.
        .route("/api/v1/{*path}", any(async || StatusCode::NOT_FOUND))
        .merge(further)
        .layer(Extension(cookie));
    answering(app, router)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::constraints::{fragments, pointer};

    #[test]
    fn every_update_compares_versions() {
        for route in ROUTES {
            if matches!(route.method, PUT | PATCH) {
                assert!(route.is_versioned, "{} {}", route.method, route.path);
                assert!(route.is_tagged, "{} {}", route.method, route.path);
            }
        }
    }

    #[test]
    fn every_bound_is_of_a_field_that_is_described() {
        let document = description();
        for (schema, field, fragment) in fragments() {
            let property = document.pointer(&pointer(schema, field));
            let property = property.and_then(Value::as_object);
            assert!(property.is_some(), "{schema}.{field}");
            let property = property.unwrap();
            assert!(!property.contains_key("$ref"), "{schema}.{field}");
            for (name, value) in fragment.as_object().into_iter().flatten() {
                assert_eq!(property.get(name), Some(value), "{schema}.{field}: {name}");
            }
        }
    }
}

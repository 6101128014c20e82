//! The table of pages.

use crate::account::{
    appearance, identities, invitation, password_reset, profile, proof, second_factor, set_up,
    sign_in,
};
use crate::definition::{certificates, managed_certificates, services, upstreams};
use crate::frame::failure_page::{no_method, no_page};
use crate::organization::{
    api_keys, audit, installation, members, reset, settings, signing_keys, sso,
};
use crate::page::{Page, form, page};
use crate::ui::Ui;
use crate::view::asset;
use crate::{admission, bundle, live, node, project, rollout};
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use control_app::App;
use control_domain::Access;
use control_http::SessionCookie;
use std::sync::Arc;

/// All pages, grouped by resource. Paths equal the API's, without `/api/v1`.
#[rustfmt::skip]
pub static PAGES: &[Page] = &[
    page("/set-up", Access::SetUp, || get(set_up::show)).strict(),
    form("/set-up", Access::SetUp, || post(set_up::set_up)).strict()
        .fields(&["token", "org_name", "project_name", "user_name", "email", "password"]),

    page("/invitations/accept", Access::Invitee, || get(invitation::show)).strict(),
    form("/invitations/accept", Access::Invitee, || post(invitation::accept)).strict()
        .fields(&["token", "user_name", "email", "password"]),
    page("/invitations/join", Access::Session, || get(invitation::ask_join)),
    form("/invitations/join", Access::Session, || post(invitation::join)).strict()
        .fields(&["secret"]),

    page("/sign-in", Access::Public, || get(sign_in::show)),
    form("/sign-in", Access::Public, || post(sign_in::send)).strict()
        .fields(&["return", "email", "password"]),
    page("/sign-in/code", Access::Public, || get(sign_in::show_code)),
    form("/sign-in/code", Access::Public, || post(sign_in::send_code)).strict()
        .fields(&["return", "code"]),
    page("/sign-in/recovery", Access::Public, || get(sign_in::show_recovery)),
    form("/sign-in/recovery", Access::Public, || post(sign_in::send_recovery)).strict()
        .fields(&["return", "code"]),
    page("/sign-in/sso", Access::Public, || get(sign_in::show_sso)),
    form("/sign-out", Access::Session, || post(sign_in::sign_out)),
    page("/password-resets/use", Access::Public, || get(password_reset::show)).strict(),
    form("/password-resets/use", Access::Public, || post(password_reset::send)).strict()
        .fields(&["secret", "password"]),

    page("/profile", Access::Session, || get(profile::show)),
    form("/profile/sessions/{session}/revoke", Access::Session, || post(profile::end_session)),
    form("/profile/sessions/revoke-others", Access::Session, || post(profile::end_others)),
    form("/profile/name", Access::Session, || post(profile::rename))
        .fields(&["user_name"]),
    form("/profile/password", Access::FreshSession, || post(profile::change_password)).strict()
        .fields(&["email", "password"]),
    page("/profile/prove", Access::Session, || get(proof::show)),
    form("/profile/prove", Access::Session, || post(proof::send)).strict()
        .fields(&["return", "email", "password", "code"]),
    page("/profile/totp", Access::Session, || get(second_factor::show)),
    form("/profile/totp", Access::FreshSession, || post(second_factor::start)).strict(),
    form("/profile/totp/confirm", Access::FreshSession, || post(second_factor::confirm)).strict()
        .fields(&["code"]),
    page("/profile/totp/remove", Access::FreshSession, || get(second_factor::ask_removal)),
    form("/profile/totp/remove", Access::FreshSession, || post(second_factor::remove)).strict(),
    form("/profile/recovery-codes", Access::FreshSession, || post(second_factor::renew_codes)).strict(),
    form("/profile/identities/{identity}/unlink", Access::FreshSession, || post(identities::unlink)),

    page("/installation", Access::InstanceAdmin, || get(installation::show)),

    page("/events", Access::Session, || get(live::events)),
    form("/profile/appearance", Access::Session, || post(appearance::choose))
        .fields(&["return", "theme"]),

    page("/orgs/{org}/members", Access::ADMINISTER, || get(members::list)),
    form("/orgs/{org}/members/{user}", Access::CONTROL, || post(members::change_role))
        .fields(&["role"]),
    page("/orgs/{org}/members/{user}/remove", Access::ADMINISTER, || get(members::ask_removal)),
    form("/orgs/{org}/members/{user}/remove", Access::CONTROL, || post(members::remove)),
    form("/orgs/{org}/removed-members/{user}/readmit", Access::CONTROL, || post(members::readmit)),
    page("/orgs/{org}/members/{user}/reset-password", Access::CONTROL, || get(reset::ask)),
    form("/orgs/{org}/members/{user}/reset-password", Access::CONTROL, || post(reset::create)),
    form("/orgs/{org}/invitations", Access::CONTROL, || post(members::invite))
        .fields(&["email", "role"]),
    form("/orgs/{org}/invitations/{invitation}/withdraw", Access::CONTROL, || post(members::withdraw)),
    page("/orgs/{org}", Access::READ_ORG, || get(settings::show)),
    form("/orgs/{org}", Access::ADMINISTER, || post(settings::rename))
        .fields(&["name"]),
    form("/orgs/{org}/security", Access::CONTROL, || post(settings::secure))
        .fields(&["second_factor"]),
    page("/orgs/{org}/sso", Access::ADMINISTER, || get(sso::show)),
    page("/orgs/{org}/sso/oidc", Access::CONTROL, || get(sso::change::show_oidc)),
    form("/orgs/{org}/sso/oidc", Access::CONTROL, || post(sso::change::send_oidc))
        .fields(&[
            "version", "client_secret_id", "issuer", "client_id", "client_secret", "scopes", "group_mapping", "authorize_url",
            "token_url", "userinfo_url",
        ]),
    page("/orgs/{org}/sso/saml", Access::CONTROL, || get(sso::change::show_saml)),
    form("/orgs/{org}/sso/saml", Access::CONTROL, || post(sso::change::send_saml))
        .fields(&[
            "version", "idp_metadata_url", "sp_entity_id", "assertion_consumer_service_url", "group_mapping",
            "allow_unsolicited", "idp_entity_id", "idp_sso_url", "idp_cert_pem",
        ])
        .with_form(sso::change::MAX_FORM_BYTES),
    page("/orgs/{org}/sso/remove", Access::CONTROL, || get(sso::ask_removal)),
    form("/orgs/{org}/sso/remove", Access::CONTROL, || post(sso::remove)),
    page("/orgs/{org}/signing-keys", Access::READ_ORG, || get(signing_keys::list)),
    page("/orgs/{org}/signing-keys/rotate", Access::ADMINISTER, || get(signing_keys::ask_rotation)),
    form("/orgs/{org}/signing-keys/rotate", Access::CONTROL, || post(signing_keys::rotate)),
    page("/orgs/{org}/signing-keys/{signing_key}/deactivate", Access::ADMINISTER, || get(signing_keys::ask_end)),
    form("/orgs/{org}/signing-keys/{signing_key}/deactivate", Access::CONTROL, || post(signing_keys::end)),
    page("/api-keys", Access::READ_API_KEYS, || get(api_keys::list)),
    form("/api-keys", Access::WRITE_API_KEYS, || post(api_keys::create))
        .fields(&["org", "name", "project", "days"]).boxes("scope"),
    page("/api-keys/{api_key}/revoke", Access::WRITE_API_KEYS, || get(api_keys::ask_revocation)),
    form("/api-keys/{api_key}/revoke", Access::WRITE_API_KEYS, || post(api_keys::revoke)),
    form("/api-keys/{api_key}/delete", Access::WRITE_API_KEYS, || post(api_keys::delete)),
    page("/orgs/{org}/audit", Access::ADMINISTER, || get(audit::list)),

    page("/", Access::Session, || get(project::list::list)),
    page("/orgs/{org}/projects/new", Access::WRITE_PROJECTS, || get(project::create::show)),
    form("/orgs/{org}/projects/new", Access::WRITE_PROJECTS, || post(project::create::send))
        .fields(&["name"]),
    page("/projects/{project}", Access::READ_ORG, || get(project::overview::show)),

    page("/projects/{project}/policy", Access::READ_ORG, || get(project::settings::show)),
    form("/projects/{project}/policy", Access::CONTROL, || post(project::settings::set_policy))
        .fields(&["version", "approve", "refuse_warnings", "freeze"]),
    form("/projects/{project}", Access::WRITE_PROJECTS, || post(project::settings::rename))
        .fields(&["version", "name"]),

    page("/projects/{project}/delete", Access::CONTROL, || get(project::delete::ask)),
    form("/projects/{project}/delete", Access::CONTROL, || post(project::delete::send))
        .fields(&["name"]),

    page("/projects/{project}/webhooks", Access::ADMINISTER, || get(project::webhooks::list)),
    form("/projects/{project}/webhooks", Access::CONTROL, || post(project::webhooks::create))
        .fields(&["name", "url"]).boxes("events"),
    page("/projects/{project}/webhooks/{webhook}", Access::ADMINISTER, || get(project::webhooks::show)),
    form("/projects/{project}/webhooks/{webhook}", Access::CONTROL, || post(project::webhooks::switch))
        .fields(&["version", "enabled"]),
    form("/projects/{project}/webhooks/{webhook}/test", Access::CONTROL, || post(project::webhooks::test)),
    page("/projects/{project}/webhooks/{webhook}/rotate-secret", Access::ADMINISTER, || get(project::webhooks::ask_secret)),
    form("/projects/{project}/webhooks/{webhook}/rotate-secret", Access::CONTROL, || post(project::webhooks::rotate_secret)),
    page("/projects/{project}/webhooks/{webhook}/delete", Access::ADMINISTER, || get(project::webhooks::ask_deletion)),
    form("/projects/{project}/webhooks/{webhook}/delete", Access::CONTROL, || post(project::webhooks::delete)),

    page("/projects/{project}/enrolment-tokens", Access::READ_NODES, || get(node::enrolment::list::list)),
    page("/projects/{project}/enrolment-tokens/new", Access::WRITE_NODES, || get(node::enrolment::new::show)),
    form("/projects/{project}/enrolment-tokens/new", Access::WRITE_NODES, || post(node::enrolment::new::send))
        .fields(&["name", "max_uses", "hours", "labels"]),
    form("/projects/{project}/enrolment-tokens/{enrolment_token}/revoke", Access::WRITE_NODES, || post(node::enrolment::list::revoke)),

    page("/projects/{project}/nodes", Access::READ_NODES, || get(node::list::list)),
    page("/projects/{project}/nodes/{node}", Access::READ_NODES, || get(node::detail::show)),

    form("/projects/{project}/nodes/{node}/labels", Access::WRITE_NODES, || post(node::command::label))
        .fields(&["version", "labels"]),
    form("/projects/{project}/nodes/{node}/approve", Access::WRITE_NODES, || post(node::command::approve))
        .fields(&["labels"]),
    page("/projects/{project}/nodes/{node}/rotate-key", Access::WRITE_NODES, || get(node::key::ask)),
    form("/projects/{project}/nodes/{node}/rotate-key", Access::WRITE_NODES, || post(node::key::rotate))
        .fields(&["when"]),
    page("/projects/{project}/nodes/{node}/delete", Access::WRITE_NODES, || get(node::command::ask_deletion)),
    form("/projects/{project}/nodes/{node}/delete", Access::WRITE_NODES, || post(node::command::delete)),

    page("/projects/{project}/traffic", Access::READ_NODES, || get(project::traffic::show)),

    page("/projects/{project}/search", Access::READ_NODES, || get(project::search::show)),

    page("/projects/{project}/services", Access::READ_SERVICES, || get(services::list)),
    form("/projects/{project}/services", Access::WRITE_SERVICES, || post(services::create))
        .fields(&["name", "host", "path_prefix", "upstream", "certificate", "priority"]),
    page("/projects/{project}/services/{service}", Access::READ_SERVICES, || get(services::change::show)),
    form("/projects/{project}/services/{service}", Access::WRITE_SERVICES, || post(services::change::send))
        .fields(&["version", "name", "host", "path_prefix", "upstream", "certificate", "priority"]),
    page("/projects/{project}/services/{service}/delete", Access::WRITE_SERVICES, || get(services::ask_deletion)),
    form("/projects/{project}/services/{service}/delete", Access::WRITE_SERVICES, || post(services::delete)),
    page("/projects/{project}/upstreams", Access::READ_SERVICES, || get(upstreams::list)),
    form("/projects/{project}/upstreams", Access::WRITE_SERVICES, || post(upstreams::create))
        .fields(&["name", "targets", "load_balancing", "tls", "server_name"]),
    page("/projects/{project}/upstreams/{upstream}", Access::READ_SERVICES, || get(upstreams::change::show)),
    form("/projects/{project}/upstreams/{upstream}", Access::WRITE_SERVICES, || post(upstreams::change::send))
        .fields(&["version", "name", "targets", "load_balancing", "tls", "server_name"]),
    page("/projects/{project}/upstreams/{upstream}/delete", Access::WRITE_SERVICES, || get(upstreams::ask_deletion)),
    form("/projects/{project}/upstreams/{upstream}/delete", Access::WRITE_SERVICES, || post(upstreams::delete)),
    page("/projects/{project}/certificates", Access::READ_SERVICES, || get(certificates::list)),
    form("/projects/{project}/certificates", Access::WRITE_SERVICES, || post(certificates::change::create))
        .fields(&["name", "chain_pem", "private_key_pem", "labels"])
        .with_form(certificates::change::MAX_FORM_BYTES),
    page("/projects/{project}/certificates/{certificate}", Access::READ_SERVICES, || get(certificates::detail::show)),
    form("/projects/{project}/certificates/{certificate}", Access::WRITE_SERVICES, || post(certificates::change::replace))
        .fields(&["version", "name", "chain_pem", "private_key_pem", "labels"])
        .with_form(certificates::change::MAX_FORM_BYTES),
    page("/projects/{project}/certificates/{certificate}/delete", Access::WRITE_SERVICES, || get(certificates::change::ask_deletion)),
    form("/projects/{project}/certificates/{certificate}/delete", Access::WRITE_SERVICES, || post(certificates::change::delete)),

    page("/projects/{project}/managed-certificates", Access::READ_SERVICES, || get(managed_certificates::list)),
    form("/projects/{project}/managed-certificates", Access::WRITE_SERVICES, || post(managed_certificates::create))
        .fields(&["name", "hosts", "directory", "email", "key_type", "labels", "terms_agreed"]),
    page("/projects/{project}/managed-certificates/{managed_certificate}", Access::READ_SERVICES, || get(managed_certificates::detail::show)),
    form("/projects/{project}/managed-certificates/{managed_certificate}/renew", Access::WRITE_SERVICES, || post(managed_certificates::detail::renew)),
    page("/projects/{project}/managed-certificates/{managed_certificate}/delete", Access::WRITE_SERVICES, || get(managed_certificates::detail::ask_deletion)),
    form("/projects/{project}/managed-certificates/{managed_certificate}/delete", Access::WRITE_SERVICES, || post(managed_certificates::detail::delete)),

    page("/projects/{project}/drift", Access::READ_NODES, || get(node::drift::list)),
    page("/projects/{project}/drift/{drift}", Access::READ_NODES, || get(node::drift::detail::show)),
    form("/projects/{project}/drift/{drift}/resolve", Access::WRITE_NODES, || post(node::drift::resolve))
        .fields(&["remedy", "bundle"]),

    page("/projects/{project}/bundles", Access::READ_BUNDLES, || get(bundle::list::list)),
    page("/projects/{project}/bundles/new", Access::WRITE_BUNDLES, || get(bundle::editor::show)),
    form("/projects/{project}/bundles/new", Access::WRITE_BUNDLES, || post(bundle::editor::send))
        .fields(&["name", "text", "do"])
        .with_form(bundle::editor::MAX_FORM_BYTES),
    page("/projects/{project}/bundles/new/services", Access::WRITE_BUNDLES, || get(bundle::of_services::show)),
    form("/projects/{project}/bundles/new/services", Access::WRITE_BUNDLES, || post(bundle::of_services::send))
        .fields(&["name", "http", "https"]),
    page("/projects/{project}/bundles/{bundle}", Access::READ_BUNDLES, || get(bundle::detail::show)),
    page("/projects/{project}/bundles/{bundle}/diff", Access::READ_BUNDLES, || get(bundle::difference::show)),
    page("/projects/{project}/bundles/{bundle}/revoke", Access::WRITE_BUNDLES, || get(bundle::revoke::show)),
    form("/projects/{project}/bundles/{bundle}/revoke", Access::WRITE_BUNDLES, || post(bundle::revoke::send)),

    page("/projects/{project}/explain", Access::READ_BUNDLES, || get(bundle::explanation::show)),
    form("/projects/{project}/explain", Access::READ_BUNDLES, || post(bundle::explanation::send))
        .fields(&["method", "url", "bundle", "with", "headers", "client_ip", "listener"]),

    page("/projects/{project}/replay", Access::READ_BUNDLES, || get(bundle::replay::show)),
    form("/projects/{project}/replay", Access::READ_BUNDLES, || post(bundle::replay::send))
        .fields(&["before", "after", "recording"])
        .with_form(bundle::replay::MAX_FORM_BYTES),

    page("/projects/{project}/rollouts", Access::READ_ROLLOUTS, || get(rollout::list::list)),
    page("/projects/{project}/rollouts/new", Access::WRITE_ROLLOUTS, || get(rollout::plan::show)),
    form("/projects/{project}/rollouts/new", Access::WRITE_ROLLOUTS, || post(rollout::plan::send))
        .fields(&[
            "bundle", "labels", "batch_percent", "max_unavailable", "soak_seconds", "deadline_minutes",
            "on_failure", "needs_approval", "gate", "min_requests", "max_error_increase_permille",
            "max_p99_percent", "prometheus_url", "prometheus_query", "prometheus_min", "prometheus_max",
        ]),
    page("/projects/{project}/rollouts/{rollout}", Access::READ_ROLLOUTS, || get(rollout::detail::show)),
    page("/projects/{project}/rollouts/{rollout}/{command}", Access::WRITE_ROLLOUTS, || get(rollout::command::confirm)),
    form("/projects/{project}/rollouts/{rollout}/{command}", Access::WRITE_ROLLOUTS, || post(rollout::command::carry_out)),
];

/// Routes of all pages and their assets.
pub fn router(app: &Arc<App>, cookie: SessionCookie) -> Router {
    let ui = Arc::new(Ui::new(app, cookie));
    let mut router = Router::new();
    for page in PAGES {
        let admit = from_fn_with_state((Arc::clone(&ui), page), admission::admit);
        router = router.route(page.path, (page.handler)().route_layer(admit));
    }
    router
        .route("/assets/{name}", get(asset::serve))
        .fallback(no_page)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn(protect))
        .with_state(ui)
}

/// Content security policy: scripts, styles, images and fonts only from this server; no inline
/// code; no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Adds header fields for browsers, unless the page has set them.
async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        let value = HeaderValue::from_static(value);
        headers.entry(name).or_insert(value);
    }
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
    response
}

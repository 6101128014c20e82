//! Routes of single sign-on: an organization's settings, and identities of users.

pub(crate) mod browser;

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{CursorQuery, List};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, Call, PageOrder, SsoOverview, SsoSignIn, Versioned, acs_path};
use control_domain::{
    GroupMapping, LinkedIdentity, OidcSettings, Role, SamlSettings, SsoConnection, SsoSettings,
};
use control_wire::{IdentityId, OrgId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;
use zeroize::Zeroizing;

/// The connection to an identity provider: one of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SsoBody {
    oidc: Option<OidcBody>,
    saml: Option<SamlBody>,
}

/// OpenID Connect. Absent URLs are found in the issuer's discovery document.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OidcBody {
    #[schema(min_length = 1, max_length = 1000)]
    client_id: String,
    /// Absent: the one before, if issuer, client, endpoints and scopes are the same.
    #[schema(min_length = 1, max_length = 1000, format = "password")]
    client_secret: Option<String>,
    /// Exactly as in the discovery document.
    #[schema(max_length = 2000)]
    issuer: String,
    #[schema(max_length = 2000)]
    authorize_url: Option<String>,
    #[schema(max_length = 2000)]
    token_url: Option<String>,
    #[schema(max_length = 2000)]
    userinfo_url: Option<String>,
    /// Absent: `openid`, `email` and `profile`.
    #[serde(default)]
    #[schema(max_items = 20)]
    scopes: Vec<String>,
    /// Roles by group; `default` is the role of users without any of the groups.
    group_mapping: BTreeMap<String, Role>,
}

/// SAML 2.0. Without metadata, `idp_sso_url` and `idp_cert_pem` are needed; with it, they win.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SamlBody {
    #[schema(max_length = 2000)]
    idp_metadata_url: Option<String>,
    #[schema(max_length = 2000)]
    idp_sso_url: Option<String>,
    /// 1 to 8 certificates.
    #[schema(max_length = 65536)]
    idp_cert_pem: Option<String>,
    #[schema(min_length = 1, max_length = 1000)]
    sp_entity_id: String,
    /// Ends with `/sso/{org}/saml/acs`.
    #[schema(max_length = 2000)]
    assertion_consumer_service_url: String,
    /// Roles by group; `default` is the role of users without any of the groups.
    group_mapping: BTreeMap<String, Role>,
    /// Absent: the metadata's, or without metadata the issuer of the first accepted response.
    #[schema(min_length = 1, max_length = 1000)]
    idp_entity_id: Option<String>,
    /// True if sign-in may begin at the identity provider.
    #[serde(default)]
    allow_unsolicited: bool,
}

/// An organization's single sign-on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SsoView {
    oidc: Option<OidcView>,
    saml: Option<SamlView>,
    /// The start path of sign-in. With `?try=1`, an administrator tests the connection: the result
    /// is in `sign_ins`, without other effects.
    sign_in_path: String,
    /// The redirect URI to register at an OpenID provider; absent without the setting `public-url`.
    redirect_uri: Option<String>,
    /// The page to register at an OpenID provider for the way back after sign-out; absent without `public-url`.
    post_logout_redirect_uri: Option<String>,
    /// The path that SAML responses are posted to, and the path of this service's metadata.
    acs_path: String,
    metadata_path: String,
    /// Domains of addresses for new users; without effect if there is one organization.
    domains: Vec<String>,
    /// Newest first: the last ten confirmed by the provider, and the last ten further ones.
    sign_ins: Vec<SsoSignInView>,
}

/// OpenID Connect; the client's secret is never shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OidcView {
    client_id: String,
    issuer: String,
    authorize_url: Option<String>,
    token_url: Option<String>,
    userinfo_url: Option<String>,
    scopes: Vec<String>,
    group_mapping: BTreeMap<String, String>,
}

/// SAML 2.0
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SamlView {
    idp_metadata_url: Option<String>,
    idp_sso_url: Option<String>,
    idp_cert_pem: Option<String>,
    sp_entity_id: String,
    assertion_consumer_service_url: String,
    group_mapping: BTreeMap<String, String>,
    idp_entity_id: Option<String>,
    allow_unsolicited: bool,
}

/// A sign-in through the provider.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SsoSignInView {
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The rule that broke; null if the user was signed in.
    refusal: Option<String>,
    subject: Option<String>,
    email: Option<String>,
    role: Option<String>,
    /// The reference that the user was shown.
    correlation_id: String,
    /// True for a test by an administrator, without a session.
    is_trial: bool,
}

/// Domains of the addresses for which the organization's provider may create users.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DomainsBody {
    #[schema(max_items = 100)]
    domains: Vec<String>,
}

/// A user's name at an organization's identity provider.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LinkedIdentityView {
    id: IdentityId,
    org: OrgId,
    issuer: String,
    subject: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The last sign-in by it.
    #[schema(value_type = String, format = DateTime)]
    seen_at: Timestamp,
}

impl fmt::Debug for OidcBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OidcBody({})", self.client_id)
    }
}

impl From<&OidcSettings> for OidcView {
    fn from(settings: &OidcSettings) -> Self {
        let OidcSettings {
            client_id,
            issuer,
            authorize_url,
            token_url,
            userinfo_url,
            scopes,
            group_mapping,
        } = settings.clone();
        Self {
            client_id,
            issuer,
            authorize_url,
            token_url,
            userinfo_url,
            scopes,
            group_mapping: entries(&group_mapping),
        }
    }
}

impl From<&SamlSettings> for SamlView {
    fn from(settings: &SamlSettings) -> Self {
        let SamlSettings {
            idp_metadata_url,
            idp_sso_url,
            idp_cert_pem,
            sp_entity_id,
            assertion_consumer_service_url,
            group_mapping,
            idp_entity_id,
            allow_unsolicited,
        } = settings.clone();
        Self {
            idp_metadata_url,
            idp_sso_url,
            idp_cert_pem,
            sp_entity_id,
            assertion_consumer_service_url,
            group_mapping: entries(&group_mapping),
            idp_entity_id,
            allow_unsolicited,
        }
    }
}

impl From<SsoSignIn> for SsoSignInView {
    fn from(sign_in: SsoSignIn) -> Self {
        let SsoSignIn {
            at,
            refusal,
            subject,
            email,
            role,
            correlation_id,
            is_trial,
        } = sign_in;
        Self {
            at,
            refusal,
            subject,
            email,
            role,
            correlation_id,
            is_trial,
        }
    }
}

impl From<LinkedIdentity> for LinkedIdentityView {
    fn from(identity: LinkedIdentity) -> Self {
        let LinkedIdentity {
            id,
            org,
            issuer,
            subject,
            user: _,
            created_at,
            seen_at,
        } = identity;
        Self {
            id,
            org,
            issuer,
            subject,
            created_at,
            seen_at,
        }
    }
}

impl SsoBody {
    /// Converts the body to settings and client secret.
    fn settings(self) -> Result<(SsoSettings, Option<Zeroizing<String>>), Problem> {
        match (self.oidc, self.saml) {
            (Some(body), None) => {
                let OidcBody {
                    client_id,
                    client_secret,
                    issuer,
                    authorize_url,
                    token_url,
                    userinfo_url,
                    scopes,
                    group_mapping,
                } = body;
                let settings = OidcSettings {
                    client_id,
                    issuer,
                    authorize_url,
                    token_url,
                    userinfo_url,
                    scopes,
                    group_mapping: mapping(group_mapping)?,
                };
                let secret = client_secret.map(Zeroizing::new);
                Ok((SsoSettings::Oidc(settings), secret))
            }
            (None, Some(body)) => {
                let SamlBody {
                    idp_metadata_url,
                    idp_sso_url,
                    idp_cert_pem,
                    sp_entity_id,
                    assertion_consumer_service_url,
                    group_mapping,
                    idp_entity_id,
                    allow_unsolicited,
                } = body;
                let settings = SamlSettings {
                    idp_metadata_url,
                    idp_sso_url,
                    idp_cert_pem,
                    sp_entity_id,
                    assertion_consumer_service_url,
                    group_mapping: mapping(group_mapping)?,
                    idp_entity_id,
                    allow_unsolicited,
                };
                Ok((SsoSettings::Saml(settings), None))
            }
            (Some(_), Some(_)) | (None, None) => Err(Problem::invalid(
                "oidc",
                "needs to be there, or else `saml`",
            )),
        }
    }
}

fn mapping(mapping: BTreeMap<String, Role>) -> Result<GroupMapping, Problem> {
    let roles = mapping.into_iter();
    let names = roles.map(|(group, role)| (group, role.name().to_owned()));
    GroupMapping::parse(names.collect()).map_err(Problem::from)
}

fn entries(mapping: &GroupMapping) -> BTreeMap<String, String> {
    let entries = mapping.entries();
    entries
        .map(|(group, role)| (group.to_owned(), role.to_owned()))
        .collect()
}

async fn overview(app: &App, call: &Call, org: OrgId) -> Result<Resource<SsoView>, Problem> {
    let SsoOverview {
        connection,
        domains,
        sign_ins,
    } = app.sso(call, org).await?;
    let version = connection.as_ref().map_or(0, |found| found.version);
    let settings = connection.map(|found| {
        let SsoConnection { settings, .. } = found.value;
        settings
    });
    let (oidc, saml) = match &settings {
        Some(SsoSettings::Oidc(settings)) => (Some(OidcView::from(settings)), None),
        Some(SsoSettings::Saml(settings)) => (None, Some(SamlView::from(settings))),
        None => (None, None),
    };
    let has_address = app.sso_site.public_url.is_some();
    let view = SsoView {
        oidc,
        saml,
        sign_in_path: format!("/sso/{org}"),
        redirect_uri: has_address.then(|| app.redirect_uri(org)),
        post_logout_redirect_uri: has_address.then(|| app.post_logout_redirect_uri()),
        acs_path: acs_path(org),
        metadata_path: format!("/sso/{org}/saml/metadata"),
        domains,
        sign_ins: sign_ins.into_iter().map(SsoSignInView::from).collect(),
    };
    Ok(Resource::composed(version, view))
}

/// The organization's single sign-on.
#[utoipa::path(
    get, path = "/orgs/{org}/sso", operation_id = "get_sso", tag = "sso",
    responses((status = 200, body = SsoView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<Resource<SsoView>, Problem> {
    overview(&app, &call, org).await
}

/// Connects the organization to its identity provider, or changes the connection.
#[utoipa::path(
    put, path = "/orgs/{org}/sso", operation_id = "set_sso", tag = "sso",
    request_body = SsoBody, responses((status = 200, body = SsoView))
)]
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Body(body): Body<SsoBody>,
) -> Result<Resource<SsoView>, Problem> {
    let (settings, secret) = body.settings()?;
    app.set_sso(&call, org, settings, secret).await?;
    overview(&app, &call, org).await
}

/// Deletes the connection, and ends the sessions from the provider.
#[utoipa::path(
    delete, path = "/orgs/{org}/sso", operation_id = "delete_sso", tag = "sso",
    responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<StatusCode, Problem> {
    app.delete_sso(&call, org).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The domains of the organization. The `ETag` begins with the version of the organization.
#[utoipa::path(
    get, path = "/orgs/{org}/sso/domains", operation_id = "get_sso_domains", tag = "sso",
    responses((status = 200, body = DomainsBody))
)]
pub(crate) async fn domains(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<Resource<DomainsBody>, Problem> {
    let Versioned { value, version } = app.org_domains(&call, org).await?;
    Ok(Resource::found(version, DomainsBody { domains: value }))
}

/// Assigns domains to the organization; its provider may create users with addresses in them.
#[utoipa::path(
    put, path = "/orgs/{org}/sso/domains", operation_id = "set_sso_domains", tag = "sso",
    request_body = DomainsBody, responses((status = 200, body = DomainsBody))
)]
pub(crate) async fn set_domains(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Body(DomainsBody { domains }): Body<DomainsBody>,
) -> Result<Resource<DomainsBody>, Problem> {
    let changed = app.set_org_domains(&call, org, &domains).await?;
    let Versioned { value, version } = changed;
    Ok(Resource::found(version, DomainsBody { domains: value }))
}

/// The caller's names at identity providers, the oldest first.
#[utoipa::path(
    get, path = "/users/me/identities", operation_id = "list_identities", tag = "users",
    params(CursorQuery), responses((status = 200, body = List<LinkedIdentityView>))
)]
pub(crate) async fn identities(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Query(query): Query<CursorQuery>,
) -> Result<Json<List<LinkedIdentityView>>, Problem> {
    let page = query.page(PageOrder::Oldest)?;
    let found = app.identities(&call, page.page).await?;
    let views = found.into_iter().map(LinkedIdentityView::from).collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Unlinks an identity, and ends the sessions from its provider.
#[utoipa::path(
    delete, path = "/users/me/identities/{identity}", operation_id = "unlink_identity", tag = "users",
    responses((status = 204))
)]
pub(crate) async fn unlink(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(identity): Path<IdentityId>,
) -> Result<StatusCode, Problem> {
    app.unlink_identity(&call, identity).await?;
    Ok(StatusCode::NO_CONTENT)
}

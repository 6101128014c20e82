//! Forms for a connection by OpenID Connect or SAML.

use super::redirect_uri;
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{NO_VERSION, Versioned, acs_path};
use control_domain::{GroupMapping, OidcSettings, SamlSettings, SsoConnection, SsoSettings};
use control_wire::{OrgId, SecretId};
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Maximum size of a SAML form: eight certificates and 500 groups, URL-encoded.
pub(crate) const MAX_FORM_BYTES: usize = 512 * 1024;

const GROUPS: &str = "group_mapping";
/// Hidden field with the identifier of the secret that was stored when the page was shown. It is no
/// secret; another identifier means that the secret was replaced.
const SECRET_ID: &str = "client_secret_id";

#[derive(Template)]
#[template(path = "sso_change.html")]
struct ChangePage {
    frame: Frame,
    org: OrgId,
    heading: &'static str,
    form: Form,
    is_oidc: bool,
    /// Callback URL to register at the provider.
    redirect_uri: String,
    /// Public URL of the installation; OpenID Connect is refused without one.
    public_url: Option<String>,
    /// Whether the form replaces an existing connection.
    is_connected: bool,
    keeps_secret: bool,
}

/// The protocol of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Oidc,
    Saml,
}

/// The form of OpenID Connect.
pub(crate) async fn show_oidc(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    show(&ui, &caller, org, Protocol::Oidc).await
}

/// The form of SAML.
pub(crate) async fn show_saml(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    show(&ui, &caller, org, Protocol::Saml).await
}

/// Connects by OpenID Connect.
pub(crate) async fn send_oidc(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let settings = oidc(&fields).map(SsoSettings::Oidc);
    let secret = fields.given("client_secret").map(str::to_owned);
    let secret = secret.map(Zeroizing::new);
    send(
        &ui,
        &caller,
        org,
        Protocol::Oidc,
        fields,
        settings.map(|one| (one, secret)),
    )
    .await
}

/// Connects by SAML.
pub(crate) async fn send_saml(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let settings = saml(&fields).map(SsoSettings::Saml);
    send(
        &ui,
        &caller,
        org,
        Protocol::Saml,
        fields,
        settings.map(|one| (one, None)),
    )
    .await
}

async fn show(
    ui: &Ui,
    caller: &Caller,
    org: OrgId,
    protocol: Protocol,
) -> Result<Response, Failure> {
    let found = ui.app.sso(&caller.call, org).await?.connection;
    let version = version(found.as_ref());
    let connection = found.map(|found| found.value);
    let settings = connection
        .as_ref()
        .map(|found| (&found.settings, found.secret));
    let fields = match (protocol, settings) {
        (Protocol::Oidc, Some((SsoSettings::Oidc(settings), id))) => oidc_fields(settings, id),
        (Protocol::Saml, Some((SsoSettings::Saml(settings), _))) => saml_fields(settings),
        (Protocol::Oidc, _) => Fields::filled(&[
            ("scopes", "openid email profile"),
            (GROUPS, "default = reader"),
        ]),
        (Protocol::Saml, _) => {
            let base = ui.server_url(&caller.visit);
            Fields::filled(&[
                ("sp_entity_id", &format!("{base}/sso/{org}/saml/metadata")),
                (
                    "assertion_consumer_service_url",
                    &format!("{base}{}", acs_path(org)),
                ),
                (GROUPS, "default = reader"),
            ])
        }
    };
    respond(
        ui,
        caller,
        org,
        protocol,
        Form::new(&caller.visit.csrf, fields.with("version", &version)),
    )
    .await
}

/// Version of the connection for the form, or the mark that there is none.
fn version(found: Option<&Versioned<SsoConnection>>) -> String {
    found.map_or(NO_VERSION, |found| found.version).to_string()
}

/// Values of the stored connection, to compare with those of a form of this protocol.
fn stored(protocol: Protocol, found: Option<&Versioned<SsoConnection>>) -> Fields {
    let settings = found.map(|found| (&found.value.settings, found.value.secret));
    let fields = match (protocol, settings) {
        (Protocol::Oidc, Some((SsoSettings::Oidc(settings), id))) => oidc_fields(settings, id),
        (Protocol::Saml, Some((SsoSettings::Saml(settings), _))) => saml_fields(settings),
        (_, Some((other, _))) => Fields::filled(&[("connection", other.protocol())]),
        (_, None) => Fields::default(),
    };
    fields.with("version", &version(found))
}

/// After a conflict, shows the stored values beside those of the form. A secret that was replaced in
/// the meantime is shown as replaced, without its value.
fn beside(form: Form, protocol: Protocol, found: Option<&Versioned<SsoConnection>>) -> Form {
    let stored = stored(protocol, found);
    let seen = form.value(SECRET_ID).to_owned();
    if stored.get(SECRET_ID) == seen {
        return form.beside(&stored, &[]);
    }
    let entered = match form.value("client_secret") {
        "" => "kept",
        _ => "another one",
    };
    let replaced = (
        stored.get(SECRET_ID).to_owned(),
        "replaced in the meantime".to_owned(),
    );
    form.beside(&stored, &[replaced, (seen, entered.to_owned())])
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    org: OrgId,
    protocol: Protocol,
    form: Form,
) -> Result<Response, Failure> {
    let frame = Frame::org(ui, caller, org, NavEntry::Sso.titled("Single sign-on")).await?;
    let found = ui.app.sso(&caller.call, org).await?.connection;
    let form = beside(form, protocol, found.as_ref());
    let connected = found.map(|found| found.value.settings);
    Ok(shown(&ChangePage {
        frame,
        org,
        heading: match protocol {
            Protocol::Oidc => "Sign in through an OpenID provider.",
            Protocol::Saml => "Sign in through a SAML identity provider.",
        },
        form,
        is_oidc: protocol == Protocol::Oidc,
        redirect_uri: redirect_uri(&ui.server_url(&caller.visit), org),
        public_url: ui.app.sso_site.public_url.clone(),
        is_connected: connected.is_some(),
        keeps_secret: matches!(connected, Some(SsoSettings::Oidc(_))),
    }))
}

async fn send(
    ui: &Ui,
    caller: &Caller,
    org: OrgId,
    protocol: Protocol,
    fields: Fields,
    settings: Result<(SsoSettings, Option<Zeroizing<String>>), Faults>,
) -> Result<Response, Failure> {
    let faults = match settings {
        Err(faults) => faults,
        Ok((settings, secret)) => {
            let call = caller.versioned(&fields);
            match ui.app.set_sso(&call, org, settings, secret).await {
                Ok(_) => {
                    let note = Note::good(
                        "The connection is saved. Sign in through it in another browser to try it.",
                    );
                    return Ok(note.at(&format!("/orgs/{org}/sso"), ui.cookie));
                }
                Err(error) => Faults::from_error(error)?,
            }
        }
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(ui, caller, org, protocol, form)
        .await
        .map(unprocessable)
}

fn oidc(fields: &Fields) -> Result<OidcSettings, Faults> {
    let optional = |name: &str| fields.given(name).map(str::to_owned);
    Ok(OidcSettings {
        client_id: fields.get("client_id").trim().to_owned(),
        issuer: fields.get("issuer").trim().to_owned(),
        authorize_url: optional("authorize_url"),
        token_url: optional("token_url"),
        userinfo_url: optional("userinfo_url"),
        scopes: fields
            .get("scopes")
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        group_mapping: mapping(fields)?,
    })
}

fn saml(fields: &Fields) -> Result<SamlSettings, Faults> {
    let optional = |name: &str| fields.given(name).map(str::to_owned);
    Ok(SamlSettings {
        idp_metadata_url: optional("idp_metadata_url"),
        idp_sso_url: optional("idp_sso_url"),
        idp_cert_pem: optional("idp_cert_pem"),
        sp_entity_id: fields.get("sp_entity_id").trim().to_owned(),
        assertion_consumer_service_url: fields
            .get("assertion_consumer_service_url")
            .trim()
            .to_owned(),
        group_mapping: mapping(fields)?,
        idp_entity_id: optional("idp_entity_id"),
        allow_unsolicited: fields.get("allow_unsolicited") == "yes",
    })
}

/// Parses lines such as `edge-operators = operator`. Names of groups may contain `=`, roles do not.
fn mapping(fields: &Fields) -> Result<GroupMapping, Faults> {
    let mut groups = BTreeMap::new();
    let lines = fields.get(GROUPS).lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty()) {
        let (group, role) = line.rsplit_once('=').ok_or_else(|| {
            let reason = format!("has the line {line:?}, which is not group = role");
            Faults::from_field(GROUPS, reason)
        })?;
        let (group, role) = (group.trim().to_owned(), role.trim().to_owned());
        if groups.insert(group.clone(), role).is_some() {
            let reason = format!("names {group:?} twice");
            return Err(Faults::from_field(GROUPS, reason));
        }
    }
    GroupMapping::parse(groups).map_err(Faults::from_refusal)
}

fn oidc_fields(settings: &OidcSettings, secret: SecretId) -> Fields {
    let OidcSettings {
        client_id,
        issuer,
        authorize_url,
        token_url,
        userinfo_url,
        scopes,
        group_mapping,
    } = settings;
    Fields::filled(&[
        (SECRET_ID, &secret.to_string()),
        ("client_id", client_id),
        ("issuer", issuer),
        (
            "authorize_url",
            authorize_url.as_deref().unwrap_or_default(),
        ),
        ("token_url", token_url.as_deref().unwrap_or_default()),
        ("userinfo_url", userinfo_url.as_deref().unwrap_or_default()),
        ("scopes", &scopes.join(" ")),
        (GROUPS, &lines(group_mapping)),
    ])
}

fn saml_fields(settings: &SamlSettings) -> Fields {
    let SamlSettings {
        idp_metadata_url,
        idp_sso_url,
        idp_cert_pem,
        sp_entity_id,
        assertion_consumer_service_url,
        group_mapping,
        idp_entity_id,
        allow_unsolicited,
    } = settings;
    Fields::filled(&[
        (
            "idp_metadata_url",
            idp_metadata_url.as_deref().unwrap_or_default(),
        ),
        ("idp_sso_url", idp_sso_url.as_deref().unwrap_or_default()),
        ("idp_cert_pem", idp_cert_pem.as_deref().unwrap_or_default()),
        ("sp_entity_id", sp_entity_id),
        (
            "assertion_consumer_service_url",
            assertion_consumer_service_url,
        ),
        (
            "idp_entity_id",
            idp_entity_id.as_deref().unwrap_or_default(),
        ),
        (
            "allow_unsolicited",
            if *allow_unsolicited { "yes" } else { "" },
        ),
        (GROUPS, &lines(group_mapping)),
    ])
}

fn lines(mapping: &GroupMapping) -> String {
    let lines = mapping
        .entries()
        .map(|(group, role)| format!("{group} = {role}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_app::Error;
    use jiff::Timestamp;
    use uuid::Uuid;

    #[test]
    fn a_client_secret_that_was_replaced_is_not_replaced_unseen() {
        let mapping = mapping(&Fields::filled(&[(GROUPS, "default = reader")])).unwrap();
        let settings = OidcSettings {
            client_id: "controld".to_owned(),
            issuer: "https://id.example.com".to_owned(),
            authorize_url: None,
            token_url: None,
            userinfo_url: None,
            scopes: vec!["openid".to_owned()],
            group_mapping: mapping,
        };
        let (seen, secret) = (SecretId(Uuid::from_u128(1)), SecretId(Uuid::from_u128(2)));
        let connection = SsoConnection {
            org: OrgId(Uuid::nil()),
            settings: SsoSettings::Oidc(settings.clone()),
            secret,
            created_at: Timestamp::UNIX_EPOCH,
        };
        let found = Versioned {
            value: connection,
            version: 5,
        };
        for (typed, shown) in [
            ("", "<code>kept</code>"),
            ("new", "<code>another one</code>"),
        ] {
            let fields = oidc_fields(&settings, seen).with("version", "4");
            let fields = fields.with("client_secret", typed);
            let faults = Faults::from_error(Error::Precondition).unwrap();
            let form = Form::refused("token", fields, faults);
            let form = beside(form, Protocol::Oidc, Some(&found));
            let head = form.head().to_string();
            for part in ["replaced in the meantime", shown, "value=\"5\""] {
                assert!(head.contains(part), "{part}: {head}");
            }
            assert_eq!(head.matches(": stored").count(), 1, "{head}");
            // Sent again, the form has seen the replacement.
            assert_eq!(form.value(SECRET_ID), secret.to_string());
        }
    }

    #[test]
    fn groups_are_read_line_by_line_and_kept_unchanged() {
        let written = "a = b = admin\r\n\r\ndefault=reader";
        let mapping = mapping(&Fields::filled(&[(GROUPS, written)])).unwrap();
        assert_eq!(lines(&mapping), "a = b = admin\ndefault = reader");
        for wrong in ["operators", "a = admin\na = reader", "a = king", ""] {
            let faults = super::mapping(&Fields::filled(&[(GROUPS, wrong)])).unwrap_err();
            assert_eq!(faults.iter().next().unwrap().0, GROUPS, "{wrong:?}");
        }
    }
}

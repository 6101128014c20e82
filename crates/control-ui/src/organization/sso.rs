//! Page of an organization's single sign-on: connection, URLs to register, recent sign-ins.

pub(crate) mod change;

use crate::frame::confirmation::confirmation;
use crate::frame::form::Faults;
use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, Status, Tone, when};
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use crate::view::phrase::sentence;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{SsoOverview, SsoSignIn, acs_path};
use control_domain::{OidcSettings, SamlSettings, SsoSettings};
use control_wire::OrgId;
use jiff::Timestamp;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "sso.html")]
struct SsoPage {
    frame: Frame,
    org: OrgId,
    heading: String,
    /// Protocol, as in the path of its form; `None` without a connection.
    protocol: Option<&'static str>,
    facts: Vec<(&'static str, String)>,
    addresses: Vec<(&'static str, String)>,
    groups: Vec<(String, String)>,
    domains: Vec<String>,
    sign_ins: Vec<Row>,
    has_public_url: bool,
}

/// A sign-in through the provider.
struct Row {
    at: RelativeTime,
    who: String,
    status: Status,
    refusal: String,
    role: String,
    reference: String,
}

/// Shows the connection and its recent sign-ins.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let frame = Frame::org(&ui, &caller, org, NavEntry::Sso.titled("Single sign-on")).await?;
    let SsoOverview {
        connection,
        domains,
        sign_ins,
    } = ui.app.sso(&caller.call, org).await?;
    let settings = connection.map(|found| found.value.settings);
    let groups = settings
        .iter()
        .flat_map(|settings| settings.group_mapping().entries());
    let groups = groups.map(|(group, role)| (group.to_owned(), role.to_owned()));
    Ok(shown(&SsoPage {
        frame,
        org,
        heading: heading(settings.as_ref(), sign_ins.first()),
        protocol: settings.as_ref().map(SsoSettings::protocol),
        facts: settings.as_ref().map(facts).unwrap_or_default(),
        addresses: addresses(&ui.server_url(&caller.visit), org),
        groups: groups.collect(),
        domains,
        sign_ins: sign_ins
            .into_iter()
            .map(|one| row(one, caller.visit.now))
            .collect(),
        has_public_url: ui.app.sso_site.public_url.is_some(),
    }))
}

fn heading(settings: Option<&SsoSettings>, last: Option<&SsoSignIn>) -> String {
    let Some(settings) = settings else {
        return "Members sign in with their passwords.".to_owned();
    };
    let provider = provider(settings);
    match last.and_then(|last| last.refusal.as_ref()) {
        Some(_) => format!("The last sign-in through {provider} was refused."),
        None => format!("Members sign in through {provider}."),
    }
}

/// Host of the provider, or its name.
fn provider(settings: &SsoSettings) -> String {
    let named = match settings {
        SsoSettings::Oidc(settings) => Some(settings.issuer.as_str()),
        SsoSettings::Saml(settings) => {
            let url = settings.idp_metadata_url.as_ref();
            let url = url.or(settings.idp_sso_url.as_ref());
            url.or(settings.idp_entity_id.as_ref()).map(String::as_str)
        }
    };
    let named = named.unwrap_or("an identity provider");
    let host = named.split_once("://").map(|(_, rest)| rest);
    let host = host.and_then(|rest| rest.split(['/', '?']).next());
    host.unwrap_or(named).to_owned()
}

fn facts(settings: &SsoSettings) -> Vec<(&'static str, String)> {
    let found = |text: &Option<String>, otherwise: &str| {
        text.clone().unwrap_or_else(|| otherwise.to_owned())
    };
    match settings {
        SsoSettings::Oidc(settings) => {
            let OidcSettings {
                client_id,
                issuer,
                authorize_url,
                token_url,
                userinfo_url,
                scopes,
                group_mapping: _, // It has a table.
            } = settings;
            let discovered = "From discovery";
            vec![
                ("Protocol", "OpenID Connect".to_owned()),
                ("Issuer", issuer.clone()),
                ("Client", client_id.clone()),
                ("Authorization endpoint", found(authorize_url, discovered)),
                ("Token endpoint", found(token_url, discovered)),
                ("User info endpoint", found(userinfo_url, discovered)),
                ("Scopes", scopes.join(" ")),
            ]
        }
        SsoSettings::Saml(settings) => {
            let SamlSettings {
                idp_metadata_url,
                idp_sso_url,
                idp_cert_pem,
                sp_entity_id,
                assertion_consumer_service_url,
                group_mapping: _, // It has a table.
                idp_entity_id,
                allow_unsolicited,
            } = settings;
            let read = "From the metadata";
            let certificates = match idp_cert_pem {
                Some(_) => "Given here".to_owned(),
                None => read.to_owned(),
            };
            let begins = if *allow_unsolicited {
                "Here and at the provider"
            } else {
                "Here alone"
            };
            vec![
                ("Protocol", "SAML 2.0".to_owned()),
                ("Metadata of the provider", found(idp_metadata_url, "None")),
                ("Entity ID of the provider", found(idp_entity_id, read)),
                ("Sign-in URL of the provider", found(idp_sso_url, read)),
                ("Certificates of the provider", certificates),
                ("Entity ID of this service", sp_entity_id.clone()),
                ("Response URL", assertion_consumer_service_url.clone()),
                ("Sign-in begins", begins.to_owned()),
            ]
        }
    }
}

/// URLs to register at the provider.
fn addresses(base: &str, org: OrgId) -> Vec<(&'static str, String)> {
    vec![
        ("Sign-in of the members", format!("{base}/sso/{org}")),
        ("Redirect URI (OpenID Connect)", redirect_uri(base, org)),
        (
            "Assertion consumer service (SAML)",
            format!("{base}{}", acs_path(org)),
        ),
        (
            "Metadata of this service (SAML)",
            format!("{base}/sso/{org}/saml/metadata"),
        ),
    ]
}

/// OpenID Connect's callback URL on this server.
fn redirect_uri(base: &str, org: OrgId) -> String {
    format!("{base}/sso/{org}/oidc/callback")
}

fn row(sign_in: SsoSignIn, now: Timestamp) -> Row {
    let SsoSignIn {
        at,
        refusal,
        subject,
        email,
        role,
        correlation_id,
        is_trial,
    } = sign_in;
    let status = match refusal {
        None if is_trial => Status::new(Tone::Ok, "ok", "Tried"),
        None => Status::new(Tone::Ok, "ok", "Signed in"),
        Some(_) => Status::new(Tone::Bad, "bad", "Refused"),
    };
    Row {
        at: when(at, now),
        who: email.or(subject).unwrap_or_default(),
        status,
        refusal: refusal.map(|rule| sentence(&rule)).unwrap_or_default(),
        role: role.unwrap_or_default(),
        reference: correlation_id,
    }
}

/// The confirmation page of switching single sign-on off.
pub(crate) async fn ask_removal(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let found = ui.app.sso(&caller.call, org).await?.connection;
    let settings = found.ok_or_else(Failure::not_found)?.value.settings;
    let frame = Frame::org(&ui, &caller, org, NavEntry::Sso.titled("Switch off")).await?;
    let back = format!("/orgs/{org}/sso");
    Ok(confirmation(frame, Confirm {
            over: Link {
                text: "Single sign-on".to_owned(),
                path: back.clone(),
            },
            heading: format!("Stop sign-in through {}?", provider(&settings)),
            effects: vec![
                "Sessions from the provider end at once.".to_owned(),
                "Members without a password cannot sign in until they get a reset link; their links to the provider \
                 stay, for another connection to it."
                    .to_owned(),
            ],
            action: format!("{back}/remove"),
            back,
            csrf: caller.visit.csrf.clone(),
            button: "Switch single sign-on off".to_owned(),
        }))
}

/// Switches single sign-on off.
pub(crate) async fn remove(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let note = match ui.app.delete_sso(&caller.call, org).await {
        Ok(()) => Note::good("Single sign-on is off."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/orgs/{org}/sso"), ui.cookie))
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_domain::GroupMapping;

    fn oidc() -> SsoSettings {
        SsoSettings::Oidc(OidcSettings {
            client_id: "controld".to_owned(),
            issuer: "https://id.example.com/tenant".to_owned(),
            authorize_url: None,
            token_url: None,
            userinfo_url: None,
            scopes: Vec::new(),
            group_mapping: GroupMapping::default(),
        })
    }

    #[test]
    fn the_heading_says_how_members_sign_in_and_whether_it_works() {
        let sign_in = |refusal: Option<&str>| SsoSignIn {
            at: Timestamp::UNIX_EPOCH,
            refusal: refusal.map(str::to_owned),
            subject: None,
            email: None,
            role: None,
            correlation_id: String::new(),
            is_trial: false,
        };
        let refused = sign_in(Some("the user has no role"));
        assert_eq!(heading(None, None), "Members sign in with their passwords.");
        let oidc = oidc();
        for last in [None, Some(&sign_in(None))] {
            let reported = heading(Some(&oidc), last);
            assert_eq!(reported, "Members sign in through id.example.com.");
        }
        assert_eq!(
            heading(Some(&oidc), Some(&refused)),
            "The last sign-in through id.example.com was refused."
        );
    }
}

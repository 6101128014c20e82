//! Settings of an organization: name, second factor, limits.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, foot, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::phrase::{count, number};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::OrgLimits;
use control_domain::{Access, OrgSecurity, Quotas, Retention, Tenant};
use control_wire::OrgId;
use std::sync::Arc;

/// Minimum percentage of a quota that counts as nearly used up.
const NEARLY_FULL_PERCENT: u64 = 90;

#[derive(Template)]
#[template(path = "org.html")]
struct OrgPage {
    frame: Frame,
    org: OrgId,
    heading: String,
    form: Form,
    quotas: Vec<QuotaRow>,
    retention: Vec<(&'static str, String)>,
    /// Whether sessions need a second factor; `None` if the actor may not read it.
    demanded: Option<bool>,
    csrf: String,
    foot: Option<String>,
}

/// A quota with its current use.
struct QuotaRow {
    noun: &'static str,
    used: String,
    limit: String,
    percent: u64,
}

/// Shows the settings.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let name = ui.app.org(&caller.call, org).await?.value.name.to_string();
    let fields = Fields::filled(&[("name", &name)]);
    respond(&ui, &caller, org, Form::new(&caller.visit.csrf, fields)).await
}

async fn respond(ui: &Ui, caller: &Caller, org: OrgId, form: Form) -> Result<Response, Failure> {
    let frame = Frame::org(ui, caller, org, NavEntry::OrgSettings.titled("Settings")).await?;
    let tenant = Tenant::org(org);
    let OrgLimits {
        quotas,
        used,
        retention,
    } = ui.app.org_limits(&caller.call, org).await?;
    let demanded = if caller.may(Access::ADMINISTER, tenant) {
        let security = ui.app.org_security(&caller.call, org).await?.value;
        Some(security.second_factor)
    } else {
        None
    };
    let rows = quota_rows(&quotas, &used);
    Ok(shown(&OrgPage {
        frame,
        org,
        heading: heading(&rows),
        form,
        quotas: rows,
        retention: retention_rows(&retention),
        demanded,
        csrf: caller.visit.csrf.clone(),
        foot: foot(
            caller,
            Access::ADMINISTER,
            tenant,
            "rename the organization and demand second factors",
        ),
    }))
}

fn heading(rows: &[QuotaRow]) -> String {
    let fullest = rows.iter().max_by_key(|row| row.percent);
    match fullest {
        Some(row) if 100 <= row.percent => format!("The quota of {} is used up.", row.noun),
        Some(row) if NEARLY_FULL_PERCENT <= row.percent => {
            format!("The quota of {} is nearly used up.", row.noun)
        }
        Some(_) | None => "The organization is within its quotas.".to_owned(),
    }
}

fn quota_rows(quotas: &Quotas, used: &Quotas) -> Vec<QuotaRow> {
    let Quotas {
        projects,
        nodes,
        api_keys,
        bundles,
        archive_bytes,
        webhooks,
    } = *quotas;
    let plain = |value: u64| number(i64::try_from(value).unwrap_or(i64::MAX));
    let row = |noun, used: u64, limit: u64, words: fn(u64) -> String| QuotaRow {
        noun,
        used: words(used),
        limit: words(limit),
        percent: used.saturating_mul(100) / limit.max(1),
    };
    vec![
        row("projects", used.projects, projects, plain),
        row("nodes", used.nodes, nodes, plain),
        row("API keys", used.api_keys, api_keys, plain),
        row("bundles", used.bundles, bundles, plain),
        row("archives", used.archive_bytes, archive_bytes, mebibytes),
        row("webhooks", used.webhooks, webhooks, plain),
    ]
}

fn mebibytes(bytes: u64) -> String {
    let mebibytes = bytes.div_ceil(1024 * 1024);
    format!(
        "{} MiB",
        number(i64::try_from(mebibytes).unwrap_or(i64::MAX))
    )
}

fn retention_rows(retention: &Retention) -> Vec<(&'static str, String)> {
    let Retention {
        rollouts,
        bundles,
        drift,
        tokens,
        audit,
        traffic,
    } = *retention;
    let days = |days: u32, since: &str| match days {
        0 => "Kept for ever".to_owned(),
        days => format!("{} {since}", count(i64::from(days), "day")),
    };
    vec![
        ("Rollouts", days(rollouts, "after their end")),
        (
            "Bundles",
            days(bundles, "after they were created, if nothing needs them"),
        ),
        ("Drift events", days(drift, "after they were resolved")),
        (
            "Enrolment tokens and API keys",
            days(tokens, "after they ended"),
        ),
        (
            "Audit entries",
            days(audit, "after they were written; their archives stay"),
        ),
        (
            "Traffic over time",
            days(traffic, "after it was counted; shorter steps go earlier"),
        ),
    ]
}

/// Renames the organization.
pub(crate) async fn rename(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let name = fields.get("name").trim().to_owned();
    match ui.app.rename_org(&caller.call, org, &name).await {
        Ok(_) => {
            let note = Note::good(format!("The organization is called {name} now."));
            Ok(note.at(&format!("/orgs/{org}"), ui.cookie))
        }
        Err(error) => {
            let form = Form::refused(&caller.visit.csrf, fields, Faults::from_error(error)?);
            respond(&ui, &caller, org, form).await.map(unprocessable)
        }
    }
}

/// Requires a second factor of members, or stops requiring it.
pub(crate) async fn secure(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let security = OrgSecurity {
        second_factor: fields.get("second_factor") == "demanded",
    };
    let changed = ui.app.set_org_security(&caller.call, org, security).await;
    let note = match changed {
        Ok(_) if security.second_factor => {
            Note::good("Members without a second factor have no access until they have one.")
        }
        Ok(_) => Note::good("A password alone signs members in."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/orgs/{org}"), ui.cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_names_the_quota_that_ends_first() {
        let quotas = Quotas::default();
        let used = |nodes| Quotas {
            projects: 1,
            nodes,
            api_keys: 0,
            bundles: 0,
            archive_bytes: 1,
            webhooks: 0,
        };
        let heading = |nodes| heading(&quota_rows(&quotas, &used(nodes)));
        assert_eq!(heading(10), "The organization is within its quotas.");
        assert_eq!(heading(45_000), "The quota of nodes is nearly used up.");
        assert_eq!(heading(50_000), "The quota of nodes is used up.");
    }

    #[test]
    fn days_that_are_zero_have_no_end() {
        let retention = Retention {
            rollouts: 0,
            ..Retention::default()
        };
        let rows = retention_rows(&retention);
        assert_eq!(rows[0].1, "Kept for ever");
        assert_eq!(rows[2].1, "90 days after they were resolved");
        let audit = rows.iter().find(|(noun, _)| *noun == "Audit entries");
        let expected = "400 days after they were written; their archives stay";
        assert_eq!(audit.unwrap().1, expected);
    }
}

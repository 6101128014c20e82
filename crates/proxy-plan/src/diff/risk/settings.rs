//! The class of a changed setting of a part that stays.

mod access;
mod agents;
mod caching;
mod headers;
mod limits;
mod listeners;
mod networks;
mod records;
mod targets;
mod values;

use super::Compared;
use super::class::RiskClass;
use crate::diff::parts::Change;
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::listeners as listener_rows;
use proxy_model::registry::policies::{self, cors, error_pages, rewrite};
use proxy_model::registry::routes::{self, answers};
use values::{Classified, Routes, added, becomes_true, instead, listed, missing, number, texts};

pub(super) use agents::{is_new_and_open, same_agent};
pub(super) use limits::{rate_limit_risk, rate_limit_risks};
pub(super) use listeners::default_certificate_risks;
pub(super) use networks::{network_changes, network_risks};
pub(super) use targets::{same_upstream, target_risks};

/// The class of a setting's change with its text; `None` for a change in no class. Settings of rate
/// limits, targets and networks are compared together, by [`rate_limit_risks`], [`target_risks`]
/// and [`network_risks`].
pub(super) fn classified(
    compared: &Compared<'_>,
    change: &SettingChange,
    routes: Routes<'_>,
) -> Classified {
    agents::risk(compared, change)
        .or_else(|| headers::risk(change))
        .or_else(|| request_risk(change))
        .or_else(|| answer_risk(change))
        .or_else(|| caching::risk(change, routes))
        .or_else(|| records::risk(change))
        .or_else(|| access::risk(change, routes))
        .or_else(|| listeners::risk(change))
        .or_else(|| targets::risk(compared, change))
        .or_else(|| limits::risk(compared, change, routes))
}

/// The risk of requests that go to another route or path, are held until complete, or are copied.
fn request_risk(change: &SettingChange) -> Classified {
    let row = change.row;
    if row == listener_rows::DEFAULT_ROUTE.path && change.change != Change::Removed {
        let text = format!(
            "requests without a route go to {}",
            listed(&texts(&change.after))
        );
        return Some((RiskClass::DefaultRouteChanged, text));
    }
    let held = [
        policies::BUFFER_REQUESTS.path,
        policies::BUFFER_RESPONSES.path,
    ];
    if held.contains(&row) && becomes_true(change) {
        return Some((
            RiskClass::BodyHeld,
            format!("holds bodies: `{}`", change.path),
        ));
    }
    if row.starts_with(rewrite::REWRITE.path) {
        let text = format!("the upstream gets other paths: {}", instead(change));
        return Some((RiskClass::RequestsMoved, text));
    }
    let is_copied = row == policies::SHADOW_UPSTREAM.path && change.change != Change::Removed
        || row == policies::SHADOW_PERCENT.path
            && number(&change.before).unwrap_or(0.0) < number(&change.after).unwrap_or(0.0);
    is_copied.then(|| {
        let text = format!(
            "a second upstream gets copies of requests: {}",
            instead(change)
        );
        (RiskClass::RequestsCopied, text)
    })
}

/// The risk of other answers by the proxy itself, and of other permissions for pages of other
/// sites.
fn answer_risk(change: &SettingChange) -> Classified {
    let row = change.row;
    let own = [
        routes::STATIC_FILES.path,
        routes::SERVICE_TYPE.path,
        answers::REDIRECT.path,
        answers::RESPOND.path,
    ];
    // Clients get another coding of the same file.
    let is_coding = row == routes::STATIC_PRECOMPRESSED.path;
    if own.iter().any(|block| row.starts_with(block)) && !is_coding {
        return Some((RiskClass::AnswerChanged, instead(change)));
    }
    let pages = [
        error_pages::LISTENER_ERROR_PAGE.path,
        error_pages::ERROR_PAGE.path,
    ];
    if pages.iter().any(|block| row.starts_with(block)) && !is_page_of_one_status(change) {
        let text = format!("another page for errors of the proxy: {}", instead(change));
        return Some((RiskClass::AnswerChanged, text));
    }
    let is_permission = row.starts_with(cors::CORS.path)
        && (row != cors::MAX_AGE.path || change.change != Change::Changed)
        && !permits_more(change);
    is_permission.then(|| (RiskClass::CrossOriginChanged, instead(change)))
}

/// Returns true if an error page is new and for one status. Pages for a whole class are left out:
/// programs read those errors, too.
fn is_page_of_one_status(change: &SettingChange) -> bool {
    change.change == Change::Added && !change.path.contains("xx\"]")
}

/// Returns true if pages of other sites get permission for further origins, methods or headers by
/// name, and lose none. A pattern may permit unknown sites.
fn permits_more(change: &SettingChange) -> bool {
    let lists = [
        cors::ALLOW_ORIGINS.path,
        cors::ALLOW_METHODS.path,
        cors::ALLOW_HEADERS.path,
        cors::EXPOSE_HEADERS.path,
    ];
    lists.contains(&change.row)
        && change.change == Change::Changed
        && missing(change).is_empty()
        && !added(change).iter().any(|new| new.contains('*'))
}

//! The risk of changes to the admission of clients: trusted proxies, passwords, tokens.

use super::values::{
    Classified, Routes, added, becomes, becomes_true, instead, missing, number, shown,
};
use crate::diff::parts::Change;
use crate::diff::risk::class::RiskClass;
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::listeners;
use proxy_model::registry::policies::{self, basic_auth, jwt};
use proxy_model::{RequestRate, Route};
use serde_json::Value;

/// Tolerated clock skew in seconds that is never a risk, even if it was smaller before.
const USUAL_SKEW: f64 = 60.0;

/// Maximum growth of the tolerated clock skew, as a factor, without a risk.
const SKEW_FACTOR: f64 = 2.0;

/// Minimum factor of a risky growth of the rate of password attempts.
const MORE_GUESSES: f64 = 10.0;

/// Minimum factor of a risky decrease in the rate of password attempts: it locks users out.
const FEWER_GUESSES: f64 = 2.0;

pub(super) fn risk(change: &SettingChange, routes: Routes<'_>) -> Classified {
    trust_risk(change)
        .or_else(|| attempts_risk(change))
        .or_else(|| credentials_risk(change))
        .or_else(|| token_risk(change))
        .or_else(|| token_place_risk(change, routes))
}

/// The risk of other trusted proxies, of ambiguous paths, and of credentials that leave the proxy.
fn trust_risk(change: &SettingChange) -> Classified {
    let row = change.row;
    let is_path_policy = [listeners::PATH_POLICY.path, policies::PATH_POLICY.path].contains(&row);
    let text = if row == listeners::TRUSTED_PROXIES.path {
        format!(
            "clients' addresses are taken from other proxies: {}",
            instead(change)
        )
    } else if is_path_policy && becomes(change, "forward") {
        "forwards paths that servers read in more than one way".to_owned()
    } else if row == basic_auth::BASIC_FORWARD.path && becomes_true(change) {
        "the upstream gets the passwords of clients".to_owned()
    } else {
        return None;
    };
    Some((RiskClass::AccessWidened, text))
}

/// The risk of more guesses at passwords, and of users that are locked out after fewer mistakes.
fn attempts_risk(change: &SettingChange) -> Classified {
    if change.row != basic_auth::BASIC_ATTEMPTS.path {
        return None;
    }
    let rate = |values: &[Value]| {
        let rate = values.first()?.as_str()?.parse::<RequestRate>().ok()?;
        Some(rate.as_f64())
    };
    let (before, after) = (rate(&change.before)?, rate(&change.after)?);
    if before * MORE_GUESSES <= after {
        let text = format!("more guesses at passwords: {}", instead(change));
        return Some((RiskClass::AccessWidened, text));
    }
    (after * FEWER_GUESSES <= before).then(|| {
        let text = format!(
            "users are locked out after fewer mistakes: {}",
            instead(change)
        );
        (RiskClass::LimitTightened, text)
    })
}

/// The risk of changed users, and of a password that is newly required or no longer required.
fn credentials_risk(change: &SettingChange) -> Classified {
    if change.row == basic_auth::BASIC_REALM.path {
        return match change.change {
            Change::Added => {
                let text = "asks for a password".to_owned();
                Some((RiskClass::RequestsRefused, text))
            }
            Change::Removed => {
                let text = "no longer asks for a password".to_owned();
                Some((RiskClass::AccessWidened, text))
            }
            Change::Changed => None,
        };
    }
    let rows = [
        basic_auth::BASIC_USER.path,
        basic_auth::BASIC_USERS_FILE.path,
    ];
    if !rows.contains(&change.row) {
        return None;
    }
    let (gone, new) = (missing(change), added(change));
    let class = if new.is_empty() {
        RiskClass::RequestsRefused
    } else {
        RiskClass::AccessWidened
    };
    let text = format!(
        "users: {} instead of {}",
        shown(&change.after),
        shown(&change.before)
    );
    (!gone.is_empty() || !new.is_empty()).then_some((class, text))
}

/// The risk of changed token rules, and of a token that is newly required or no longer required.
fn token_risk(change: &SettingChange) -> Classified {
    let row = change.row;
    if row == jwt::JWT_REALM.path {
        return match change.change {
            Change::Added => Some((RiskClass::RequestsRefused, "asks for a token".to_owned())),
            Change::Removed => {
                let text = "no longer asks for a token".to_owned();
                Some((RiskClass::AccessWidened, text))
            }
            Change::Changed => None,
        };
    }
    // The whole block was added or removed.
    if !row.starts_with(jwt::JWT.path) || change.change != Change::Changed && !is_list(row) {
        return None;
    }
    let (gone, new) = (missing(change), added(change));
    let are = |rows: &[&str]| rows.contains(&row);
    let is_wider = if are(&[jwt::JWT_REQUIRE_CLAIM.path, jwt::JWT_REQUIRE_SCOPE.path]) {
        !gone.is_empty()
    } else if row == jwt::JWT_ALGORITHMS.path {
        // An empty list allows the algorithms of the keys.
        change.after.is_empty() || !change.before.is_empty() && !new.is_empty()
    } else if row == jwt::JWT_AUDIENCE.path {
        !new.is_empty()
    } else if row == jwt::JWT_CLOCK_SKEW.path {
        let [before, after] = [&change.before, &change.after].map(|one| number(one).unwrap_or(0.0));
        if before < after && after <= (before * SKEW_FACTOR).max(USUAL_SKEW) {
            return None;
        }
        before < after
    } else if are(&[
        jwt::JWT_ISSUER.path,
        jwt::JWKS_FILE.path,
        jwt::JWKS_URL.path,
        jwt::JWKS_UPSTREAM.path,
        jwt::HMAC_FILE.path,
        jwt::JWT_CLAIM_HEADER.path,
        jwt::JWT_FORWARD.path,
    ]) {
        true
    } else {
        return None;
    };
    let class = if is_wider {
        RiskClass::AccessWidened
    } else {
        RiskClass::RequestsRefused
    };
    Some((class, format!("tokens: {}", instead(change))))
}

/// The risk of a token that a route still requires and reads from another header or cookie.
fn token_place_risk(change: &SettingChange, routes: Routes<'_>) -> Classified {
    let places = [jwt::JWT_HEADER.path, jwt::JWT_COOKIE.path];
    let require = |route: Option<&Route>| route.is_some_and(|route| route.policies.jwt.is_some());
    let is_moved = places.contains(&change.row) && routes.into_iter().all(require);
    is_moved.then(|| {
        let text = format!("tokens are read from another place: {}", instead(change));
        (RiskClass::RequestsRefused, text)
    })
}

/// Returns true if a rule of tokens is a list that may be empty.
fn is_list(row: &str) -> bool {
    [
        jwt::JWT_REQUIRE_CLAIM.path,
        jwt::JWT_REQUIRE_SCOPE.path,
        jwt::JWT_ALGORITHMS.path,
        jwt::JWT_CLAIM_HEADER.path,
    ]
    .contains(&row)
}

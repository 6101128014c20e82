//! Tests that state the claims of a token.

use crate::explain::{ExplainRequest, Explanation, Handler};
use crate::plan::Plan;
use crate::route::{CredentialsPlan, RoutePlan, TokenPlan};
use crate::upstream_states::AssumeHealthy;
use http::HeaderMap;
use proxy_auth::TokenClaims;
use proxy_model::ConfigTest;

/// Placeholder of the token.
const TOKEN: &str = "{token}";

#[derive(Debug)]
pub(super) struct StatedClaims(TokenClaims);

/// Inserts a token where the route of `request` expects one, if `test` states claims.
pub(super) fn state(
    test: &ConfigTest,
    request: &mut ExplainRequest,
    plan: &Plan,
    states: &AssumeHealthy,
) -> Option<StatedClaims> {
    let claims = &test.request.claims;
    if claims.is_empty() {
        return None;
    }
    let explanation = request.ask_briefly(plan, states).ok();
    let route = explanation.and_then(|explanation| route_of(&explanation, plan));
    if let Some(token) = route.and_then(token_of) {
        request.headers.push(token.carried(TOKEN));
    }
    let claims = claims
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Some(StatedClaims(TokenClaims::from_texts(claims)))
}

impl StatedClaims {
    /// `explanation` with the refusal of the running proxy, if the claims do not suffice.
    pub(super) fn authorized(&self, explanation: Explanation, plan: &Plan) -> Explanation {
        let Self(claims) = self;
        let token = route_of(&explanation, plan).and_then(token_of);
        let refused = token.and_then(|token| {
            let fields = token
                .authorize(claims)
                .and_then(|()| token.claim_fields(claims));
            fields.err()
        });
        match (refused, &explanation.answerer) {
            (None, _) | (_, Handler::Refused { .. }) => explanation,
            (Some(problem), _) => Explanation {
                answerer: Handler::Refused {
                    problem,
                    nearest: None,
                    candidates: Vec::new(),
                },
                agents: Vec::new(),
                ..explanation
            },
        }
    }

    /// Edits `fields` as `route` would with these claims in its token.
    pub(super) fn apply(&self, route: &RoutePlan, fields: &mut HeaderMap) {
        let Some(token) = token_of(route) else {
            return;
        };
        if !token.forward_token {
            token.remove_token(fields);
        }
        for name in &token.claim_names {
            fields.remove(name);
        }
        fields.extend(token.claim_fields(&self.0).unwrap_or_default());
    }

    pub(super) fn user(&self) -> &str {
        self.0.text("sub").unwrap_or_default()
    }
}

fn route_of<'p>(explanation: &Explanation, plan: &'p Plan) -> Option<&'p RoutePlan> {
    let name = &explanation.winner.as_ref()?.route.name;
    let mut routes = plan.routes().iter();
    routes.find(|route| *route.id == **name)
}

fn token_of(route: &RoutePlan) -> Option<&TokenPlan> {
    match &**route.credentials.as_ref()? {
        CredentialsPlan::Token(token) => Some(token),
        CredentialsPlan::Basic(_) => None,
    }
}

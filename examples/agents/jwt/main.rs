//! Verifies the bearer token of each request, and passes its claims on as headers.
//!
//! `jwt-agent SOCKET --jwks FILE --alg EdDSA --issuer URL --audience NAME --claim sub=x-user`

mod keys;
mod token;

use clap::Parser;
use jsonwebtoken::Algorithm;
use keys::Keys;
use proxy_agent_kit::{
    Agent, AgentFailure, Allow, Answer, Decision, HeaderEdit, Metadata, RequestHeaders, challenge,
};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Verifies bearer tokens.
#[derive(Parser)]
struct Arguments {
    /// The agent's socket.
    socket: PathBuf,
    /// The public keys, as a JSON Web Key Set; a changed file is read again.
    #[arg(long)]
    jwks: PathBuf,
    /// The one algorithm of all tokens.
    #[arg(long)]
    alg: Algorithm,
    /// The issuer that tokens must name.
    #[arg(long)]
    issuer: String,
    /// The audience that tokens must name.
    #[arg(long)]
    audience: String,
    /// A claim that is passed on, and the header for it. May be repeated.
    #[arg(long = "claim", value_name = "CLAIM=HEADER", value_parser = claim_header)]
    claims: Vec<(String, String)>,
}

fn claim_header(text: &str) -> Result<(String, String), String> {
    let (claim, header) = text.split_once('=').ok_or("not CLAIM=HEADER")?;
    HeaderEdit::remove(header.to_owned()).map_err(|error| error.to_string())?;
    Ok((claim.to_owned(), header.to_owned()))
}

struct Verifier {
    keys: Keys,
    expected: token::Expected,
    claims: Vec<(String, String)>,
}

impl Agent for Verifier {
    type State = ();

    fn name(&self) -> &'static str {
        "jwt/1"
    }

    async fn request_headers(
        &self,
        request: &RequestHeaders<'static>,
        (): &mut (),
    ) -> Result<Answer, AgentFailure> {
        let Some(bearer) = bearer(request) else {
            return Ok(challenge("Bearer", "no single bearer token"));
        };
        match token::verify(&bearer, &self.keys.current(), &self.expected) {
            Ok(claims) => self.allow(&claims),
            Err(error) => {
                let scheme = r#"Bearer error="invalid_token""#;
                Ok(challenge(scheme, error.to_string()))
            }
        }
    }
}

impl Verifier {
    /// A header of a claim that the token does not have is removed: the client may have sent it.
    fn allow(&self, claims: &Map<String, Value>) -> Result<Answer, AgentFailure> {
        let mut allow = Allow::default();
        let mut metadata = Metadata::default();
        for (claim, header) in &self.claims {
            let value = claims.get(claim).and_then(text);
            let edit = match value {
                Some(value) => {
                    metadata.insert(claim, &value);
                    HeaderEdit::set(header.clone(), value)
                }
                None => HeaderEdit::remove(header.clone()),
            };
            let edit = edit.map_err(|error| AgentFailure(format!("claim {claim}: {error}")))?;
            allow.request_headers.push(edit);
        }
        allow.metadata = metadata;
        Ok(Decision::Allow(allow))
    }
}

/// A claim as a header value: text, a number, or a list of texts with commas.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// The token, if there is exactly one `authorization` header and it is a bearer's.
fn bearer(request: &RequestHeaders<'static>) -> Option<String> {
    let mut found = request.headers.iter();
    let header = found.find(|header| header.name() == "authorization")?;
    if found.any(|header| header.name() == "authorization") {
        return None;
    }
    let (scheme, token) = header.value().to_str()?.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| token.trim().to_owned())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let Arguments {
        socket,
        jwks,
        alg,
        issuer,
        audience,
        claims,
    } = Arguments::parse();
    let verifier = Verifier {
        keys: Keys::load(jwks)?,
        expected: token::Expected::new(alg, &issuer, &audience),
        claims,
    };
    proxy_agent_kit::run(verifier, socket).await
}

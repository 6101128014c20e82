//! Invalid tokens: wrong signatures, claims and formats.

use crate::world::World;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use control_auth::{Claims, SigningPair};
use control_wire::{NodeId, SigningKeyId};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};

type Forged = Vec<(&'static str, String)>;

/// Keys of the test's organization and of another one, and the claims of a token.
pub(crate) struct Forger {
    own: (SigningKeyId, SigningPair),
    other: (SigningKeyId, SigningPair),
    public: Vec<u8>,
    claims: Claims,
}

impl Forger {
    pub(crate) async fn new(world: &World) -> Self {
        let own = world.signer(world.org).await;
        let public = URL_SAFE_NO_PAD.decode(own.1.public().as_str()).unwrap();
        let claims = Claims {
            sub: world.node,
            prj: world.project,
            org: world.org,
            kid: own.0,
            exp: world.app.now().as_second() + 12 * 3600,
        };
        Self {
            other: world.signer(world.other.org).await,
            own,
            public,
            claims,
        }
    }

    pub(crate) fn claims(&self, change: impl FnOnce(&mut Claims)) -> String {
        let mut claims = self.claims.clone();
        change(&mut claims);
        claims.sign(&self.own.1).unwrap()
    }

    /// Creates a correctly signed token with any header and claims.
    fn raw(&self, header: &str, claims: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let text = format!("{}.{}", part(header), part(claims));
        let signature = self.own.1.sign(text.as_bytes());
        format!("{text}.{signature}")
    }

    fn header(&self) -> String {
        format!(
            "{{\"typ\":\"JWT\",\"alg\":\"EdDSA\",\"kid\":\"{}\"}}",
            self.own.0
        )
    }

    fn hs256(&self, secret: &[u8]) -> String {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some(self.own.0.to_string());
        let key = EncodingKey::from_secret(secret);
        encode(&header, &self.claims, &key).unwrap()
    }

    /// Tokens with other algorithms and keys.
    pub(crate) fn by_other_signers(&self, world: &World) -> Forged {
        let text = self.text();
        let none = self.header().replace("EdDSA", "none");
        let unsigned = self.raw(&none, &text);
        let unsigned = unsigned.rsplit_once('.').unwrap().0;
        let public = URL_SAFE_NO_PAD.encode(&self.public);
        let unknown = SigningKeyId::new(world.app.now(), [9; 10]);
        let mut foreign = self.claims.clone();
        foreign.kid = self.other.0;
        let mut stranger = foreign.clone();
        stranger.org = world.other.org;
        let (own, other) = (self.own.0.to_string(), self.other.0.to_string());
        let confused = text.replace(&own, &other);
        vec![
            ("algorithm none", self.raw(&none, &text)),
            ("algorithm none, no signature", format!("{unsigned}.")),
            ("HS256 with the public key", self.hs256(&self.public)),
            ("HS256 with its text", self.hs256(public.as_bytes())),
            ("an unknown key", self.claims(|claims| claims.kid = unknown)),
            ("a foreign key", foreign.sign(&self.other.1).unwrap()),
            ("a foreign kid, our key", foreign.sign(&self.own.1).unwrap()),
            ("a stranger's", stranger.sign(&self.other.1).unwrap()),
            (
                "our kid, another key",
                self.claims.sign(&self.other.1).unwrap(),
            ),
            ("two kids", self.raw(&self.header(), &confused)),
        ]
    }

    /// Tokens for other nodes, audiences and times.
    pub(crate) fn with_other_claims(&self, world: &World, other: NodeId) -> Forged {
        let now = world.app.now().as_second();
        let unknown = NodeId::new(world.app.now(), [9; 10]);
        let (org, project) = (world.other.org, world.other.project.unwrap());
        let until = |exp| self.claims(|claims| claims.exp = exp);
        vec![
            ("another node", self.claims(|claims| claims.sub = other)),
            (
                "an unknown node",
                self.claims(|claims| claims.sub = unknown),
            ),
            (
                "another project",
                self.claims(|claims| claims.prj = project),
            ),
            (
                "another organization",
                self.claims(|claims| claims.org = org),
            ),
            ("a time that has passed", until(now)),
            ("a time too far ahead", until(now + 13 * 3600)),
            ("a time at the end of time", until(i64::MAX)),
            ("a time before all", until(i64::MIN)),
        ]
    }

    /// Tokens with other headers, fields and bytes.
    pub(crate) fn of_other_forms(&self) -> Forged {
        let good = self.claims(|_| {});
        let (head, signature) = good.rsplit_once('.').unwrap();
        let (header, text) = (self.header(), self.text());
        let with = |field: &str| {
            let more = header.replacen('{', &format!("{{{field},"), 1);
            self.raw(&more, &text)
        };
        let claiming = |field: &str| {
            let more = text.replacen('{', &format!("{{{field},"), 1);
            self.raw(&header, &more)
        };
        let typed = |typ: &str| self.raw(&header.replace("\"typ\":\"JWT\",", typ), &text);
        vec![
            ("a claim twice", claiming("\"exp\":9999999999")),
            ("an unknown claim", claiming("\"nbf\":0")),
            ("another type", typed("\"typ\":\"at+jwt\",")),
            ("no type", typed("")),
            ("a critical extension", with("\"crit\":[\"b64\"]")),
            ("a key of its own", with("\"jwk\":{\"kty\":\"OKP\"}")),
            ("an algorithm twice", with("\"alg\":\"none\"")),
            ("padding", format!("{good}==")),
            ("padding in the middle", good.replacen('.', "=.", 1)),
            (
                "a bit beyond the signature",
                format!("{head}.{}", beyond(signature)),
            ),
            ("a part too many", format!("{good}.{signature}")),
            ("no signature", format!("{head}.")),
            ("half a signature", format!("{head}.{}", &signature[..43])),
            ("no token", "..".to_owned()),
            ("a huge token", format!("{}.b", "a".repeat(200_000))),
        ]
    }

    fn text(&self) -> String {
        serde_json::to_string(&self.claims).unwrap()
    }
}

/// Changes unused bits in the last character of a signature, which decodes to the same bytes.
fn beyond(signature: &str) -> String {
    let (start, last) = signature.split_at(signature.len() - 1);
    let last = last.chars().next().unwrap();
    format!("{start}{}", char::from(u8::try_from(last).unwrap() + 1))
}

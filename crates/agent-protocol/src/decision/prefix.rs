//! The readable fields at the start of a malformed, oversized or truncated decision.

use crate::encoding::Encoding;
use crate::id::RequestId;
use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The fields of a decision that are readable although the rest is malformed, oversized or missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionPrefix {
    /// Identifier of the request; `None` if the prefix ends before it.
    pub id: Option<RequestId>,
    /// Sequence number of the answered event.
    pub seq: Option<u32>,
    /// True if the verb is `block`, `redirect` or `challenge`.
    pub denies: bool,
}

impl DecisionPrefix {
    /// Reads `payload` up to its first fault or its end.
    pub fn read(payload: &[u8], encoding: Encoding) -> Self {
        let mut prefix = Self::default();
        let visitor = PrefixVisitor(&mut prefix);
        // An error after the fields that were read is expected.
        let _: Option<()> = match encoding {
            Encoding::Json => {
                let mut deserializer = serde_json::Deserializer::from_slice(payload);
                deserializer.deserialize_map(visitor).ok()
            }
            Encoding::MessagePack => {
                let mut deserializer = Encoding::message_pack(payload);
                deserializer.deserialize_map(visitor).ok()
            }
        };
        prefix
    }
}

struct PrefixVisitor<'p>(&'p mut DecisionPrefix);

impl<'de> Visitor<'de> for PrefixVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let DecisionPrefix { id, seq, denies } = self.0;
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "id" => *id = Some(fields.next_value()?),
                "seq" => *seq = Some(fields.next_value()?),
                "decision" => {
                    let verb: String = fields.next_value()?;
                    *denies |= matches!(verb.as_str(), "block" | "redirect" | "challenge");
                }
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::message::DecisionMessage;
    use crate::decision::{Block, Decision};
    use crate::frame::FrameType;

    /// The payload of a block with a large body.
    fn payload(encoding: Encoding) -> Vec<u8> {
        let message = DecisionMessage {
            id: RequestId::new(7).unwrap(),
            seq: 2,
            decision: Decision::Block(Block {
                body: Some(vec![b'x'; 5_000].into()),
                ..Block::default()
            }),
        };
        let mut frame = Vec::new();
        let written = encoding.write(FrameType::Decision, &message, usize::MAX, &mut frame);
        written.unwrap();
        frame.split_off(5)
    }

    #[test]
    fn a_denial_is_known_from_its_verb_on_wherever_the_payload_is_cut() {
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            let payload = payload(encoding);
            let from = (0..payload.len())
                .find(|end| DecisionPrefix::read(&payload[..*end], encoding).denies)
                .unwrap();

            assert!(from < 64, "{encoding:?}: known from byte {from} on");
            for end in from..=payload.len() {
                let prefix = DecisionPrefix::read(&payload[..end], encoding);
                let expected = DecisionPrefix {
                    id: RequestId::new(7),
                    seq: Some(2),
                    denies: true,
                };
                assert_eq!(prefix, expected, "{encoding:?} cut at {end}");
            }
        }
    }

    #[test]
    fn only_the_value_no_denies() {
        for payload in [
            "",
            "{",
            "nonsense",
            r#"{"id":7,"seq":0,"decision":"allow"}"#,
            r#"{"id":7,"seq":0,"decision":"deny"}"#,
            r#"{"id":7,"body":{"decision":"block"}}"#,
            r#"["decision","block"]"#,
        ] {
            let prefix = DecisionPrefix::read(payload.as_bytes(), Encoding::Json);
            assert!(!prefix.denies, "{payload}");
        }
    }
}

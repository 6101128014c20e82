//! The handshake.

use crate::case::{Case, Outcome};
use crate::client::{Client, Incoming, hello};
use crate::sample::plain;
use crate::settings::Settings;
use agent_protocol::{AgentMessage, Encoding, FrameType, ProxyMessage};

/// The first case; without it no other one makes sense.
pub(crate) const FIRST: &str = "handshake";
/// A version supported by no agent.
const UNKNOWN_VERSION: u32 = 4_000_000_000;

pub(crate) const CASES: &[Case] = &[
    Case {
        name: FIRST,
        rule: "a hello is answered by a welcome that fits it",
        run: first,
    },
    Case {
        name: "handshake-in-json",
        rule: "an agent speaks JSON where nothing else is offered",
        run: in_json,
    },
    Case {
        name: "handshake-encodings",
        rule: "the chosen encoding is used for events and decisions",
        run: encodings,
    },
    Case {
        name: "handshake-additions",
        rule: "fields and encodings of a hello that the agent does not know are skipped",
        run: additions,
    },
    Case {
        name: "handshake-versions",
        rule: "a hello without a known version is answered by an error, and the connection closed",
        run: versions,
    },
    Case {
        name: "handshake-order",
        rule: "the agent says nothing before the hello",
        run: order,
    },
];

fn first(settings: &Settings) -> Outcome {
    Client::greet(settings, &[Encoding::Json]).map(|_| None)
}

fn in_json(settings: &Settings) -> Outcome {
    let (mut client, _) = Client::greet(settings, &[Encoding::Json])?;
    plain(&mut client, settings)?;
    Ok(None)
}

fn encodings(settings: &Settings) -> Outcome {
    let both = [Encoding::MessagePack, Encoding::Json];
    let (mut client, welcome) = Client::greet(settings, &both)?;
    plain(&mut client, settings)?;
    Ok(Some(format!("chose {}", welcome.encoding.name())))
}

fn additions(settings: &Settings) -> Outcome {
    let mut client = Client::connect(settings)?;
    let mut offer = hello(&[Encoding::Json]);
    offer.encodings.insert(0, "from-version-9".to_owned());
    offer.features.push("a-later-feature".to_owned());
    let frame = client.frame(&ProxyMessage::Hello(offer.clone()))?;
    client.send_raw(&with_field(&frame, FrameType::Hello)?)?;
    let welcome = client.welcome()?;
    welcome.check(&offer).map_err(|error| error.to_string())?;
    if !welcome.features.is_empty() {
        return Err("the agent uses a feature that this version does not define".to_owned());
    }
    Ok(None)
}

/// A frame of JSON with a further field.
pub(crate) fn with_field(frame: &[u8], frame_type: FrameType) -> Result<Vec<u8>, String> {
    const ADDED: &[u8] = br#"{"of_a_later_version":{"list":[1,null,"x"]},"#;
    let payload = frame.get(6..).ok_or("a frame without payload")?;
    let length =
        u32::try_from(1 + ADDED.len() + payload.len()).map_err(|error| error.to_string())?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.push(frame_type.code());
    bytes.extend_from_slice(ADDED);
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

fn versions(settings: &Settings) -> Outcome {
    let mut client = Client::connect(settings)?;
    let mut offer = hello(&[Encoding::Json]);
    offer.versions = vec![UNKNOWN_VERSION];
    client.send(&ProxyMessage::Hello(offer))?;
    match client.receive(settings.timeout)? {
        Incoming::Message(AgentMessage::Error(_)) => (),
        Incoming::Closed => return Ok(Some("closed without an error".to_owned())),
        Incoming::Message(_) => return Err("answered an unknown version".to_owned()),
        Incoming::Silence => return Err("neither an error nor an end".to_owned()),
    }
    match client.receive(settings.timeout)? {
        Incoming::Closed => Ok(None),
        Incoming::Message(_) => Err("a message after the error".to_owned()),
        Incoming::Silence => Err("the connection stays open after the error".to_owned()),
    }
}

fn order(settings: &Settings) -> Outcome {
    let mut client = Client::connect(settings)?;
    client.expect_quiet()?;
    Ok(None)
}

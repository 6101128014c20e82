//! The wire form of each message, and refused messages.

use crate::samples::{agent_messages, decided, hello, id, proxy_messages, request, welcome};
use agent_protocol::{
    AgentMessage, Allow, Cancel, Decision, DecodeErrorKind, EncodeError, Encoding, ErrorCode,
    EventKind, Frame, FrameError, FrameType, Header, HeaderEdit, HeaderError, Hello, ProxyMessage,
    Welcome, WelcomeError, read_frame,
};

const LIMIT: usize = 1 << 20;
const BOTH: [Encoding; 2] = [Encoding::Json, Encoding::MessagePack];

fn decision(text: &str) -> Result<AgentMessage<'static>, String> {
    let frame = Frame {
        frame_type: FrameType::Decision,
        payload: text.as_bytes(),
    };
    AgentMessage::decode(frame, Encoding::Json).map_err(|error| error.detail)
}

#[test]
fn every_message_is_the_same_after_either_encoding() {
    for encoding in BOTH {
        for message in proxy_messages() {
            let mut bytes = Vec::new();
            message.encode(encoding, LIMIT, &mut bytes).unwrap();
            let (frame, length) = read_frame(&bytes, LIMIT).unwrap().unwrap();
            assert_eq!(length, bytes.len());
            assert_eq!(ProxyMessage::decode(frame, encoding).unwrap(), message);
        }
        for message in agent_messages() {
            let mut bytes = Vec::new();
            message.encode(encoding, LIMIT, &mut bytes).unwrap();
            let (frame, _) = read_frame(&bytes, LIMIT).unwrap().unwrap();
            assert_eq!(AgentMessage::decode(frame, encoding).unwrap(), message);
        }
    }
}

#[test]
fn bytes_that_are_not_utf8_have_one_character_each() {
    let mut bytes = Vec::new();
    let message = ProxyMessage::RequestHeaders(request());
    message.encode(Encoding::Json, LIMIT, &mut bytes).unwrap();
    let text = std::str::from_utf8(&bytes[5..]).unwrap();
    assert!(text.contains("\"target\":\"/caf\u{e9}?q=1\""), "{text}");
    assert!(text.contains("[\"cookie\",\"a=1\"],[\"cookie\",\"b=\u{ff}\"]"));
}

#[test]
fn a_length_is_refused_before_its_payload_arrives() {
    let too_long = FrameError::TooLong {
        length: 0xffff_ffff,
        limit: LIMIT,
    };
    assert_eq!(read_frame(&[255; 4], LIMIT), Err(too_long));
    assert_eq!(read_frame(&[0; 4], LIMIT), Err(FrameError::Empty));
    assert_eq!(
        read_frame(&[0, 0, 0, 9, 0x66], LIMIT),
        Err(FrameError::UnknownType(0x66))
    );
    assert_eq!(read_frame(&[0, 0, 0], LIMIT), Ok(None));
    assert_eq!(read_frame(&[0, 0, 0, 2, 0x20], LIMIT), Ok(None));
}

#[test]
fn a_frame_beyond_the_other_sides_limit_is_not_written() {
    let mut bytes = b"before".to_vec();
    let message = ProxyMessage::RequestHeaders(request());
    let error = message.encode(Encoding::Json, 100, &mut bytes).unwrap_err();
    assert!(matches!(error, EncodeError::TooLong { limit: 100, .. }));
    assert_eq!(bytes, b"before");
}

/// Invalid decisions, each with a part of its error.
const REFUSED_DECISIONS: &[(&str, &str)] = &[
    ("[1,0,\"allow\"]", "expected an object"),
    (r#"{"id":1,"seq":0,"decision":"allow"} x"#, "trailing"),
    (r#"{"id":1,"seq":0}"#, "missing field `decision`"),
    (r#"{"id":1,"seq":0,"decision":"permit"}"#, "unknown variant"),
    (
        r#"{"id":1,"seq":0,"decision":"allow","x":1}"#,
        "unknown field `x`",
    ),
    (
        r#"{"id":1,"seq":0,"seq":0,"decision":"allow"}"#,
        "duplicate field",
    ),
    (
        r#"{"id":9007199254740992,"seq":0,"decision":"allow"}"#,
        "2^53",
    ),
    (r#"{"id":-1,"seq":0,"decision":"allow"}"#, "invalid value"),
    (
        r#"{"id":1,"seq":0,"decision":"allow","status":403}"#,
        "`status`",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"block","location":"/"}"#,
        "`location`",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"block","status":200}"#,
        "400 to 599",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"redirect"}"#,
        "without location",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"redirect","location":"/\r\nx: y"}"#,
        "not a header value",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"redirect","location":"/","status":304}"#,
        "status",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"challenge"}"#,
        "without challenges",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"block","body":"%%"}"#,
        "Invalid symbol",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","request_headers":[{"op":"set","name":"Host","value":"a"}]}"#,
        "no agent may touch",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","request_headers":[{"op":"set","name":"a b","value":"a"}]}"#,
        "not a token",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","request_headers":[{"op":"set","name":"a","value":"x\ny"}]}"#,
        "control character",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","request_headers":[{"op":"set","name":"a","value":"\u0100"}]}"#,
        "U+00FF",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","request_headers":[["set","a","b"]]}"#,
        "expected an object",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","request_headers":[{"op":"remove","name":"a","value":"b"}]}"#,
        "removal with a value",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","metadata":{"a":"1","a":"2"}}"#,
        "twice",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","metadata":{"a b":"1"}}"#,
        "bounds",
    ),
    (
        r#"{"id":1,"seq":0,"decision":"allow","skip":["request_headers"]}"#,
        "past",
    ),
];

#[test]
fn decisions_that_an_agent_may_not_send_are_refused_with_the_request_they_name() {
    for (text, expected) in REFUSED_DECISIONS {
        let error = decision(text).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    let edits = r#"{"op":"remove","name":"a"},"#.repeat(129);
    let many = format!(
        r#"{{"id":1,"seq":0,"decision":"allow","request_headers":[{}]}}"#,
        edits.trim_end_matches(',')
    );
    assert!(decision(&many).unwrap_err().contains("more than 128"));
}

#[test]
fn a_wrong_message_names_its_request_if_it_has_one() {
    let request = |payload: &[u8]| {
        let frame = Frame {
            frame_type: FrameType::Decision,
            payload,
        };
        let error = AgentMessage::decode(frame, Encoding::Json).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Payload);
        error.request
    };
    assert_eq!(
        request(br#"{"decision":"maybe","id":4,"seq":0}"#),
        Some(id(4))
    );
    assert_eq!(request(br#"{"decision":"allow","id":"4","seq":0}"#), None);
    assert_eq!(request(b"garbage"), None);
}

#[test]
fn message_pack_reserves_nothing_for_a_claimed_count_and_ends_where_it_ends() {
    let refused = |payload: &[u8]| {
        let frame = Frame {
            frame_type: FrameType::Decision,
            payload,
        };
        AgentMessage::decode(frame, Encoding::MessagePack).unwrap_err();
    };
    refused(b"\xdf\xff\xff\xff\xff");
    refused(b"\x84\xa2id\x01\xa3seq\x00\xa8decision\xa5allow\xa4skip\xdd\xff\xff\xff\xff");
    refused(b"\x83\xa2id\x01\xa3seq\x00\xa8decision\xa5allow\xc0");
    refused(&[0x91; 16_000]);
    let whole = b"\x83\xa2id\x01\xa3seq\x00\xa8decision\xa5allow";
    let frame = Frame {
        frame_type: FrameType::Decision,
        payload: whole,
    };
    let allow = decided(Decision::Allow(Allow::default()));
    assert_eq!(
        AgentMessage::decode(frame, Encoding::MessagePack),
        Ok(allow)
    );
}

#[test]
fn an_agent_ignores_members_of_newer_proxies() {
    let payload = br#"{"id":3,"because":{"deep":[1,2]}}"#;
    let frame = Frame {
        frame_type: FrameType::Cancel,
        payload,
    };
    let cancel = ProxyMessage::Cancel(Cancel { id: id(3) });
    assert_eq!(ProxyMessage::decode(frame, Encoding::Json), Ok(cancel));
    let error = Frame {
        frame_type: FrameType::Error,
        payload: br#"{"id":0,"code":"from_version_2","message":"m"}"#,
    };
    let Ok(ProxyMessage::Error(error)) = ProxyMessage::decode(error, Encoding::Json) else {
        panic!("an error of a newer version is an error");
    };
    assert_eq!(error.code, ErrorCode::Internal);
}

#[test]
fn each_side_refuses_the_types_that_it_sends_itself() {
    for frame_type in FrameType::ALL {
        let frame = Frame {
            frame_type,
            payload: b"{}",
        };
        let unexpected =
            |error: agent_protocol::DecodeError| error.kind == DecodeErrorKind::UnexpectedType;
        let by_agent = ProxyMessage::decode(frame, Encoding::Json).is_err_and(unexpected);
        let by_proxy = AgentMessage::decode(frame, Encoding::Json).is_err_and(unexpected);
        assert_eq!(by_agent || by_proxy, frame_type != FrameType::Error);
        assert!(!(by_agent && by_proxy));
        assert_eq!(FrameType::from_code(frame_type.code()), Some(frame_type));
    }
}

#[test]
fn an_answer_that_does_not_fit_the_offer_is_refused() {
    let fits = |change: &dyn Fn(&mut Welcome, &mut Hello)| {
        let (mut welcome, mut hello) = (welcome(), hello());
        change(&mut welcome, &mut hello);
        welcome.check(&hello)
    };
    assert_eq!(fits(&|_, _| ()), Ok(()));
    assert_eq!(
        fits(&|welcome, _| welcome.id = id(1)),
        Err(WelcomeError::Id)
    );
    assert_eq!(
        fits(&|welcome, _| welcome.version = 2),
        Err(WelcomeError::Version)
    );
    let json_only = |_: &mut Welcome, hello: &mut Hello| hello.encodings.truncate(0);
    assert_eq!(fits(&json_only), Err(WelcomeError::Encoding));
    let feature = |welcome: &mut Welcome, _: &mut Hello| welcome.features.push("x".to_owned());
    assert_eq!(fits(&feature), Err(WelcomeError::Feature));
    let headless = |welcome: &mut Welcome, _: &mut Hello| welcome.wants.response_headers = false;
    assert_eq!(fits(&headless), Err(WelcomeError::Wants));
}

#[test]
fn a_decision_that_is_too_late_is_reported() {
    use EventKind::{RequestBody, RequestHeaders, ResponseBody, ResponseHeaders};

    let edit = || vec![HeaderEdit::remove("a").unwrap()];
    let request_edit = Decision::Allow(Allow {
        request_headers: edit(),
        ..Allow::default()
    });
    let response_edit = Decision::Allow(Allow {
        response_headers: edit(),
        ..Allow::default()
    });
    let skip = Decision::Allow(Allow {
        skip: vec![RequestBody],
        ..Allow::default()
    });
    assert!(request_edit.check(RequestHeaders, false).is_ok());
    assert!(request_edit.check(RequestBody, false).is_ok());
    assert!(request_edit.check(RequestBody, true).is_err());
    assert!(request_edit.check(ResponseHeaders, false).is_err());
    assert!(response_edit.check(RequestHeaders, false).is_ok());
    assert!(response_edit.check(ResponseBody, false).is_ok());
    assert!(response_edit.check(ResponseBody, true).is_err());
    assert!(skip.check(RequestHeaders, false).is_ok());
    assert!(skip.check(RequestBody, false).is_err());
    assert!(skip.check(RequestBody, true).is_ok());
    assert!(skip.check(ResponseHeaders, false).is_err());
}

#[test]
fn headers_are_checked_and_their_names_are_lowered() {
    assert_eq!(Header::new("X-A", "b").unwrap().name(), "x-a");
    assert_eq!(Header::new("", "b"), Err(HeaderError::Name));
    assert_eq!(Header::new("a:", "b"), Err(HeaderError::Name));
    assert_eq!(Header::new("a", " b"), Err(HeaderError::Value));
    assert_eq!(Header::new("a", "b\0"), Err(HeaderError::Value));
    assert!(Header::new("a", "").is_ok());
}

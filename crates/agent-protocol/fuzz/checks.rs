//! Properties that hold for any input; run by the fuzz target and by the replay of its corpus.

use agent_protocol::{AgentMessage, Encoding, Frame, ProxyMessage, read_frame};

/// Maximum of a frame in the checks.
const LIMIT_BYTES: usize = 65_536;

/// Frames are equal for any division into pieces; an accepted message has one form in each
/// encoding.
pub(crate) fn agent_frames(input: &[u8]) {
    let mut rest = input;
    while let Ok(Some((frame, length))) = read_frame(rest, LIMIT_BYTES) {
        let (whole, after) = rest.split_at(length);
        let cut = &whole[..length - 1];
        assert_eq!(read_frame(cut, LIMIT_BYTES), Ok(None));
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            agent_message(frame, encoding);
            proxy_message(frame, encoding);
        }
        rest = after;
    }
}

fn agent_message(frame: Frame<'_>, encoding: Encoding) {
    let Ok(message) = AgentMessage::decode(frame, encoding) else {
        return;
    };
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let mut bytes = Vec::new();
        message.encode(encoding, usize::MAX, &mut bytes).unwrap();
        let (again, length) = read_frame(&bytes, usize::MAX).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        assert_eq!(AgentMessage::decode(again, encoding).as_ref(), Ok(&message));
    }
}

fn proxy_message(frame: Frame<'_>, encoding: Encoding) {
    let Ok(message) = ProxyMessage::decode(frame, encoding) else {
        return;
    };
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let mut bytes = Vec::new();
        message.encode(encoding, usize::MAX, &mut bytes).unwrap();
        let (again, length) = read_frame(&bytes, usize::MAX).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        assert_eq!(ProxyMessage::decode(again, encoding).as_ref(), Ok(&message));
    }
}

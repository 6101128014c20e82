//! The client's flow-control windows. [RFC 9113 §5.2, §6.9]

use crate::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, FrameEvent, Frames, HEADERS, PING, RST_STREAM, SETTINGS,
    WHOLE, WINDOW_UPDATE, frame, parameters,
};
use crate::hpack::{GET, LOCAL_POST, POST};
use crate::proxy_listeners::{self, ProxyListeners};
use proxy_testkit::Upstream;

const WINDOW: u16 = 4;
const MAX_FRAME: u16 = 5;

/// The same holds with and without TLS.
fn each_way(body: &str, test: impl Fn(&mut dyn FnMut(&[(u16, u32)]) -> Frames)) {
    let upstream = Upstream::saying(body);
    let listeners = proxy_listeners::open(upstream.address(), "");
    let ProxyListeners { plain, tls_h2, .. } = listeners;
    for proxy in [plain, tls_h2] {
        test(&mut |settings| {
            let mut client = Frames::begin(proxy, settings);
            client.send_frame(HEADERS, WHOLE, 1, GET);
            client.next_of(HEADERS);
            client
        });
    }
}

fn grow(client: &mut Frames, stream: u32, by: u32) {
    client.send_frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
}

fn set_window(client: &mut Frames, size: u32) {
    client.send_frame(SETTINGS, 0, 0, &parameters(&[(WINDOW, size)]));
}

/// The data of stream 1 up to this many bytes, followed by nothing.
fn data(client: &mut Frames, expected: usize) -> (Vec<u8>, bool) {
    let (mut body, mut ended) = (Vec::new(), false);
    let mut asked = false;
    loop {
        if body.len() >= expected && !asked {
            // All data that may be sent precedes the reply to this.
            client.send_frame(PING, 0, 0, b"any more");
            asked = true;
        }
        match client.next() {
            FrameEvent::Frame(frame) if frame.kind == DATA => {
                ended |= frame.ends_stream();
                body.extend(frame.payload);
            }
            FrameEvent::Frame(frame) if frame.kind == PING && frame.flags & ACK != 0 => {
                return (body, ended);
            }
            FrameEvent::Frame(frame) => assert_ne!(frame.kind, RST_STREAM, "{frame:?}"),
            end @ (FrameEvent::End | FrameEvent::Silence) => {
                panic!("{end:?} after {} bytes", body.len())
            }
        }
    }
}

#[test]
fn a_window_of_nothing_holds_data_back_until_it_grows() {
    each_way("hello", |ask| {
        let mut client = ask(&[(WINDOW, 0)]);
        assert_eq!(data(&mut client, 0), (Vec::new(), false));
        grow(&mut client, 1, 1);
        assert_eq!(data(&mut client, 1), (b"h".to_vec(), false));
        grow(&mut client, 1, 2);
        assert_eq!(data(&mut client, 2), (b"el".to_vec(), false));
        grow(&mut client, 1, 9);
        assert_eq!(data(&mut client, 2), (b"lo".to_vec(), true));
    });
}

#[test]
fn a_setting_opens_the_window_of_a_stream_that_waits() {
    each_way("hello", |ask| {
        let mut client = ask(&[(WINDOW, 0)]);
        set_window(&mut client, 3);
        assert_eq!(data(&mut client, 3), (b"hel".to_vec(), false));
        set_window(&mut client, 5);
        assert_eq!(data(&mut client, 2), (b"lo".to_vec(), true));
    });
}

#[test]
fn a_window_below_nothing_must_grow_above_it() {
    each_way("hello", |ask| {
        let mut client = ask(&[(WINDOW, 3)]);
        assert_eq!(data(&mut client, 3), (b"hel".to_vec(), false));
        // Three bytes are sent: the window is at minus three.
        set_window(&mut client, 0);
        assert_eq!(data(&mut client, 0), (Vec::new(), false));
        grow(&mut client, 1, 3);
        assert_eq!(data(&mut client, 0), (Vec::new(), false));
        grow(&mut client, 1, 1);
        assert_eq!(data(&mut client, 1), (b"l".to_vec(), false));
        set_window(&mut client, 1);
        assert_eq!(data(&mut client, 1), (b"o".to_vec(), true));
    });
}

#[test]
fn the_window_of_the_connection_bounds_all_streams_together() {
    let body = "x".repeat(100_000);
    each_way(&body, |ask| {
        let mut client = ask(&[(WINDOW, 1 << 20)]);
        let (first, ended) = data(&mut client, 65_535);
        assert_eq!((first.len(), ended), (65_535, false));
        grow(&mut client, 1, 1 << 20);
        assert_eq!(data(&mut client, 0), (Vec::new(), false));
        grow(&mut client, 0, 1 << 20);
        let (rest, ended) = data(&mut client, 34_465);
        assert_eq!((rest.len(), ended), (34_465, true));
    });
}

#[test]
fn no_frame_is_larger_than_the_client_takes() {
    let body = "x".repeat(100_000);
    each_way(&body, |ask| {
        for (settings, most) in [(&[][..], 16_384), (&[(MAX_FRAME, 20_000)], 20_000)] {
            let settings = [settings, &[(WINDOW, 1 << 20)]].concat();
            let mut client = ask(&settings);
            grow(&mut client, 0, 1 << 20);
            let mut left = body.len();
            while left > 0 {
                let frame = client.next_of(DATA);
                assert!(frame.payload.len() <= most, "{}", frame.payload.len());
                left -= frame.payload.len();
            }
        }
    });
}

#[test]
fn settings_are_acknowledged_and_pings_are_echoed() {
    each_way("hello", |ask| {
        let mut client = ask(&[]);
        for round in 0..3 {
            set_window(&mut client, 70_000 + round);
            let ack = client.next_of_flags(SETTINGS, ACK);
            assert_eq!((ack.stream, ack.payload.len()), (0, 0));
            client.send_frame(PING, 0, 0, &[b'a'; 8]);
            let pong = client.next_of(PING);
            assert_eq!((pong.flags, pong.stream), (ACK, 0));
            assert_eq!(pong.payload, [b'a'; 8]);
        }
    });
}

/// More data than the connection's window, sent to an endpoint that responds without reading it.
#[test]
fn unread_data_gives_its_window_back() {
    let upstream = Upstream::saying("hello");
    let listeners = proxy_listeners::open(upstream.address(), "");
    for proxy in [listeners.plain, listeners.tls_h2] {
        let mut client = Frames::begin(proxy, &[]);
        let (mut room, mut answered) = (65_535_u32, 0);
        for opened in 0..20 {
            while opened - answered >= proxy_listeners::MOST_STREAMS {
                room += received_window(&mut client, &mut answered);
            }
            let stream = 2 * opened + 1;
            client.send_frame(HEADERS, END_HEADERS, stream, LOCAL_POST);
            for flags in [0, 0, 0, 0, 0, 0, 0, END_STREAM] {
                while room < 16_384 {
                    room += received_window(&mut client, &mut answered);
                }
                room -= 16_384;
                client.send_frame(DATA, flags, stream, &[b'x'; 16_384]);
            }
        }
        while answered < 20 {
            received_window(&mut client, &mut answered);
        }
    }
    assert!(upstream.requests().is_empty());
}

/// Reads one frame: adds up the growth of the connection's window, and ended responses.
fn received_window(client: &mut Frames, answered: &mut u32) -> u32 {
    match client.next() {
        FrameEvent::Frame(frame) if frame.kind == WINDOW_UPDATE && frame.stream == 0 => {
            u32::from_be_bytes(frame.payload.try_into().unwrap())
        }
        FrameEvent::Frame(frame) => {
            let unwell = frame.kind == RST_STREAM && frame.payload != [0; 4];
            assert!(!unwell, "{frame:?} after {answered} answers");
            let ends = matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0;
            *answered += u32::from(ends);
            0
        }
        end @ (FrameEvent::End | FrameEvent::Silence) => panic!("{end:?} after {answered} answers"),
    }
}

#[test]
fn an_upload_of_many_short_messages_at_once_is_forwarded() {
    // More than `h2` keeps unread, and less than the first window.
    const MESSAGES: usize = 8000;
    const MESSAGE: &[u8] = b"8 bytes.";
    let upstream = Upstream::saying("ok");
    let listeners = proxy_listeners::open(upstream.address(), "");
    let mut client = Frames::begin(listeners.plain, &[]);

    // Afterwards the proxy has a connection to the upstream.
    client.send_frame(HEADERS, WHOLE, 1, GET);
    client.next_of(HEADERS);

    let head = frame(HEADERS, END_HEADERS, 3, POST);
    let messages = frame(DATA, 0, 3, MESSAGE).repeat(MESSAGES);
    let end = frame(DATA, END_STREAM, 3, b"");
    client.send(&[head, messages, end].concat());

    client.next_of(HEADERS);
    let requests = upstream.wait_for_requests(2);
    assert_eq!(requests[1].body, MESSAGE.repeat(MESSAGES));
}

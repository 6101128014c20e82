//! Properties that hold for any bytes; shared by the fuzz targets and the test that replays their
//! corpora.

use httparse::{EMPTY_HEADER, Request, Response};
use proxy_framing::h2::{Flood, FrameMeter};
use proxy_framing::{
    HeadLimits, ProxyHeader, RequestKind, RequestValidator, ResponseValidator, Scan, Stop,
    client_of, proxy_header, read_grpc_timeout, write_grpc_timeout,
};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 8192,
    max_header_count: 100,
    max_name_bytes: 256,
    max_value_bytes: 4096,
    max_target_bytes: 8192,
};

/// `data` is a stream of requests.
pub(crate) fn request(data: &[u8]) {
    let mut guard = RequestValidator::new(LIMITS);
    let whole = run(|piece| guard.scan(piece), [data]);
    let heads = guard.heads_seen();
    let mut guard = RequestValidator::new(LIMITS);
    assert_eq!(run(|piece| guard.scan(piece), data.chunks(1)), whole);
    assert_eq!(guard.heads_seen(), heads);

    let mut headers = [EMPTY_HEADER; 101];
    let accepted = data.get(..whole.0).unwrap_or_default();
    let parsed = Request::new(&mut headers).parse(accepted);
    assert_eq!(parsed.map(|status| status.is_complete()), Ok(0 < heads));
}

/// The first byte of `data` selects the kind of request; the rest is the upstream's response.
pub(crate) fn response(data: &[u8]) {
    let Some((&kind, data)) = data.split_first() else {
        return;
    };
    let mut guard = expecting(kind, LIMITS);
    let whole = run(|piece| guard.scan(piece), [data]);
    let (heads, end) = (guard.heads_seen(), guard.eof());
    let mut guard = expecting(kind, LIMITS);
    assert_eq!(run(|piece| guard.scan(piece), data.chunks(1)), whole);
    assert_eq!((guard.heads_seen(), guard.eof()), (heads, end));

    let mut headers = [EMPTY_HEADER; 101];
    let accepted = data.get(..whole.0).unwrap_or_default();
    let parsed = Response::new(&mut headers).parse(accepted);
    assert_eq!(parsed.map(|status| status.is_complete()), Ok(0 < heads));
}

/// `data` is a kind, five limits and two lengths of pieces, a byte each, and a stream.
pub(crate) fn split(data: &[u8]) {
    let [
        kind,
        head,
        count,
        name,
        value,
        target,
        first,
        other,
        data @ ..,
    ] = data
    else {
        return;
    };
    let limits = HeadLimits {
        max_head_bytes: u32::from(*head) * 4,
        max_header_count: u32::from(*count),
        max_name_bytes: u32::from(*name),
        max_value_bytes: u32::from(*value),
        max_target_bytes: u32::from(*target),
    };
    let (front, back) = data.split_at(data.len().min(usize::from(*first)));
    let pieces = || {
        [front]
            .into_iter()
            .chain(back.chunks(usize::from(*other).max(1)))
    };
    if *kind < 128 {
        let scan = |mut guard: RequestValidator| move |piece: &[u8]| guard.scan(piece);
        let whole = run(scan(RequestValidator::new(limits)), [data]);
        assert_eq!(run(scan(RequestValidator::new(limits)), pieces()), whole);
    } else {
        let scan = |mut guard: ResponseValidator| move |piece: &[u8]| guard.scan(piece);
        let whole = run(scan(expecting(*kind, limits)), [data]);
        assert_eq!(run(scan(expecting(*kind, limits)), pieces()), whole);
    }
}

/// `data` is a chunked body: httparse reads every chunk size that the validator accepts.
pub(crate) fn chunks(data: &[u8]) {
    const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let stream = [HEAD, data].concat();
    request(&stream);
    let mut guard = RequestValidator::new(LIMITS);
    let (accepted, _) = run(|piece| guard.scan(piece), [&*stream]);
    let body = stream.get(HEAD.len()..accepted).unwrap_or_default();
    if body.windows(2).any(|pair| pair == b"\r\n") {
        let size = httparse::parse_chunk_size(body);
        assert!(
            matches!(size, Ok(status) if status.is_complete()),
            "{size:?}"
        );
    }
}

/// `data` is a client's frames: their division into pieces changes neither the account, nor the
/// parser's input, nor the kept paths; more time never causes a flood, and few frames are not
/// flood.
pub(crate) fn h2_floods(data: &[u8]) {
    const PREFACE_AND_SIXTEEN_FRAMES: usize = 24 + 16 * 9;
    let mut meter = FrameMeter::new(256, 1 << 20);
    let whole = passed_on(&mut meter, [(0, data)]);
    let mut cut = FrameMeter::new(256, 1 << 20);
    let pieces = data.chunks(1).map(|byte| (0, byte));
    assert_eq!(passed_on(&mut cut, pieces), whole);
    assert_eq!(cut.in_head(), meter.in_head());
    for stream in (1..64).step_by(2) {
        assert_eq!(cut.take_path(stream), meter.take_path(stream));
    }
    if whole.is_err() {
        assert!(PREFACE_AND_SIXTEEN_FRAMES < data.len());
        return;
    }
    let mut slow = FrameMeter::new(256, 1 << 20);
    let passed = passed_on(&mut slow, (0..).zip(data.chunks(40)));
    assert_eq!(passed, whole);
}

/// The bytes that the parser gets of these pieces, each with its time.
fn passed_on<'d>(
    meter: &mut FrameMeter,
    pieces: impl IntoIterator<Item = (u32, &'d [u8])>,
) -> Result<Vec<u8>, Flood> {
    let mut seen = Vec::new();
    for (now, piece) in pieces {
        match meter.pass(piece, now)? {
            Some(instead) => seen.extend(instead),
            None => seen.extend_from_slice(piece),
        }
    }
    seen.extend(meter.take_held());
    Ok(seen)
}

fn expecting(kind: u8, limits: HeadLimits) -> ResponseValidator {
    let mut guard = ResponseValidator::new(limits);
    guard.expect(match kind % 4 {
        0 => RequestKind::Other,
        1 => RequestKind::Head,
        2 => RequestKind::Upgrade,
        _ => RequestKind::Connect,
    });
    guard
}

/// Number of accepted bytes, and the reason for stopping.
fn run<'a>(
    mut scan: impl FnMut(&[u8]) -> Scan,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (usize, Option<Stop>) {
    let mut sum = 0;
    for piece in pieces {
        let Scan { accepted, stop } = scan(piece);
        sum += accepted;
        if stop.is_some() {
            return (sum, stop);
        }
        assert_eq!(accepted, piece.len());
    }
    (sum, None)
}

/// `data` is the beginning of a connection that may have a PROXY protocol header.
pub(crate) fn proxy_protocol(data: &[u8]) {
    let ProxyHeader::Whole { length, .. } = proxy_header(data) else {
        return;
    };
    let whole = proxy_header(data);
    for end in 0..length {
        let beginning = data.get(..end).unwrap_or_default();
        assert_eq!(proxy_header(beginning), ProxyHeader::Incomplete);
    }
    assert_eq!(proxy_header(data.get(..length).unwrap_or_default()), whole);
}

/// `data` is a `grpc-timeout`: the forwarded value is the same, to whole seconds at least.
pub(crate) fn grpc_timeout(data: &[u8]) {
    let Some(time) = read_grpc_timeout(data) else {
        return;
    };
    let written = write_grpc_timeout(time);
    assert!(written.len() <= 9);
    let back = read_grpc_timeout(written.as_bytes());
    let lost = back.and_then(|back| time.checked_sub(back));
    let most = Duration::from_secs(99_999_999);
    assert!(lost.is_some_and(|lost| lost < Duration::from_secs(1) || most < time));
}

/// `data` is the lines of `X-Forwarded-For`: no untrusted hop can change the client's address.
pub(crate) fn forwarded_for(data: &[u8]) {
    let peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let is_trusted = |ip: IpAddr| matches!(ip, IpAddr::V4(ip) if ip.octets()[0] == 10);
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let client = client_of(peer, lines.iter().copied(), is_trusted);
    assert_eq!(client, client.to_canonical());
    // One line with all hops is the same list.
    let joined = lines.join(&b","[..]);
    assert_eq!(client_of(peer, [&*joined].into_iter(), is_trusted), client);
    if !is_trusted(client) {
        // Hops left of the first untrusted one were written by it, and must not count.
        let more = [&b"9.9.9.9, 10.0.0.9"[..]]
            .into_iter()
            .chain(lines.iter().copied());
        let more: Vec<&[u8]> = more.collect();
        assert_eq!(client_of(peer, more.into_iter(), is_trusted), client);
    }
    // Without trusted proxies the client is the peer.
    let nearest = client_of(peer, lines.iter().copied(), |_| false);
    let last = joined
        .rsplit(|byte| *byte == b',')
        .next()
        .unwrap_or_default();
    assert_eq!(client_of(peer, [last].into_iter(), |_| false), nearest);
}

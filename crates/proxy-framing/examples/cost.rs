//! Scans one case a number of times, for counting instructions with callgrind: `cost CASE TIMES`.
//!
//! Count twice with different numbers of times; the difference, divided, is the cost of one scan.

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use proxy_framing::{HeadLimits, RequestKind, RequestValidator, ResponseValidator, Stop};

const LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 8192,
    max_header_count: 100,
    max_name_bytes: 256,
    max_value_bytes: 4096,
    max_target_bytes: 8192,
};

const SMALL_HEAD: &[u8] =
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: load\r\nAccept: */*\r\n\r\n";

const BROWSER: &[u8] = b"GET /articles/2024/05/framing.html?ref=home&page=2 HTTP/1.1\r\n\
Host: www.example.com\r\n\
Connection: keep-alive\r\n\
Cache-Control: max-age=0\r\n\
sec-ch-ua: \"Chromium\";v=\"124\", \"Google Chrome\";v=\"124\", \"Not-A.Brand\";v=\"99\"\r\n\
sec-ch-ua-mobile: ?0\r\n\
sec-ch-ua-platform: \"Linux\"\r\n\
Upgrade-Insecure-Requests: 1\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8\r\n\
Sec-Fetch-Site: same-origin\r\n\
Sec-Fetch-Mode: navigate\r\n\
Sec-Fetch-User: ?1\r\n\
Sec-Fetch-Dest: document\r\n\
Referer: https://www.example.com/\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Accept-Language: en-GB,en;q=0.9\r\n\
Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; consent=yes\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Mon, 27 Jul 2026 12:28:53 GMT\r\n\
Content-Type: text/plain\r\nContent-Length: 0\r\nServer: origin\r\nConnection: keep-alive\r\n\r\n";

const POST: &[u8] =
    b"POST /upload HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nTransfer-Encoding: chunked\r\n\r\n";

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let (Some(case), Some(times)) = (args.next(), args.next()) else {
        return ExitCode::from(2);
    };
    let times: usize = times.parse().unwrap_or(0);
    let sound = match case.as_str() {
        "small" => requests(times, &[SMALL_HEAD]),
        "browser" => requests(times, &[BROWSER]),
        "browser-cut" => requests(times, &<[&[u8]; 2]>::from(BROWSER.split_at(300))),
        "bytes" => requests(times, &BROWSER.chunks(1).collect::<Vec<_>>()),
        "response" => responses(times),
        "chunk" => chunks(times, 1, 4096),
        "chunks" => chunks(times, 32, 256),
        "body" => body(times),
        _ => false,
    };
    ExitCode::from(u8::from(!sound))
}

fn requests(times: usize, pieces: &[&[u8]]) -> bool {
    let mut guard = RequestValidator::new(LIMITS);
    for _ in 0..times {
        for piece in pieces {
            if guard.scan(black_box(piece)).stop.is_some() {
                return false;
            }
        }
    }
    guard.heads_seen() == times as u64
}

fn responses(times: usize) -> bool {
    let mut guard = ResponseValidator::new(LIMITS);
    for _ in 0..times {
        guard.expect(RequestKind::Other);
        if guard.scan(black_box(RESPONSE)).stop.is_some() {
            return false;
        }
    }
    guard.heads_seen() == times as u64
}

fn chunks(times: usize, at_once: usize, size: usize) -> bool {
    let mut guard = RequestValidator::new(LIMITS);
    let chunk = [
        format!("{size:x}\r\n").into_bytes(),
        vec![b'x'; size],
        b"\r\n".to_vec(),
    ]
    .concat();
    let piece = chunk.repeat(at_once);
    let mut stop: Option<Stop> = guard.scan(POST).stop;
    for _ in 0..times {
        stop = stop.or(guard.scan(black_box(&piece)).stop);
    }
    stop.is_none() && guard.in_body()
}

fn body(times: usize) -> bool {
    let mut guard = RequestValidator::new(LIMITS);
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000000000\r\n\r\n";
    let mut stop = guard.scan(head).stop;
    for _ in 0..times {
        stop = stop.or(guard.scan(black_box(&[0; 8192])).stop);
    }
    stop.is_none() && guard.in_body()
}

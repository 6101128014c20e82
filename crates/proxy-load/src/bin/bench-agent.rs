//! The agents of the benchmarks: `bench-agent native|http|spop SOCKET` allows every request, with a thread for
//! each connection.
//!
//! `native` is the protocol of proxyd's agents, `http` is for nginx's `auth_request`, `spop` for the filter SPOE
//! of `HAProxy`.

use agent_protocol::{
    AgentMessage, Allow, Decision, DecisionMessage, Encoding, PROTOCOL_VERSION, ProxyMessage,
    RequestId, Wants, Welcome, read_frame,
};
use memchr::memmem;
use proxy_load::spop;
use std::env;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::thread;

const USAGE: &str = "usage: bench-agent native|http|spop SOCKET";
const READ_BYTES: usize = 64 << 10;
/// Longest frame of the proxy.
const MAX_FRAME_BYTES: usize = 1 << 20;

/// Consumes the complete part of the input, and appends the answers to the output.
type Answerer = Box<dyn FnMut(&mut Vec<u8>, &mut Vec<u8>) -> io::Result<()>>;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let (Some(kind), Some(socket)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other(USAGE));
    };
    let make = match &*kind {
        "native" => native,
        "http" => http,
        "spop" => spop_agent,
        _ => return Err(io::Error::other(USAGE)),
    };
    let listener = UnixListener::bind(&socket)?;
    // Workers of nginx run as another user if root starts them.
    fs::set_permissions(&socket, Permissions::from_mode(0o666))?;
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || answer(stream, make()));
    }
    Ok(())
}

/// Answers until the proxy closes the connection, or breaks the protocol.
fn answer(mut stream: UnixStream, mut answerer: Answerer) -> io::Result<()> {
    let (mut input, mut output) = (Vec::new(), Vec::new());
    let mut piece = vec![0; READ_BYTES];
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        input.extend_from_slice(piece.get(..count).unwrap_or_default());
        answerer(&mut input, &mut output)?;
        stream.write_all(&output)?;
        output.clear();
    }
}

fn http() -> Answerer {
    Box::new(|input, output| {
        while let Some(end) = memmem::find(input, b"\r\n\r\n") {
            input.drain(..end + 4);
            output.extend_from_slice(b"HTTP/1.1 204 No Content\r\n\r\n");
        }
        Ok(())
    })
}

fn spop_agent() -> Answerer {
    Box::new(|input, output| {
        while let Some((frame, length)) = spop::frame(input)? {
            spop::answer(frame, output)?;
            input.drain(..length);
        }
        Ok(())
    })
}

fn native() -> Answerer {
    let mut encoding = Encoding::Json;
    Box::new(move |input, output| {
        loop {
            let read = read_frame(input, MAX_FRAME_BYTES).map_err(io::Error::other)?;
            let Some((frame, length)) = read else {
                return Ok(());
            };
            let message = ProxyMessage::decode(frame, encoding).map_err(io::Error::other)?;
            let reply = reply(message, &mut encoding);
            input.drain(..length);
            if let Some(reply) = reply {
                let written = reply.encode(encoding, MAX_FRAME_BYTES, output);
                written.map_err(io::Error::other)?;
            }
        }
    })
}

fn reply(message: ProxyMessage<'_>, encoding: &mut Encoding) -> Option<AgentMessage<'static>> {
    match message {
        ProxyMessage::Hello(hello) => {
            if hello.offers(Encoding::MessagePack) {
                *encoding = Encoding::MessagePack;
            }
            Some(AgentMessage::Welcome(Welcome {
                id: RequestId::CONNECTION,
                version: PROTOCOL_VERSION,
                encoding: *encoding,
                agent: "bench/1".to_owned(),
                wants: Wants::default(),
                features: Vec::new(),
            }))
        }
        ProxyMessage::RequestHeaders(head) => Some(AgentMessage::Decision(DecisionMessage {
            id: head.id,
            seq: head.seq,
            decision: Decision::Allow(Allow::default()),
        })),
        ProxyMessage::RequestBody(_)
        | ProxyMessage::ResponseHeaders(_)
        | ProxyMessage::ResponseBody(_)
        | ProxyMessage::Completion(_)
        | ProxyMessage::Cancel(_)
        | ProxyMessage::Error(_) => None,
    }
}

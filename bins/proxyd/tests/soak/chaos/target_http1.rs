//! The HTTP/1.1 connections of a target.

use super::target::{Condition, State};
use super::wait::wait;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Responses that are not HTTP; a connection gets one by its position.
const GARBAGE: [&[u8]; 5] = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"HTTP/1.1 two hundred\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    b"HTTP/1.1 200 OK\r\nbad name: 1\r\n\r\n",
];

struct Request {
    id: String,
    body: Vec<u8>,
}

pub(crate) async fn serve(stream: TcpStream, state: State) {
    // An error is the end of the connection, which the proxy is free to choose.
    drop(serve_requests(BufReader::new(stream), state).await);
}

async fn serve_requests(mut stream: BufReader<TcpStream>, state: State) -> io::Result<()> {
    stream.get_ref().set_nodelay(true)?;
    for number in 0.. {
        // Waits for a byte, so that the condition is read at the request's arrival.
        if stream.fill_buf().await?.is_empty() {
            return Ok(());
        }
        state.wait_while(Condition::Paused).await;
        let request = read(&mut stream).await?;
        state.note(&request.id);
        let answer = response(&request, number);
        let half = answer.len() - usize::midpoint(request.id.len(), request.body.len());
        match state.now() {
            Condition::Well | Condition::Killed => stream.write_all(&answer).await?,
            now @ (Condition::Paused | Condition::Holding) => {
                state.wait_while(now).await;
                stream.write_all(&answer).await?;
            }
            Condition::Silent => {
                state.wait_while(Condition::Silent).await;
                return Ok(());
            }
            Condition::Closing => return Ok(()),
            Condition::Garbage => {
                let garbage = GARBAGE[request.id.len() % GARBAGE.len()];
                return stream.write_all(garbage).await;
            }
            Condition::ResetInBody => {
                stream.write_all(&answer[..half]).await?;
                // The first half has usually been read by then.
                wait(Duration::from_millis(2)).await;
                rustix::net::connect_unspec(stream.get_ref())?;
                return Ok(());
            }
            Condition::CutInBody => return stream.write_all(&answer[..half]).await,
            Condition::Failing => {
                let failure =
                    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 6\r\n\r\nfailed";
                stream.write_all(failure).await?;
            }
        }
    }
    Ok(())
}

/// The ID and body of the request; every third response is chunked.
fn response(request: &Request, number: usize) -> Vec<u8> {
    let body = [request.id.as_bytes(), &request.body].concat();
    let mut answer = b"HTTP/1.1 200 OK\r\n".to_vec();
    if number % 3 == 2 {
        let head = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
        answer.extend_from_slice(head.as_bytes());
        answer.extend_from_slice(&body);
        answer.extend_from_slice(b"\r\n0\r\n\r\n");
    } else {
        let head = format!("Content-Length: {}\r\n\r\n", body.len());
        answer.extend_from_slice(head.as_bytes());
        answer.extend_from_slice(&body);
    }
    answer
}

async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Request> {
    let (mut id, mut length, mut chunked) = (String::new(), 0, false);
    loop {
        let line = line(stream).await?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "x-correlation-id" => value.clone_into(&mut id),
            "content-length" => length = value.parse().unwrap(),
            "transfer-encoding" => chunked = true,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    while chunked {
        let size = usize::from_str_radix(&line(stream).await?, 16).unwrap();
        let mut chunk = vec![0; size];
        stream.read_exact(&mut chunk).await?;
        body.extend_from_slice(&chunk);
        line(stream).await?;
        chunked = size > 0;
    }
    Ok(Request { id, body })
}

/// A line without its end.
async fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

//! A plain HTTP/1.1 client: one connection per request, as a script would do it.
#![expect(clippy::expect_used, reason = "a test may stop, and says why")]

pub(crate) mod receiver;

use serde_json::Value;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread::park_timeout;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_mins(1);
/// Refusals by a rate limit in a row, of a second or more each.
const MAX_REFUSALS: u32 = 60;
const TOO_MANY_REQUESTS: u16 = 429;

/// Sends requests to one server.
#[derive(Clone, Debug)]
pub struct Client {
    authority: String,
    credential: Option<String>,
    obeys_rate_limits: bool,
}

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
}

impl Client {
    /// A client of `http://HOST:PORT`.
    ///
    /// # Panics
    ///
    /// If the URL has another scheme.
    pub fn new(base_url: &str) -> Self {
        let authority = base_url.strip_prefix("http://").expect("a plain URL");
        Self {
            authority: authority.to_owned(),
            credential: None,
            obeys_rate_limits: false,
        }
    }

    /// Adds `Authorization: Bearer`.
    #[must_use]
    pub fn with_bearer(&self, secret: &str) -> Self {
        Self {
            credential: Some(format!("authorization: Bearer {secret}\r\n")),
            ..self.clone()
        }
    }

    /// Like [`Self::send`], but waits for the `Retry-After` of a 429 and repeats the request.
    #[must_use]
    pub fn obeying_rate_limits(&self) -> Self {
        Self {
            obeys_rate_limits: true,
            ..self.clone()
        }
    }

    /// Sends a request without a body.
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    /// Sends a body as JSON.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], Some(body))
    }

    /// Sends any request.
    ///
    /// # Panics
    ///
    /// If no complete response arrives in 60 seconds.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let answer = self.attempt(method, path, headers, body);
        answer.expect("the server answers in time")
    }

    /// Sends any request to a server that may end meanwhile.
    ///
    /// # Errors
    ///
    /// If no complete response arrives in 60 seconds.
    pub fn attempt(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let mut answer = self.exchange(method, path, headers, body)?;
        for _ in 0..MAX_REFUSALS {
            if !self.obeys_rate_limits || answer.status != TOO_MANY_REQUESTS {
                break;
            }
            let seconds = answer.header("retry-after").parse().unwrap_or(1);
            park_timeout(Duration::from_secs(seconds));
            answer = self.exchange(method, path, headers, body)?;
        }
        Ok(answer)
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.authority
        );
        head.push_str(self.credential.as_deref().unwrap_or_default());
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        let length = body.len().to_string();
        head.extend(["content-length: ", &length, "\r\n\r\n", &body]);
        let mut stream = TcpStream::connect(&self.authority)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.write_all(head.as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Answer::parse(&String::from_utf8_lossy(&bytes))
            .ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}

impl Answer {
    /// `None` for an incomplete answer.
    fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?;
        let fields = lines.filter_map(|line| line.split_once(':'));
        let headers = fields.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        let answer = Self {
            status: status.parse().ok()?,
            headers: headers.collect(),
            text: body.to_owned(),
        };
        let length = answer.header("content-length").parse();
        let whole = length.map_or(true, |length: usize| length == body.len());
        whole.then_some(answer)
    }

    /// The first field of this name, or nothing.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

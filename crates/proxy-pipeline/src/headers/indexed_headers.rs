//! The header fields of a request with an index of them, which no edit leaves stale.
//!
//! The map is lent for reading only. The methods here edit it and keep the index correct, until
//! [`IndexedHeaders::into_parts`] ends the index. Most requests over HTTP/1.x need only the index:
//! their map is created on first use; if it is never used, their fields are forwarded as received.

mod known_headers;

pub(crate) use known_headers::{KnownHeaders, LoggedHeaders};

use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_http1::{VerbatimFields, bound_map};
use std::cell::OnceCell;
use std::sync::LazyLock;

/// Maximum number of lines that are compared with each other: for more, a map costs less.
const MAX_GROUPED_LINES: usize = 128;

/// The header fields of a request, indexed.
#[derive(Debug, Default)]
pub(crate) struct IndexedHeaders {
    map: OnceCell<HeaderMap>,
    /// The fields as received; `None` once they are edited, and for other protocols than HTTP/1.x.
    received: Option<VerbatimFields>,
    known: KnownHeaders,
}

impl IndexedHeaders {
    /// Reads each field of `received`, else of `map`, once. Returns also the result of `log` for
    /// the fields that are only logged.
    #[inline]
    pub(crate) fn read<T>(
        map: HeaderMap,
        received: Option<VerbatimFields>,
        log: impl FnOnce(LoggedHeaders<'_>) -> T,
    ) -> (Self, T) {
        let (known, logged) = match &received {
            Some(fields) => KnownHeaders::read_verbatim(fields),
            None => KnownHeaders::read(&map),
        };
        let logged = log(logged);
        let map = match received {
            Some(_) => OnceCell::new(),
            None => OnceCell::from(map),
        };
        let headers = Self {
            map,
            received,
            known,
        };
        (headers, logged)
    }

    /// The fields as a map, which is created on first use.
    pub(crate) fn as_map(&self) -> &HeaderMap {
        self.map.get_or_init(|| {
            let received = self.received.as_ref();
            received.map_or_else(HeaderMap::new, VerbatimFields::to_map)
        })
    }

    /// Name and value of each field; creates no map for up to [`MAX_GROUPED_LINES`]. Names may have
    /// capitals, and fields of one name are adjacent.
    pub(crate) fn grouped(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let received = self.received.as_ref();
        let received = received.filter(|received| received.fields().count() <= MAX_GROUPED_LINES);
        let map = received.is_none().then(|| self.as_map());
        let received = received.map(VerbatimFields::grouped);
        let map = map.into_iter().flatten();
        let map = map.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        received.into_iter().flatten().chain(map)
    }

    /// The map if it has been created, else an empty one: for a reader of no fields.
    pub(crate) fn as_unread_map(&self) -> &HeaderMap {
        static EMPTY: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
        self.map.get().unwrap_or(&EMPTY)
    }

    /// The first value of a field; creates no map.
    pub(crate) fn first(&self, name: &HeaderName) -> Option<HeaderValue> {
        match (self.map.get(), &self.received) {
            (Some(map), _) => map.get(name).cloned(),
            (None, received) => received.as_ref()?.first(name),
        }
    }

    /// Returns true if any of `bits`, which are constants of [`KnownHeaders`], is set.
    #[inline]
    pub(crate) const fn has(&self, bits: u16) -> bool {
        self.known.has(bits)
    }

    /// `Host`, as sent.
    #[inline]
    pub(crate) const fn host(&self) -> Option<&HeaderValue> {
        self.known.host.as_ref()
    }

    /// The length of the body in bytes, if it was announced.
    #[inline]
    pub(crate) const fn content_length(&self) -> Option<u64> {
        self.known.content_length
    }

    /// Replaces all fields of this name.
    pub(crate) fn insert(&mut self, name: HeaderName, value: HeaderValue) {
        self.change(|map, known| {
            known.forget(&name, map);
            known.learn(&name, &value);
            map.insert(name, value);
        });
    }

    /// Removes all fields of this name.
    pub(crate) fn remove(&mut self, name: &HeaderName) {
        self.change(|map, known| {
            if map.remove(name).is_some() {
                known.forget(name, map);
            }
        });
    }

    /// Lends the map for any edits, and reads all of it again.
    #[cold]
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut HeaderMap)) {
        self.change(|map, known| {
            change(map);
            *known = KnownHeaders::read(map).0;
        });
    }

    /// Keeps the map out of the pool if it has many repeated values: see [`bound_map`].
    pub(crate) fn bound(&mut self) {
        self.change(|map, _| bound_map(map));
    }

    /// Lends map and index for an edit of both; the fields are no longer those received.
    fn change(&mut self, edit: impl FnOnce(&mut HeaderMap, &mut KnownHeaders)) {
        self.as_map();
        self.received = None;
        if let Some(map) = self.map.get_mut() {
            edit(map, &mut self.known);
        }
    }

    /// Ends the index: it describes the fields at this moment, and later edits of the map do not
    /// change it. The fields are returned as received if no map was created; the returned map is
    /// then empty.
    #[inline]
    pub(crate) fn into_parts(self) -> (HeaderMap, Option<VerbatimFields>, KnownHeaders) {
        match self.map.into_inner() {
            Some(map) => (map, None, self.known),
            None => (HeaderMap::new(), self.received, self.known),
        }
    }
}

impl From<HeaderMap> for IndexedHeaders {
    fn from(map: HeaderMap) -> Self {
        Self::read(map, None, |_| ()).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proxy_framing::Lines;
    use proxy_http1::{Head, read_request};

    /// All indexed names, two that are only logged, and two without meaning.
    const NAMES: &[&str] = &[
        "accept",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "traceparent",
        "transfer-encoding",
        "upgrade",
        "x-correlation-id",
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-port",
        "x_forwarded_for",
        "x_correlation_id",
        "x-real-ip",
        "referer",
        "user-agent",
        "cookie",
        "x-forwardedness",
    ];

    const VALUES: &[&str] = &[
        "",
        "0",
        "007",
        "12",
        "+3",
        "text/html;q=0.1",
        "*/*",
        "application/grpc+proto",
        "a.test",
        "close, te",
    ];

    #[derive(Clone, Debug)]
    enum Step {
        Insert(&'static str, &'static str),
        Remove(&'static str),
        /// Fields appended by an agent.
        Append(Vec<(&'static str, &'static str)>),
        Bound,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let name = || prop::sample::select(NAMES);
        let value = || prop::sample::select(VALUES);
        let step = prop_oneof![
            3 => (name(), value()).prop_map(|(name, value)| Step::Insert(name, value)),
            2 => name().prop_map(Step::Remove),
            2 => vec((name(), value()), 1..4).prop_map(Step::Append),
            1 => Just(Step::Bound),
        ];
        vec(step, 0..40)
    }

    fn append(map: &mut HeaderMap, fields: &[(&'static str, &'static str)]) {
        for (name, value) in fields {
            map.append(*name, HeaderValue::from_static(value));
        }
    }

    fn take(headers: &mut IndexedHeaders, step: &Step) {
        match step {
            Step::Insert(name, value) => headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            ),
            Step::Remove(name) => headers.remove(&HeaderName::from_static(name)),
            Step::Append(fields) => headers.edit(|map| append(map, fields)),
            Step::Bound => headers.bound(),
        }
    }

    proptest! {
        #[test]
        fn after_any_edits_the_index_is_that_of_a_fresh_reading(
            sent in vec((prop::sample::select(NAMES), prop::sample::select(VALUES)), 0..12),
            steps in steps(),
        ) {
            let mut map = HeaderMap::new();
            append(&mut map, &sent);
            let mut headers = IndexedHeaders::from(map);
            for step in &steps {
                take(&mut headers, step);
                let fresh = IndexedHeaders::from(headers.as_map().clone());
                prop_assert_eq!(&headers.known, &fresh.known, "{:?}", step);
            }
        }
    }

    /// The fields of a request with these, as received; `None` if they are not forwarded so.
    fn received(sent: &[(&str, &str, bool)]) -> Option<VerbatimFields> {
        let mut head = String::from("GET / HTTP/1.1\r\n");
        for (name, value, is_loud) in sent {
            let name = if *is_loud {
                name.to_ascii_uppercase()
            } else {
                (*name).to_owned()
            };
            head.extend([name.as_str(), ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        let head = Head::take(&mut BytesMut::from(&*head), Lines::new()).unwrap();
        read_request(head).unwrap().fields
    }

    proptest! {
        #[test]
        fn fields_as_received_have_the_index_of_their_map(
            sent in vec((prop::sample::select(NAMES), prop::sample::select(VALUES), any::<bool>()), 0..6),
        ) {
            if let Some(fields) = received(&sent) {
                let (known, _) = KnownHeaders::read_verbatim(&fields);
                prop_assert_eq!(known, KnownHeaders::read(&fields.to_map()).0);
            }
        }
    }

    #[test]
    fn of_two_claims_the_index_loses_the_last_one_alone() {
        let mut map = HeaderMap::new();
        append(&mut map, &[("x-real-ip", "1.1.1.1"), ("via", "1.1 a")]);
        let mut headers = IndexedHeaders::from(map);

        headers.remove(&HeaderName::from_static("via"));
        assert!(headers.has(KnownHeaders::FORWARDING));
        headers.remove(&HeaderName::from_static("x-real-ip"));
        assert!(!headers.has(KnownHeaders::FORWARDING));
    }

    #[test]
    fn a_replaced_host_is_the_host() {
        let mut headers = IndexedHeaders::default();
        headers.insert(http::header::HOST, HeaderValue::from_static("a.test"));
        headers.insert(http::header::HOST, HeaderValue::from_static("b.test"));

        assert_eq!(headers.host().unwrap(), "b.test");
        assert_eq!(headers.into_parts().2.host.unwrap(), "b.test");
    }
}

//! The output of a process, line by line.

use crate::journal::Journal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::thread::{self, JoinHandle};

/// The lines of one output of a process. Clones are the same log.
#[derive(Clone, Debug, Default)]
pub struct Log(Journal<String>);

/// A line that is a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct Record(Value);

impl Log {
    /// The lines of `output`, collected until its end.
    #[must_use]
    pub fn collect(output: impl Read + Send + 'static) -> Self {
        let log = Self::default();
        log.follow(output);
        log
    }

    /// Waits for the access record of the request with this correlation ID.
    #[must_use]
    #[track_caller]
    pub fn access_record(&self, correlation_id: &str) -> Record {
        self.find(0, |record| {
            record.has("status") && record.text("correlation_id") == correlation_id
        })
    }

    /// Waits for the error record of the request with this correlation ID.
    #[must_use]
    #[track_caller]
    pub fn error_record(&self, correlation_id: &str) -> Record {
        self.find(0, |record| {
            record.has("http_status") && record.text("correlation_id") == correlation_id
        })
    }

    /// Waits for the limit record of the request with this correlation ID.
    #[must_use]
    #[track_caller]
    pub fn limit_record(&self, correlation_id: &str) -> Record {
        self.find(0, |record| record.text("trace_id") == correlation_id)
    }

    /// Collects the lines of `output`, on a thread that ends with it.
    pub(crate) fn follow(&self, output: impl Read + Send + 'static) -> JoinHandle<()> {
        let journal = self.0.clone();
        thread::spawn(move || {
            let mut lines = BufReader::new(output).split(b'\n');
            while let Some(Ok(line)) = lines.next() {
                journal.push(String::from_utf8_lossy(&line).into_owned());
            }
            journal.close();
        })
    }

    /// Number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no lines yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.entries()
    }

    /// All lines, after the process has ended.
    #[must_use]
    pub fn to_the_end(&self) -> Vec<String> {
        // Waits until the list is closed.
        self.0.wait_until(|_| None::<()>);
        self.lines()
    }

    /// All records so far.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.lines()
            .iter()
            .filter_map(|line| Record::parse(line))
            .collect()
    }

    /// Waits for a record that `is_wanted`, from line `since` on.
    #[must_use]
    #[track_caller]
    pub fn find(&self, since: usize, is_wanted: impl Fn(&Record) -> bool) -> Record {
        match self.try_find(since, is_wanted) {
            Some(record) => record,
            None => panic!(
                "no such record; the log holds:\n{}",
                self.lines().join("\n")
            ),
        }
    }

    /// Like [`Self::find`]; `None` after the deadline or if the process ends without it.
    pub fn try_find(&self, since: usize, is_wanted: impl Fn(&Record) -> bool) -> Option<Record> {
        self.0.wait_until(|lines| {
            let mut records = lines
                .iter()
                .skip(since)
                .filter_map(|line| Record::parse(line));
            records.find(|record| is_wanted(record))
        })
    }

    /// Waits for `count` such records.
    #[must_use]
    pub(crate) fn several(&self, count: usize, is_wanted: impl Fn(&Record) -> bool) -> Vec<Record> {
        let found = self.0.wait_until(|lines| {
            let records = lines.iter().filter_map(|line| Record::parse(line));
            let wanted: Vec<Record> = records.filter(|record| is_wanted(record)).collect();
            (wanted.len() >= count).then_some(wanted)
        });
        found.unwrap_or_default()
    }
}

impl Record {
    /// Parses `line` as a JSON object.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        value.is_object().then_some(Self(value))
    }

    /// The text of a field; empty if it is absent.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.0
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The number in a field; `None` if it is absent.
    #[must_use]
    pub fn number(&self, field: &str) -> Option<f64> {
        self.0.get(field).and_then(Value::as_f64)
    }

    /// Returns true if the record has the field.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        self.0.get(field).is_some()
    }

    /// The names of the fields.
    #[must_use]
    pub fn fields(&self) -> Vec<&str> {
        let object = self.0.as_object();
        object
            .map(|object| object.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }
}

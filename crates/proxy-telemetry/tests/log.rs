//! Log lines reach their destination or are counted as lost, and no worker ever waits.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use proxy_telemetry::{
    AccessFormat, AccessLogRequest, AccessRecord, Destination, EscapedFields, EventLog,
    LogCounters, LogError, LogWriter, Protocol, Registry, RegistrySettings, WorkerLog, names,
};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

const EVENT_TIMEOUT: Duration = Duration::from_secs(30);
const UNWANTED: fn(LogError) = |fault| panic!("{fault:?}");

/// Blocks until the gate is open; accepted bytes are sent to the channel.
struct Gated {
    gate: Receiver<()>,
    taken: Sender<Vec<u8>>,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gate.recv().unwrap_or_default();
        self.taken.send(bytes.to_vec()).unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn gated() -> (Sender<()>, Receiver<Vec<u8>>, LogWriter) {
    let (open, gate) = channel();
    let (taken, all) = channel();
    let log =
        LogWriter::to_writer(Gated { gate, taken }, LogCounters::default(), UNWANTED).unwrap();
    (open, all, log)
}

fn write(log: &mut WorkerLog, path: &str) {
    let facts = AccessLogRequest {
        method: b"GET",
        host: Some(b"example.com"),
        path: path.as_bytes(),
        user_agent: None,
        referer: None,
    };
    let Some(access_head) = log.access_head(&facts, &AccessFormat::default()) else {
        return;
    };
    let routes = EscapedFields::from_routes(["api"]);
    let targets = EscapedFields::from_targets("app", ["10.0.0.1:8080"]);
    let record = AccessRecord {
        at: Duration::from_secs(1_700_000_000),
        correlation_id: b"0190163d-8694-739b-aea5-966c26f8ad90",
        route: routes.get(0),
        target: targets.get(0),
        client_ip: b"192.0.2.1",
        status: 200,
        took: Duration::from_micros(1_234),
        bytes_in: 0,
        bytes_out: 100,
        protocol: Protocol::Http11,
        reason: None,
        error_type: None,
        retries: 0,
        retry_cause: None,
        is_retry_refused: false,
        queued: None,
        connecting: None,
        upstream_took: None,
        cache: None,
        trace_id: None,
        agent: None,
    };
    log.access(&record, access_head);
}

fn lines(all: &Receiver<Vec<u8>>) -> Vec<String> {
    let bytes: Vec<u8> = all.iter().flatten().collect();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_worker_does_not_wait_for_a_destination_that_takes_nothing() {
    const MADE: u64 = 100_000;
    let (open, all, log) = gated();
    let mut worker = log.worker();

    for _ in 0..MADE {
        write(&mut worker, "/");
    }
    let blocked = log.counts();
    drop(open);
    drop(worker);
    let counts = log.close(EVENT_TIMEOUT);

    assert_eq!(blocked.written, 0);
    assert!(blocked.lost > 0 && blocked.pending > 0, "{blocked:?}");
    assert_eq!((counts.made, counts.pending), (MADE, 0));
    assert_eq!(lines(&all).len(), usize::try_from(counts.written).unwrap());
    assert_eq!(counts.lost, MADE - counts.written);
}

#[test]
fn every_line_of_every_worker_arrives_whole() {
    const MADE: u64 = 20_000;
    let (open, all, log) = gated();
    drop(open);

    thread::scope(|scope| {
        for number in 0..3 {
            let mut worker = log.worker();
            scope.spawn(move || {
                for line in 0..MADE {
                    write(&mut worker, &format!("/{number}/{line}"));
                }
            });
        }
    });
    let counts = log.close(EVENT_TIMEOUT);

    let lines = lines(&all);
    for line in &lines {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["status"], 200);
    }
    let distinct: BTreeSet<_> = lines.iter().collect();
    assert_eq!(distinct.len(), lines.len());
    assert_eq!(counts.made, 3 * MADE);
    assert_eq!(counts.written, u64::try_from(lines.len()).unwrap());
    assert_eq!(
        (counts.made, counts.pending),
        (counts.written + counts.lost, 0)
    );
}

#[test]
fn a_flush_that_finds_no_room_keeps_the_lines() {
    let (open, all, log) = gated();
    let mut worker = log.worker();

    for _ in 0..100 {
        write(&mut worker, "/");
        worker.flush();
    }
    let blocked = log.counts();
    // The second batch arrives after both left the channel, so the channel has room.
    for _ in 0..2 {
        open.send(()).unwrap();
        all.recv().unwrap();
    }
    worker.flush();
    drop(open);
    drop(worker);
    let counts = log.close(EVENT_TIMEOUT);

    assert_eq!((blocked.made, blocked.lost), (100, 0));
    assert_eq!((counts.written, counts.lost), (100, 0));
    assert_eq!(lines(&all).len(), 98);
}

#[test]
fn where_few_lines_may_wait_few_are_in_a_batch() {
    let (open, all, log) = gated();
    let log = log.bounded(40);
    let mut worker = log.worker();

    for _ in 0..25 {
        write(&mut worker, "/");
    }
    drop(open);
    drop(worker);
    let counts = log.close(EVENT_TIMEOUT);

    let batches = all.iter().map(|batch| String::from_utf8(batch).unwrap());
    let batches: Vec<_> = batches.map(|batch| batch.lines().count()).collect();
    assert_eq!(batches, [10, 10, 5]);
    assert_eq!((counts.written, counts.lost), (25, 0));
}

#[test]
fn batches_end_where_lines_end_however_long_they_are() {
    let (open, all, log) = gated();
    drop(open);
    let mut worker = log.worker();

    let path = |number: usize| format!("/{}", "x".repeat(number * 37 % 9_000));
    for number in 0..500 {
        write(&mut worker, &path(number));
    }
    drop(worker);
    log.close(EVENT_TIMEOUT);

    let batches: Vec<_> = all.iter().collect();
    assert!(batches.len() > 2 && batches.iter().all(|batch| batch.ends_with(b"}\n")));
    let text = String::from_utf8(batches.concat()).unwrap();
    for (number, line) in text.lines().enumerate() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let sent = path(number);
        let written = record["path"].as_str().unwrap();
        let kept = written.strip_suffix('…').unwrap_or(written);
        assert!(sent.starts_with(kept) && kept.len() == sent.len().min(8192));
    }
    assert_eq!(text.lines().count(), 500);
}

#[test]
fn closing_does_not_wait_longer_than_its_timeout() {
    let (open, _all, log) = gated();
    let mut worker = log.worker();
    write(&mut worker, "/");
    drop(worker);

    let counts = log.close(Duration::from_millis(1));

    assert_eq!((counts.made, counts.written, counts.pending), (1, 0, 1));
    drop(open);
}

#[test]
fn lines_after_the_end_are_lost_and_counted() {
    let (open, all, log) = gated();
    drop(open);
    let registry = Registry::new(RegistrySettings {
        reasons: &[],
        max_series: 10,
    });
    drop(log);
    drop(all);

    let counters = LogCounters::registered(&registry, "access");
    let log = LogWriter::to_writer(io::sink(), counters, UNWANTED).unwrap();
    let mut worker = log.worker();
    write(&mut worker, "/in-time");
    worker.flush();
    let counts = log.close(EVENT_TIMEOUT);
    write(&mut worker, "/late");
    drop(worker);

    assert_eq!(counts.written, 1);
    let lost = registry.counter(&names::LOG_LINES_LOST_TOTAL, ["access"]);
    let written = registry.counter(&names::LOG_LINES_WRITTEN_TOTAL, ["access"]);
    assert_eq!((written.get(), lost.get()), (1, 1));
}

#[test]
fn the_thread_ends_with_its_last_sender() {
    for writer_goes_first in [true, false] {
        let (open, all, log) = gated();
        drop(open);
        let mut worker = log.worker();
        write(&mut worker, "/");
        worker.flush();
        all.recv_timeout(EVENT_TIMEOUT).unwrap();
        // The thread has enough time to fall asleep.
        thread::park_timeout(Duration::from_millis(50));

        if writer_goes_first {
            drop(log);
            drop(worker);
        } else {
            drop(worker);
            drop(log);
        }

        let after = all.recv_timeout(EVENT_TIMEOUT);
        assert_eq!(after, Err(RecvTimeoutError::Disconnected));
    }
}

#[test]
fn buffers_return_to_their_worker() {
    /// Reports the address of each batch in memory.
    struct Addresses(Sender<usize>);

    impl Write for Addresses {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.as_ptr().addr()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let (reported, addresses) = channel();
    let log = LogWriter::to_writer(Addresses(reported), LogCounters::default(), UNWANTED).unwrap();
    let mut worker = log.worker();
    let mut seen = BTreeSet::new();
    for _ in 0..1000 {
        write(&mut worker, "/");
        worker.flush();
        seen.insert(addresses.recv().unwrap());
    }

    assert!(seen.len() <= 5, "{} buffers", seen.len());
}

#[test]
fn a_destination_that_fails_is_reported_once_and_its_losses_counted() {
    /// Fails for the first three batches.
    struct Full(u32);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            if self.0 <= 3 {
                return Err(ErrorKind::StorageFull.into());
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let (reported, faults) = channel();
    let registry = Registry::new(RegistrySettings {
        reasons: &[],
        max_series: 10,
    });
    let counters = LogCounters::registered(&registry, "access");
    let report = move |fault: LogError| reported.send(fault).unwrap();
    let log = LogWriter::to_writer(Full(0), counters, report).unwrap();
    let mut worker = log.worker();
    for _ in 0..5 {
        write(&mut worker, "/");
        worker.flush();
    }
    drop(worker);
    let counts = log.close(EVENT_TIMEOUT);

    assert_eq!((counts.written, counts.lost), (2, 3));
    let errors = registry.counter(&names::LOG_WRITE_ERRORS_TOTAL, ["access"]);
    assert_eq!(errors.get(), 3);
    let faults: Vec<_> = faults.iter().collect();
    let [LogError::Write(cause), LogError::Recovered { lost: 3 }] = faults.as_slice() else {
        panic!("{faults:?}");
    };
    assert_eq!(cause.kind(), ErrorKind::StorageFull);
}

#[test]
fn a_moved_log_file_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
    let destination = Destination::File(path.clone());
    let log = LogWriter::start(&destination, LogCounters::default(), UNWANTED).unwrap();
    let mut worker = log.worker();

    write(&mut worker, "/before");
    worker.flush();
    fs::rename(&path, &moved).unwrap();
    log.reopen();
    write(&mut worker, "/after");
    drop(worker);
    let counts = log.close(EVENT_TIMEOUT);

    let (old, new) = (fs::read_to_string(&moved), fs::read_to_string(&path));
    let (old, new) = (old.unwrap(), new.unwrap());
    assert_eq!(counts.written, 2);
    assert_eq!((old.clone() + &new).matches("/before").count(), 1);
    assert_eq!(
        (old.matches("/after").count(), new.matches("/after").count()),
        (0, 1)
    );
}

#[test]
fn a_file_that_cannot_be_made_again_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let destination = Destination::File(logs.join("log"));
    let (reported, faults) = channel();
    let report = move |fault: LogError| reported.send(fault).unwrap();
    let log = LogWriter::start(&destination, LogCounters::default(), report).unwrap();
    let mut worker = log.worker();
    let moved = folder.path().join("moved");
    fs::rename(&logs, &moved).unwrap();

    log.reopen();
    write(&mut worker, "/kept");
    drop(worker);
    let counts = log.close(EVENT_TIMEOUT);

    assert_eq!((counts.written, counts.lost), (1, 0));
    let text = fs::read_to_string(moved.join("log")).unwrap();
    assert_eq!(text.matches("/kept").count(), 1);
    assert!(matches!(
        faults.iter().collect::<Vec<_>>().as_slice(),
        [LogError::Reopen(_)]
    ));
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let destination = Destination::File(folder.path().join("no").join("log"));

    let refused = LogWriter::start(&destination, LogCounters::default(), UNWANTED);

    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_log_that_is_off_makes_nothing() {
    let log = LogWriter::start(&Destination::Off, LogCounters::default(), UNWANTED).unwrap();
    let mut worker = log.worker();
    assert!(!worker.is_on());

    write(&mut worker, "/");
    worker.flush();
    drop(worker);

    assert_eq!(log.close(EVENT_TIMEOUT).made, 0);
}

#[test]
fn no_thread_waits_for_events_that_nothing_takes_and_all_are_accounted_for() {
    const MADE: u64 = 5_000;
    let (open, gate) = channel();
    let (taken, all) = channel();
    let metrics = LogCounters::default();
    let (writer, log) = EventLog::to_writer(Gated { gate, taken }, metrics.clone()).unwrap();

    thread::scope(|scope| {
        for _ in 0..5 {
            let log = log.clone();
            scope.spawn(move || {
                for _ in 0..MADE / 5 {
                    log.write(b"event\n".to_vec());
                }
            });
        }
    });
    let blocked = writer.counts();
    drop(open);
    let counts = writer.close(EVENT_TIMEOUT);
    log.write(b"too late\n".to_vec());

    assert_eq!((blocked.made, blocked.written), (MADE, 0));
    assert!(blocked.lost >= MADE - 1026, "{blocked:?}");
    assert_eq!((counts.written + counts.lost, counts.pending), (MADE, 0));
    let lines = lines(&all);
    assert_eq!(lines.len() as u64, counts.written);
    assert!(lines.iter().all(|line| line == "event"));
    // Counts from before the registration appear in the registry.
    let settings = RegistrySettings {
        reasons: &[],
        max_series: 10,
    };
    let registry = Registry::new(settings);
    metrics.register(&registry, "events");
    let lost = registry.counter(&names::LOG_LINES_LOST_TOTAL, ["events"]);
    assert_eq!(lost.get(), counts.lost + 1);
}

#[test]
fn a_log_is_closed_in_time_though_nothing_takes_its_lines() {
    let (_open, gate) = channel();
    let (taken, _all) = channel();
    let out = Gated { gate, taken };
    let (writer, log) = EventLog::to_writer(out, LogCounters::default()).unwrap();
    log.write(b"event\n".to_vec());

    let counts = writer.close(Duration::from_millis(50));

    assert_eq!((counts.made, counts.pending), (1, 1));
}

//! Tests of stored and unstored certificates, without an authority.

use super::*;
use crate::responder::tests::NoAnswers;
use crate::settings::Challenge;
use proxy_model::AcmeKeyType;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::cell::Cell;
use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use tempfile::TempDir;

thread_local! {
    static NOW: Cell<SystemTime> = Cell::new(UNIX_EPOCH + Duration::from_hours(490_000));
}

fn now() -> SystemTime {
    NOW.get()
}

type Observe = Box<dyn FnMut(Event<'_>) + Send>;

/// A task for `a.test` with an unreachable authority.
struct Fixture {
    settings: AcmeSettings,
    task: RenewalTask<Observe>,
    events: Receiver<String>,
    _folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = AcmeSettings {
            hosts: vec!["a.test".to_owned()],
            directory: "https://ca.test/dir".to_owned(),
            directory_ca_file: Some(folder.path().join("missing.pem")),
            email: "a@b.test".to_owned(),
            challenge: Challenge::Http01,
            external_account: None,
            key_type: AcmeKeyType::EcdsaP256,
            storage: folder.path().join("acme"),
            user_agent: "test".to_owned(),
        };
        let (sender, events) = channel();
        let task = RenewalTask {
            responder: Arc::new(NoAnswers),
            observe: observer(sender),
            now,
            retry_after: RetryAfter::default(),
            failures: 0,
            retry_at: None,
            known: None,
            requested: None,
            unstored: None,
            window: None,
            ask_window_at: None,
        };
        Self {
            settings,
            task,
            events,
            _folder: folder,
        }
    }

    fn storage(&self) -> Storage {
        Storage::new(&self.settings)
    }

    /// The file that replaces the stored one.
    fn temporary(&self) -> PathBuf {
        self.storage().certificate_file().with_extension("new")
    }

    /// Executes a step; returns its pause and events.
    fn step(&mut self) -> (Duration, Vec<String>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let pause = runtime.block_on(self.task.step(&self.settings));
        (pause, self.events.try_iter().collect())
    }
}

fn observer(sender: Sender<String>) -> Box<dyn FnMut(Event<'_>) + Send> {
    Box::new(move |event| {
        let text = match event {
            Event::Stored { .. } => "stored".to_owned(),
            Event::Obtained { .. } => "obtained".to_owned(),
            Event::Damaged { file, why } => {
                assert!(file.exists());
                format!("damaged: {why}")
            }
            Event::Ordering => "ordering".to_owned(),
            Event::Failed { error, .. } => error.kind().to_owned(),
        };
        sender.send(text).unwrap();
    })
}

/// Key and chain in PEM, for `a.test`.
fn issued() -> Zeroizing<Vec<u8>> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2025, 11, 1);
    params.not_after = date_time_ymd(2026, 2, 1);
    let chain = params.self_signed(&key).unwrap().pem();
    Zeroizing::new((key.serialize_pem() + &chain).into_bytes())
}

#[test]
fn an_issued_certificate_that_cannot_be_stored_is_stored_later_without_another_order() {
    let mut fixture = Fixture::new();
    let pem = Arc::new(issued());
    fixture.task.unstored = Some(UnstoredCertificate {
        storage: fixture.storage(),
        certificate: StoredCertificate::parse(&pem).unwrap(),
        pem: Arc::clone(&pem),
    });
    let obstacle = fixture.temporary().join("full");
    fs::create_dir_all(&obstacle).unwrap();
    for _ in 0..3 {
        assert_eq!(fixture.step(), (STORE_RETRY, vec!["storage".to_owned()]));
        NOW.set(now() + STORE_RETRY);
    }

    fs::remove_dir_all(fixture.temporary()).unwrap();
    assert_eq!(fixture.step().1, ["obtained"]);
    let stored = fs::read(fixture.storage().certificate_file()).unwrap();
    assert_eq!(stored, **pem);
    assert!(fixture.step().1.is_empty());
}

#[test]
fn an_unstored_certificate_of_other_settings_is_not_stored() {
    let mut fixture = Fixture::new();
    let pem = Arc::new(issued());
    fixture.task.unstored = Some(UnstoredCertificate {
        storage: fixture.storage(),
        certificate: StoredCertificate::parse(&pem).unwrap(),
        pem,
    });
    fixture.settings.key_type = AcmeKeyType::EcdsaP384;
    assert_eq!(fixture.step().1, ["ordering", "bad_roots"]);
    assert!(!fixture.storage().certificate_file().exists());
}

#[test]
fn nothing_is_ordered_that_could_not_be_stored() {
    let mut fixture = Fixture::new();
    fs::create_dir_all(fixture.temporary().join("full")).unwrap();
    assert_eq!(fixture.step().1, ["storage"]);
}

#[test]
fn a_damaged_certificate_is_set_aside_and_replaced() {
    let whole = issued();
    let (half, _) = whole.split_at(whole.len() - 100);
    let text = str::from_utf8(&whole).unwrap();
    let garbled = text.replacen("BEGIN CERTIFICATE", "BEGIN CERTIFICAT", 1);
    let (_, chain) = text.split_at(text.find("-----BEGIN CERTIFICATE").unwrap());
    let other_key = KeyPair::generate().unwrap().serialize_pem() + chain;
    for (contents, why) in [
        (&b""[..], "has no private key"),
        (half, "is not in PEM"),
        (garbled.as_bytes(), "is not in PEM"),
        (other_key.as_bytes(), "has the key of another certificate"),
    ] {
        let mut fixture = Fixture::new();
        fixture.storage().write_certificate(contents).unwrap();
        let damaged = format!("damaged: {why}");
        assert_eq!(fixture.step().1, [&*damaged, "ordering", "bad_roots"]);
        let file = fixture.storage().certificate_file();
        assert!(!file.exists());
        assert_eq!(fs::read(file.with_extension("bad")).unwrap(), contents);
    }
}

#[test]
fn a_certificate_that_cannot_be_read_is_not_replaced() {
    let mut fixture = Fixture::new();
    let file = fixture.storage().certificate_file();
    fs::create_dir_all(&file).unwrap();
    assert_eq!(fixture.step().1, ["storage"]);
    assert!(file.exists());
    assert!(set_aside_damaged(&fixture.settings).is_err());
}

#[test]
fn a_start_sets_only_damaged_certificates_aside() {
    let fixture = Fixture::new();
    let set_aside = || set_aside_damaged(&fixture.settings).unwrap();
    assert_eq!(set_aside(), None);
    assert!(!fixture.settings.storage.exists());
    fixture.storage().write_certificate(&issued()).unwrap();
    assert_eq!(set_aside(), None);
    fixture.storage().write_certificate(b"garbled").unwrap();
    let (file, why) = set_aside().unwrap();
    assert_eq!(why, "has no private key");
    assert_eq!(fs::read(file).unwrap(), b"garbled");
    assert_eq!(set_aside(), None);
}

//! Detection of edited files of the active bundle.

use super::{Client, MAX_DIAGNOSTICS};
use crate::bundle::{Bundle, UnpackedFiles};
use crate::event::EventKind;
use control_wire::{NodeEvent, NodeStatus};
use jiff::Timestamp;
use std::path::Path;

impl Client {
    /// From now on, compares this bundle's files with each report.
    pub(super) fn watch_files(&mut self, bundle: &Bundle, folder: &Path) {
        let is_on_disk = !folder.as_os_str().is_empty();
        self.active_files = is_on_disk.then(|| bundle.unpacked_in(folder));
    }

    /// Adds edited files of the active bundle to the status; sends an event once.
    pub(super) fn compare_files(&mut self, status: &mut NodeStatus) {
        let checked = self.active_files.as_ref().map(UnpackedFiles::check);
        let fault = checked.and_then(Result::err);
        status.altered = fault.is_some();
        if let Some(fault) = &fault {
            status.diagnostics.truncate(MAX_DIAGNOSTICS - 1);
            if self.last_alteration.is_none() {
                tracing::warn!(fault, "a file of the bundle in force was edited");
                self.events.push(NodeEvent {
                    at: Timestamp::now(),
                    kind: EventKind::BundleAltered.name().to_owned(),
                    message: fault.chars().take(1_000).collect(),
                });
            }
            status.diagnostics.push(fault.clone());
        }
        self.last_alteration = fault;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use control_wire::{BundleId, NodeId, Order, SigningKeyId};
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;
    use uuid::Uuid;

    const SIGNED: &str = "listeners {}";

    fn client() -> Client {
        let settings = Settings {
            url: "http://control.test".to_owned(),
            project: None,
            enrolment_token_file: None,
            data_dir: PathBuf::new(),
            machine_key_file: None,
            ca_file: None,
            name: "node".to_owned(),
            labels: BTreeMap::new(),
            version: "0.1.0",
            schema_version: 1,
        };
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Client::simulated(settings, http, Duration::MAX)
    }

    fn bundle() -> Bundle {
        Bundle {
            order: Order {
                node: NodeId(Uuid::nil()),
                bundle: BundleId(Uuid::nil()),
                digest: String::new(),
                counter: 1,
                kid: SigningKeyId(Uuid::nil()),
                signature: String::new(),
            },
            archive: Arc::from(*b""),
            files: BTreeMap::from([("proxy.kdl".to_owned(), SIGNED.as_bytes().to_vec())]),
        }
    }

    /// Status of the next heartbeat, with these diagnostics of the machine.
    fn report(client: &mut Client, diagnostics: Vec<String>) -> NodeStatus {
        let mut status = NodeStatus {
            diagnostics,
            ..NodeStatus::default()
        };
        client.compare_files(&mut status);
        status
    }

    fn event_kinds(client: &Client) -> Vec<&str> {
        let events = client.events.iter();
        events.map(|event| event.kind.as_str()).collect()
    }

    #[test]
    fn an_edited_file_is_in_each_report_and_causes_one_event() {
        let folder = tempfile::tempdir().unwrap();
        let entry = folder.path().join("proxy.kdl");
        fs::write(&entry, SIGNED).unwrap();
        let mut client = client();
        client.watch_files(&bundle(), folder.path());
        assert_eq!(report(&mut client, Vec::new()), NodeStatus::default());

        fs::write(&entry, "listeners { }").unwrap();
        for _ in 0..2 {
            let status = report(&mut client, vec!["another fault".to_owned()]);
            assert!(status.altered, "{status:?}");
            assert_eq!(status.diagnostics.len(), 2, "{status:?}");
            let fault = &status.diagnostics[1];
            assert!(fault.contains("proxy.kdl` is not as it was"), "{fault}");
        }
        assert_eq!(event_kinds(&client), ["bundle.altered"]);
        let message = &client.events[0].message;
        assert!(message.contains("proxy.kdl` is not as it was"), "{message}");

        fs::write(&entry, SIGNED).unwrap();
        assert_eq!(report(&mut client, Vec::new()), NodeStatus::default());
        fs::remove_file(&entry).unwrap();
        assert!(report(&mut client, Vec::new()).altered);
        assert_eq!(event_kinds(&client), ["bundle.altered"; 2]);
    }

    #[test]
    fn an_alteration_has_its_place_among_the_diagnostics() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("proxy.kdl"), SIGNED).unwrap();
        fs::write(folder.path().join("added.kdl"), "").unwrap();
        let mut client = client();
        client.watch_files(&bundle(), folder.path());

        let status = report(&mut client, vec!["fault".to_owned(); MAX_DIAGNOSTICS]);

        assert!(status.altered);
        assert_eq!(status.diagnostics.len(), MAX_DIAGNOSTICS);
        let last = status.diagnostics.last().unwrap();
        assert!(last.contains("added.kdl"), "{last}");
    }

    #[test]
    fn a_node_without_a_disk_reports_no_alteration() {
        let mut client = client();
        client.watch_files(&bundle(), Path::new(""));
        assert_eq!(report(&mut client, Vec::new()), NodeStatus::default());
        assert_eq!(event_kinds(&client), [""; 0]);
    }
}

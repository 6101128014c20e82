//! The end of a server, and the handover of its sockets to another process.

use super::Server;
use crate::listen::OnDrop;
use crate::sockets::handover::Label;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::worker::Command;
use proxy_pipeline::{Draining, Time};
use socket2::Socket;
use std::io;

impl Server {
    /// Takes ownership of the sockets from the predecessor.
    pub(crate) fn finish_handover(&mut self) {
        self.listeners.set_backlogs(&ListenerSet::default());
        self.listeners.set_files_on_drop(OnDrop::Remove);
        self.inherited.close_unclaimed(&self.disk);
        self.inherited.log_unclaimed();
    }

    /// The sockets through which a process that takes over forwards datagrams to this one, and to
    /// those before it; none without HTTP/3.
    pub(crate) fn open_relays(&mut self) -> io::Result<Vec<(Label, Socket)>> {
        let Some(label) = self.listeners.relay_label() else {
            return Ok(Vec::new());
        };
        let (receiver, sockets) = self.common.http3.relay()?;
        self.relay = Some(receiver);
        let labelled = sockets.into_iter().map(|socket| (label.clone(), socket));
        Ok(labelled.collect())
    }

    /// Every listening socket, for handing over to another process.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (Label, &Socket)> {
        self.listeners.sockets().chain(self.inherited.unclaimed())
    }

    /// Stops accepting, and lets workers end with their last connection.
    pub(crate) async fn drain(&mut self) {
        self.begin_drain();
        self.stop_acme();
        self.listeners.close();
        self.inherited = InheritedSockets::default();
        self.workers.stop_accepting().await;
        self.workers.send_all(|| Command::Drain(Draining::Promptly));
    }

    /// Like [`Self::drain`], while a successor accepts from the same sockets: clients are not
    /// affected.
    pub(crate) fn hand_over(&mut self) {
        self.begin_drain();
        self.stop_acme();
        if let Some(relay) = self.relay.take() {
            self.common.http3.receive(relay);
        }
        self.listeners.set_files_on_drop(OnDrop::Keep);
        self.listeners.close();
        self.inherited = InheritedSockets::default();
        self.workers.send_all(|| Command::Drain(Draining::Gently));
    }

    fn begin_drain(&mut self) {
        self.common.shared.lifecycle.drain();
        let time = *self.plan.model().system.graceful_shutdown_timeout;
        self.exporters.begin_drain(self.process_ns(), time);
    }

    fn stop_acme(&mut self) {
        if let Some(acme) = &mut self.acme {
            acme.stop();
        }
    }

    /// Returns true if every worker has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.workers.is_over()
    }

    /// Ends all workers at once. After a drain, spans and metrics are exported in its remaining
    /// time.
    pub(crate) async fn stop(mut self) {
        self.workers.stop().await;
        let now_ns = Time::shared_ns(&self.common.shared.clock);
        self.exporters.flush(now_ns).await;
        self.logs.close();
    }
}

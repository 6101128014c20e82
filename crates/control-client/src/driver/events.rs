//! Events of the node, kept until the control plane has received them.

use super::{Client, fault_text};
use crate::channel::ChannelError;
use crate::event::Event;
use crate::state::Identity;
use control_wire::NodeEvent;
use jiff::Timestamp;

impl Client {
    /// Collects the machine's events; keeps the newest 100.
    pub(super) fn collect_events(&mut self) {
        for event in self.machine.take_events() {
            self.refusals.extend(event.kind.refusal());
            self.record_event(event);
        }
        let surplus = self.events.len().saturating_sub(100);
        self.events.drain(..surplus);
    }

    pub(super) fn record_event(&mut self, event: Event) {
        let (kind, message) = (event.kind.name(), event.message);
        tracing::info!(event = kind, reason = message, "control plane");
        self.events.push(NodeEvent {
            at: Timestamp::now(),
            kind: kind.to_owned(),
            message: message.chars().take(1_000).collect(),
        });
    }

    /// Sends the events. Unacknowledged ones are sent again, and may arrive twice.
    pub(super) async fn send_events(&mut self, own: &Identity) {
        if self.events.is_empty() {
            return;
        }
        match self.channel.send_events(own, &self.events).await {
            Ok(()) => self.events.clear(),
            Err(ChannelError::Refused(why)) => {
                self.events.clear();
                self.report_fault(&why);
            }
            Err(error) => self.report_fault(&fault_text(error)),
        }
    }
}

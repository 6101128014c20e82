//! Heartbeats while a bundle is activated.

use super::{Client, fault_text};
use control_wire::{Health, HeartbeatRequest};
use std::pin::pin;
use tokio::time::sleep;

impl Client {
    /// Sends heartbeats until `work` is done, because live tests may take longer than a node may be
    /// silent. They contain neither status nor traffic: a switch is reported only after its end.
    pub(super) async fn with_heartbeats<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = sleep(self.interval) => {}
            }
            tokio::select! {
                done = &mut work => return done,
                () = self.send_heartbeat() => {}
            }
        }
    }

    /// Sends a heartbeat without a status. Ignores the response, because the next report gets the
    /// orders.
    async fn send_heartbeat(&self) {
        let Some(own) = self.machine.identity() else {
            return;
        };
        let heartbeat = HeartbeatRequest {
            health: Health {
                cpu_percent: self.cpu_percent,
            },
            version: Some(self.settings.version.to_owned()),
            status: None,
            traffic: None,
            instance: self.instance,
        };
        if let Err(error) = self.channel.heartbeat(own, &heartbeat).await {
            let fault = fault_text(error);
            tracing::debug!(fault, "no heartbeat while a bundle is put in force");
        }
    }
}

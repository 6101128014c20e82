//! Heartbeats while a bundle is put in force.

use super::{Client, fault_text};
use control_wire::{Health, HeartbeatRequest};
use std::pin::pin;
use tokio::time::sleep;

impl Client {
    /// Sends heartbeats until `work` is done: live tests take longer than a node may be silent. The status and the
    /// traffic of the last report stay, so that a switch is reported after its end alone.
    pub(super) async fn reporting<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = sleep(self.interval) => {}
            }
            tokio::select! {
                done = &mut work => return done,
                () = self.show_life() => {}
            }
        }
    }

    /// A heartbeat without news. The next report reads the answer of the control plane to the order.
    async fn show_life(&self) {
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

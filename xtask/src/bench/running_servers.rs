//! The servers that run at the moment.

use super::environment::Environment;
use super::load_process::LoadProcess;
use super::proof;
use super::running::{Run, Running};
use super::server::Server;
use crate::task_error::TaskError;
use proxy_load::command::Protocol;

/// Servers, in order.
#[derive(Debug, Default)]
pub(super) struct RunningServers {
    servers: Vec<CheckedServer>,
}

/// A server, its process, and what it has shown to do as all must.
#[derive(Debug)]
pub(super) struct CheckedServer {
    pub(super) server: Server,
    /// Why there is none, if there is none.
    running: Result<Running, String>,
    /// What it does otherwise, by protocol.
    refused: Vec<(Protocol, String)>,
}

impl RunningServers {
    /// Puts servers on, in place of those that are. The same ones go on as they are.
    pub(super) fn set(
        &mut self,
        environment: &Environment,
        load_process: &mut LoadProcess,
        servers: &[Server],
    ) -> Result<(), TaskError> {
        let on = self.servers.iter().map(|checked| &checked.server);
        if on.eq(servers) {
            return Ok(());
        }
        self.servers.clear();
        for server in servers {
            self.servers
                .push(CheckedServer::enter(environment, load_process, server)?);
        }
        Ok(())
    }

    /// Stops all of them.
    pub(super) fn clear(&mut self) {
        self.servers.clear();
    }

    /// The running servers, in order.
    pub(super) fn servers(&self) -> &[CheckedServer] {
        &self.servers
    }
}

impl CheckedServer {
    /// Starts a server, and lets it prove itself by every protocol that it is set up for.
    pub(super) fn enter(
        environment: &Environment,
        load_process: &mut LoadProcess,
        server: &Server,
    ) -> Result<Self, TaskError> {
        let running = reason(Running::start(environment, server, &Run::Bare))?;
        let mut refused = Vec::new();
        if let Ok(running) = &running {
            let protocols: &[Protocol] = if server.setup.tls {
                &[Protocol::Tls, Protocol::Http2]
            } else {
                &[Protocol::Plain]
            };
            for protocol in protocols {
                let port = running.ports.clients;
                let proof = proof::prove(load_process, port, &server.setup, *protocol);
                if let Err(why) = reason(proof)? {
                    refused.push((*protocol, why));
                }
            }
        }
        Ok(Self {
            server: server.clone(),
            running,
            refused,
        })
    }

    /// Its process, if it can be driven by this protocol; else why not.
    pub(super) fn ready(&self, protocol: Protocol) -> Result<&Running, &str> {
        let mut refused = self.refused.iter();
        match refused.find(|(refused, _)| *refused == protocol) {
            Some((_, why)) => Err(why),
            None => self.running.as_ref().map_err(String::as_str),
        }
    }
}

/// Parts what a server lacks, which is left out and told, from what ends a run.
pub(super) fn reason<T>(outcome: Result<T, TaskError>) -> Result<Result<T, String>, TaskError> {
    match outcome {
        Ok(done) => Ok(Ok(done)),
        Err(TaskError::Failed(why)) => Ok(Err(why)),
        Err(error @ TaskError::Start { .. }) => Ok(Err(error.told())),
        Err(error) => Err(error),
    }
}

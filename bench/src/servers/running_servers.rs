//! Servers that are running now.

use crate::servers::environment::Environment;
use crate::servers::load_process::LoadProcess;
use crate::servers::proof;
use crate::servers::running::{Run, Running};
use crate::servers::server::Server;
use proxy_load::command::Protocol;
use xtask_kit::task_error::TaskError;

/// Running servers, in order.
#[derive(Debug, Default)]
pub(crate) struct RunningServers {
    servers: Vec<CheckedServer>,
}

/// A server, its process, and the results of its checks.
#[derive(Debug)]
pub(crate) struct CheckedServer {
    pub(crate) server: Server,
    /// The process, or the reason why the server does not run.
    running: Result<Running, String>,
    /// Differences from the expected results, by protocol.
    refused: Vec<(Protocol, String)>,
}

impl RunningServers {
    /// Starts these servers in place of the current ones. Does nothing if they are the same;
    /// otherwise restarts all of them.
    pub(crate) fn set(
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

    pub(crate) fn clear(&mut self) {
        self.servers.clear();
    }

    pub(crate) fn servers(&self) -> &[CheckedServer] {
        &self.servers
    }
}

impl CheckedServer {
    /// Starts a server, and checks every protocol of its set-up.
    pub(crate) fn enter(
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

    /// Returns the process, or the reason why it cannot be measured over this protocol.
    pub(crate) fn ready(&self, protocol: Protocol) -> Result<&Running, &str> {
        let mut refused = self.refused.iter();
        match refused.find(|(refused, _)| *refused == protocol) {
            Some((_, why)) => Err(why),
            None => self.running.as_ref().map_err(String::as_str),
        }
    }
}

/// Separates failures of one server, which are reported, from errors that end the run.
pub(crate) fn reason<T>(outcome: Result<T, TaskError>) -> Result<Result<T, String>, TaskError> {
    match outcome {
        Ok(done) => Ok(Ok(done)),
        Err(TaskError::Failed(why)) => Ok(Err(why)),
        Err(error @ TaskError::Start { .. }) => Ok(Err(error.message())),
        Err(error) => Err(error),
    }
}

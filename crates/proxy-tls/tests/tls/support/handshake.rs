//! Two TLS ends connected by buffers.

use rustls::{ClientConfig, ClientConnection, Error, ServerConfig, ServerConnection};
use rustls_pki_types::ServerName;
use std::io::{Read, Write};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) client: ClientConnection,
    pub(crate) server: ServerConnection,
}

/// Errors of both ends of a failed handshake.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) client: Option<Error>,
    pub(crate) server: Option<Error>,
}

/// Performs a handshake; `name` is a host name or an IP address.
pub(crate) fn connect(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    name: &str,
) -> Result<Pair, Box<Broken>> {
    let mut pair = Pair::new(client, server, name);
    pair.shake()?;
    Ok(pair)
}

impl Pair {
    pub(crate) fn new(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>, name: &str) -> Self {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        Self {
            client: ClientConnection::new(Arc::clone(client), name).unwrap(),
            server: ServerConnection::new(Arc::clone(server)).unwrap(),
        }
    }

    /// Exchanges data until neither end has more to send.
    pub(crate) fn shake(&mut self) -> Result<(), Box<Broken>> {
        let (mut client, mut server) = (None, None);
        while self.client.wants_write() || self.server.wants_write() {
            if let Err(error) = self.deliver_client_data() {
                server.get_or_insert(error);
            }
            if let Err(error) = self.deliver_server_data() {
                client.get_or_insert(error);
            }
        }
        if client.is_some() || server.is_some() {
            return Err(Box::new(Broken { client, server }));
        }
        assert!(!self.client.is_handshaking() && !self.server.is_handshaking());
        Ok(())
    }

    /// Delivers the client's data to the server.
    pub(crate) fn deliver_client_data(&mut self) -> Result<(), Error> {
        let mut wire = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            self.server.read_tls(&mut rest).unwrap();
            self.server.process_new_packets()?;
        }
        Ok(())
    }

    /// Delivers the server's data to the client.
    pub(crate) fn deliver_server_data(&mut self) -> Result<(), Error> {
        let mut wire = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            self.client.read_tls(&mut rest).unwrap();
            self.client.process_new_packets()?;
        }
        Ok(())
    }

    /// Returns the leaf that the client received.
    pub(crate) fn leaf(&self) -> &[u8] {
        self.client.peer_certificates().unwrap()[0].as_ref()
    }

    /// Sends some bytes in both directions.
    pub(crate) fn exchange_data(&mut self) {
        self.client.writer().write_all(b"ping").unwrap();
        self.server.writer().write_all(b"pong").unwrap();
        self.shake().unwrap();
        let mut received = [0; 4];
        self.server.reader().read_exact(&mut received).unwrap();
        assert_eq!(&received, b"ping");
        self.client.reader().read_exact(&mut received).unwrap();
        assert_eq!(&received, b"pong");
    }
}

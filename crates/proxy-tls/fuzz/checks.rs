//! Properties of `ClientHello` messages for any bytes, checked by the fuzz target and by a test that
//! replays its corpus.

use proxy_tls::{ClientHello, ClientHelloError, ClientHelloReader, MAX_CLIENT_HELLO_BYTES};

/// Property: the result does not depend on how the bytes are divided, a server name is a DNS name,
/// and no more than the maximum is awaited.
pub(crate) fn client_hello(data: &[u8]) {
    let whole = read([data]);
    assert_eq!(whole, read(data.chunks(1)));
    let (first, second) = data.split_at(data.len() / 2);
    assert_eq!(whole, read([first, second]));
    match whole {
        Ok(Some(ClientHello { server_name })) => {
            let name = server_name.as_deref().unwrap_or("a");
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            assert!(name.bytes().all(is_allowed) && name.len() <= 253);
            assert!(!name.starts_with('.') && !name.ends_with('.'));
            assert_eq!(name, name.to_ascii_lowercase());
        }
        Ok(None) => assert!(data.len() < MAX_CLIENT_HELLO_BYTES),
        Err(_) => {}
    }
}

fn read<'b>(
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> Result<Option<ClientHello>, ClientHelloError> {
    let mut reader = ClientHelloReader::default();
    for piece in pieces {
        if let Some(hello) = reader.read(piece)? {
            return Ok(Some(hello));
        }
    }
    Ok(None)
}

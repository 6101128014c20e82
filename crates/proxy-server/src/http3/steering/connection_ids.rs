//! Connection IDs that name the endpoint that owns the connection.
//!
//! The kernel spreads datagrams over the sockets of an address by the client's address, which may
//! change while a connection lasts. An ID is a random nonce, the owner encrypted by a keystream
//! from the nonce, and a tag: an observer without the key sees random bytes, and IDs of other
//! origin are recognised as such. [RFC 9000 §5.1]

use aws_lc_rs::rand;
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;
use std::time::Duration;

const NONCE_BYTES: usize = 8;
const OWNER_BYTES: usize = 3;
const TAG_BYTES: usize = 3;

/// Length of an ID in bytes; at most 20.
pub(in crate::http3) const ID_BYTES: usize = NONCE_BYTES + OWNER_BYTES + TAG_BYTES;

/// The endpoint that owns a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http3) struct Owner {
    /// Number of the process in the sequence of upgrades.
    pub(in crate::http3) process: u8,
    /// Number of the endpoint in the process.
    pub(in crate::http3) endpoint: u16,
}

impl Owner {
    fn bytes(self) -> [u8; OWNER_BYTES] {
        let [high, low] = self.endpoint.to_be_bytes();
        [self.process, high, low]
    }
}

impl From<[u8; OWNER_BYTES]> for Owner {
    fn from([process, high, low]: [u8; OWNER_BYTES]) -> Self {
        Self {
            process,
            endpoint: u16::from_be_bytes([high, low]),
        }
    }
}

/// Reads and writes owners in IDs.
#[derive(Clone)]
pub(in crate::http3) struct IdCipher {
    key: [u8; 16],
}

impl IdCipher {
    pub(in crate::http3) fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// The owner in `id`; `None` if `id` is not one of ours.
    pub(in crate::http3) fn owner(&self, id: &[u8]) -> Option<Owner> {
        let (nonce, rest) = id.split_first_chunk::<NONCE_BYTES>()?;
        let (owner, tag) = rest.split_first_chunk::<OWNER_BYTES>()?;
        let owner = self.masked(*nonce, *owner);
        (tag == self.tag(*nonce, owner)).then(|| owner.into())
    }

    fn id(&self, nonce: [u8; NONCE_BYTES], owner: Owner) -> [u8; ID_BYTES] {
        let owner = owner.bytes();
        let mut id = [0; ID_BYTES];
        let bytes = nonce
            .into_iter()
            .chain(self.masked(nonce, owner))
            .chain(self.tag(nonce, owner));
        id.iter_mut()
            .zip(bytes)
            .for_each(|(byte, from)| *byte = from);
        id
    }

    fn masked(&self, nonce: [u8; NONCE_BYTES], owner: [u8; OWNER_BYTES]) -> [u8; OWNER_BYTES] {
        let mask = self.hash(nonce, &[]);
        let mut masked = owner;
        for (byte, mask) in masked.iter_mut().zip(mask) {
            *byte ^= mask;
        }
        masked
    }

    fn tag(&self, nonce: [u8; NONCE_BYTES], owner: [u8; OWNER_BYTES]) -> [u8; TAG_BYTES] {
        let [first, second, third, ..] = self.hash(nonce, &owner);
        [first, second, third]
    }

    fn hash(&self, nonce: [u8; NONCE_BYTES], more: &[u8]) -> [u8; 16] {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(&nonce);
        hasher.write(more);
        hasher.finish128().as_bytes()
    }
}

/// Generates the IDs of one endpoint's connections.
pub(in crate::http3) struct OwnedIds {
    cipher: IdCipher,
    owner: Owner,
}

impl OwnedIds {
    pub(in crate::http3) fn new(cipher: IdCipher, owner: Owner) -> Self {
        Self { cipher, owner }
    }
}

impl ConnectionIdGenerator for OwnedIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut nonce = [0; NONCE_BYTES];
        // Fails only if the system has no randomness. A repeated ID is detected by the caller.
        rand::fill(&mut nonce).unwrap_or_default();
        ConnectionId::new(&self.cipher.id(nonce, self.owner))
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        self.cipher.owner(id).map(drop).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The ID to which `datagram` is addressed; `None` if the datagram is cut off. [RFC 8999 §5]
pub(in crate::http3) fn destination(datagram: &[u8]) -> Option<&[u8]> {
    const LONG_HEADER: u8 = 0x80;
    let (first, rest) = datagram.split_first()?;
    if first & LONG_HEADER == 0 {
        return rest.get(..ID_BYTES);
    }
    let (_version, rest) = rest.split_first_chunk::<4>()?;
    let (len, rest) = rest.split_first()?;
    rest.get(..usize::from(*len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(endpoint: u16) -> Owner {
        Owner {
            process: 3,
            endpoint,
        }
    }

    fn cipher(key: u8) -> IdCipher {
        IdCipher::new([key; 16])
    }

    #[test]
    fn an_id_names_its_owner() {
        for owner in [0, 1, 255, 256, u16::MAX].map(owner) {
            let mut ids = OwnedIds::new(cipher(1), owner);
            let id = ids.generate_cid();
            assert_eq!(cipher(1).owner(&id), Some(owner));
            assert!(ids.validate(&id).is_ok());
            assert_ne!(ids.generate_cid(), id);
        }
    }

    #[test]
    fn other_ids_have_no_owner() {
        let id = OwnedIds::new(cipher(1), owner(7)).generate_cid();
        assert_eq!(cipher(2).owner(&id), None);
        assert_eq!(cipher(1).owner(&id[..ID_BYTES - 1]), None);
        assert_eq!(cipher(1).owner(&[&id[..], &[0]].concat()), None);
        for byte in 0..ID_BYTES {
            let mut changed = id.to_vec();
            changed[byte] ^= 1;
            assert_eq!(cipher(1).owner(&changed), None, "{byte}");
        }
    }

    #[test]
    fn the_destination_of_a_datagram_is_found() {
        let id: Vec<u8> = (0..14).collect();
        assert_eq!(
            destination(&[&[0x40][..], &id, &[9; 20]].concat()),
            Some(&id[..])
        );
        let long = [&[0xc0, 0, 0, 0, 1, 4][..], b"abcd", &[0; 30]].concat();
        assert_eq!(destination(&long), Some(&b"abcd"[..]));
        for cut in [
            &[][..],
            &[0x40, 1],
            &[0xc0, 0, 0, 0, 1],
            &[0xc0, 0, 0, 0, 1, 2, 1],
        ] {
            assert_eq!(destination(cut), None);
        }
    }
}

//! OCSP responses for stapling.

use crate::certificate::leaf::system_time;
use crate::error::StapleError;
use std::time::SystemTime;
use x509_parser::asn1_rs::{Any, Class, FromDer, Tag};
use x509_parser::time::ASN1Time;

/// An OCSP response with the status "good" for a certificate.
#[derive(Clone, Debug)]
pub(crate) struct Staple {
    pub(crate) der: Vec<u8>,
    /// Time when a newer response is due; `None` if the responder does not say.
    pub(crate) next_update: Option<SystemTime>,
}

impl Staple {
    /// Parses an OCSP response and finds the status for this serial number. The signature is not
    /// verified, because clients do that. [RFC 6960 §4.2.1]
    pub(crate) fn parse(der: &[u8], serial: &[u8]) -> Result<Self, StapleError> {
        let mut answers = answers(der)?;
        while !answers.is_empty() {
            let single = take(&mut answers, Tag::Sequence).ok_or(StapleError::Malformed)?;
            let (answered, rest) = certificate_id(single).ok_or(StapleError::Malformed)?;
            if answered == serial {
                let next_update = if_good(rest)?;
                return Ok(Self {
                    der: der.to_vec(),
                    next_update,
                });
            }
        }
        Err(StapleError::OtherCertificate)
    }

    /// Time since which the response is stale; `None` while it is fresh.
    pub(crate) fn stale_since(&self, now: SystemTime) -> Option<SystemTime> {
        self.next_update.filter(|due| *due <= now)
    }
}

/// The `SEQUENCE OF SingleResponse` inside an `OCSPResponse`.
fn answers(mut der: &[u8]) -> Result<&[u8], StapleError> {
    const SUCCESSFUL: [u8; 1] = [0];
    let malformed = StapleError::Malformed;
    let mut response = take(&mut der, Tag::Sequence).ok_or(malformed)?;
    if take(&mut response, Tag::Enumerated).ok_or(malformed)? != SUCCESSFUL {
        return Err(StapleError::Refused);
    }
    basic_answers(response).ok_or(malformed)
}

fn basic_answers(mut response: &[u8]) -> Option<&[u8]> {
    let mut tagged = take_tagged(&mut response, 0)?;
    let mut typed = take(&mut tagged, Tag::Sequence)?;
    take(&mut typed, Tag::Oid)?;
    let mut octets = take(&mut typed, Tag::OctetString)?;
    let mut basic = take(&mut octets, Tag::Sequence)?;
    let mut data = take(&mut basic, Tag::Sequence)?;
    let _version = take_tagged(&mut data, 0);
    let _responder = take_tagged(&mut data, 1).or_else(|| take_tagged(&mut data, 2))?;
    take(&mut data, Tag::GeneralizedTime)?;
    take(&mut data, Tag::Sequence)
}

/// The serial number in a `SingleResponse`, and the bytes after it.
fn certificate_id(mut single: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut id = take(&mut single, Tag::Sequence)?;
    take(&mut id, Tag::Sequence)?;
    take(&mut id, Tag::OctetString)?;
    take(&mut id, Tag::OctetString)?;
    let serial = take(&mut id, Tag::Integer)?;
    Some((serial, single))
}

/// Reads `nextUpdate` if the status is good.
fn if_good(mut rest: &[u8]) -> Result<Option<SystemTime>, StapleError> {
    take_tagged(&mut rest, 0).ok_or(StapleError::NotGood)?;
    take(&mut rest, Tag::GeneralizedTime).ok_or(StapleError::Malformed)?;
    let Some(next_update) = take_tagged(&mut rest, 0) else {
        return Ok(None);
    };
    let (_, time) = ASN1Time::from_der(next_update).map_err(|_| StapleError::Malformed)?;
    Ok(Some(system_time(time)))
}

fn take<'a>(input: &mut &'a [u8], tag: Tag) -> Option<&'a [u8]> {
    take_class(input, Class::Universal, tag)
}

fn take_tagged<'a>(input: &mut &'a [u8], tag: u32) -> Option<&'a [u8]> {
    take_class(input, Class::ContextSpecific, Tag(tag))
}

/// Consumes the next element, if it has this class and tag.
fn take_class<'a>(input: &mut &'a [u8], class: Class, tag: Tag) -> Option<&'a [u8]> {
    let (rest, element) = Any::from_der(input).ok()?;
    if element.class() != class || element.tag() != tag {
        return None;
    }
    *input = rest;
    Some(element.data)
}

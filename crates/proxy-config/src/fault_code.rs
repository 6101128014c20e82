//! The kinds of things that can be wrong, under names that stay.

use crate::Severity;
use std::fmt;

/// A kind of thing that is wrong, or doubtful. The names never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultCode {
    /// A file cannot be read.
    UnreadableFile,
    /// A file, or all files together, are too large.
    FileTooLarge,
    /// A file is not UTF-8.
    NotUtf8,
    /// A file is not KDL.
    Syntax,
    /// Blocks stand too deep within blocks.
    NestingTooDeep,
    /// An `include` matches no file.
    IncludeWithoutMatch,
    /// A file includes itself, directly or not.
    IncludeCycle,
    /// Files include files too many times over.
    IncludeTooDeep,
    /// A name that nothing is called here.
    UnknownSetting,
    /// A word that is none of those a setting takes.
    UnknownWord,
    /// A value of another type.
    WrongType,
    /// A number, size or time outside its range.
    OutOfRange,
    /// Text that is not of the form it should have.
    BadValue,
    /// A regular expression that does not compile.
    BadRegex,
    /// A setting that must be there and is not.
    MissingSetting,
    /// A setting without its value.
    MissingValue,
    /// A value too many.
    UnexpectedValue,
    /// A block where there is none.
    UnexpectedBlock,
    /// A type annotation; settings know their own types.
    UnexpectedAnnotation,
    /// A setting that is there twice.
    RepeatedSetting,
    /// Two things of one kind with the same name.
    DuplicateName,
    /// A name that nothing has.
    UndefinedName,
    /// A file or folder that is not there.
    MissingFile,
    /// Settings that exclude each other.
    Conflict,
    /// A header that is the proxy's own business.
    ProtectedHeader,
    /// An admin interface that others can reach, without a token.
    AdminWithoutToken,
    /// A setting that has no effect yet.
    NotImplementedYet,
    /// An address that another process, or another listener, has.
    AddressInUse,
    /// A certificate or key that cannot be used.
    BadCertificate,
    /// A route that no request can reach.
    UnreachableRoute,
    /// An upstream that no route names.
    UnusedUpstream,
    /// A target on port 443 that is spoken to in plaintext.
    PlaintextToTlsPort,
    /// More connections allowed than the process may have files.
    TooManyConnections,
    /// A regular expression that says no more than a prefix would.
    RegexCouldBePrefix,
    /// A setting that has a successor.
    DeprecatedSetting,
    /// A certificate that expires soon, or has expired.
    CertificateExpires,
    /// A certificate that serves fewer clients than meant.
    DoubtfulCertificate,
}

impl FaultCode {
    /// All of them, in the order of the reference.
    pub const ALL: [Self; 37] = [
        Self::UnreadableFile,
        Self::FileTooLarge,
        Self::NotUtf8,
        Self::Syntax,
        Self::NestingTooDeep,
        Self::IncludeWithoutMatch,
        Self::IncludeCycle,
        Self::IncludeTooDeep,
        Self::UnknownSetting,
        Self::UnknownWord,
        Self::WrongType,
        Self::OutOfRange,
        Self::BadValue,
        Self::BadRegex,
        Self::MissingSetting,
        Self::MissingValue,
        Self::UnexpectedValue,
        Self::UnexpectedBlock,
        Self::UnexpectedAnnotation,
        Self::RepeatedSetting,
        Self::DuplicateName,
        Self::UndefinedName,
        Self::MissingFile,
        Self::Conflict,
        Self::ProtectedHeader,
        Self::AdminWithoutToken,
        Self::NotImplementedYet,
        Self::AddressInUse,
        Self::BadCertificate,
        Self::UnreachableRoute,
        Self::UnusedUpstream,
        Self::PlaintextToTlsPort,
        Self::TooManyConnections,
        Self::RegexCouldBePrefix,
        Self::DeprecatedSetting,
        Self::CertificateExpires,
        Self::DoubtfulCertificate,
    ];

    /// Its name in reports and in JSON.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// What it means, in a sentence.
    pub const fn meaning(self) -> &'static str {
        self.row().1
    }

    /// Whether a configuration can be used in spite of it.
    pub const fn severity(self) -> Severity {
        let is_warning = matches!(
            self,
            Self::UnreachableRoute
                | Self::UnusedUpstream
                | Self::PlaintextToTlsPort
                | Self::TooManyConnections
                | Self::RegexCouldBePrefix
                | Self::DeprecatedSetting
                | Self::CertificateExpires
                | Self::DoubtfulCertificate
        );
        if is_warning {
            Severity::Warning
        } else {
            Severity::Error
        }
    }

    #[rustfmt::skip]
    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::UnreadableFile => ("unreadable-file", "A file cannot be read."),
            Self::FileTooLarge => ("file-too-large", "A file is larger than 16 MiB, or all files together are larger than 64 MiB."),
            Self::NotUtf8 => ("not-utf-8", "A file is not UTF-8; nothing after that place is read."),
            Self::Syntax => ("syntax", "A file is neither KDL 2 nor KDL 1. The faults are those of KDL 2."),
            Self::NestingTooDeep => ("nesting-too-deep", "Blocks stand more than 32 deep within blocks."),
            Self::IncludeWithoutMatch => ("include-without-match", "An `include` matches no file."),
            Self::IncludeCycle => ("include-cycle", "A file includes itself, directly or by way of others."),
            Self::IncludeTooDeep => ("include-too-deep", "Files include files more than 8 times over."),
            Self::UnknownSetting => ("unknown-setting", "Nothing is called so here."),
            Self::UnknownWord => ("unknown-word", "The value is none of the words that the setting takes."),
            Self::WrongType => ("wrong-type", "The value is of another type than the setting's."),
            Self::OutOfRange => ("out-of-range", "The number, size or time is outside the setting's range."),
            Self::BadValue => ("bad-value", "The text is not of the form that the setting takes."),
            Self::BadRegex => ("bad-regex", "The regular expression does not compile."),
            Self::MissingSetting => ("missing-setting", "A setting that must be written is not."),
            Self::MissingValue => ("missing-value", "A setting is written without its value, or a block without its name."),
            Self::UnexpectedValue => ("unexpected-value", "There is a value too many, or one where there is none."),
            Self::UnexpectedBlock => ("unexpected-block", "A setting that has no block is written with one."),
            Self::UnexpectedAnnotation => ("unexpected-annotation", "A value has a type annotation; settings know their own types."),
            Self::RepeatedSetting => ("repeated-setting", "A setting is written twice; which one was meant cannot be known."),
            Self::DuplicateName => ("duplicate-name", "Two things of one kind have the same name."),
            Self::UndefinedName => ("undefined-name", "A route, upstream or agent is named that does not exist."),
            Self::MissingFile => ("missing-file", "A file or folder that is named does not exist."),
            Self::Conflict => ("conflict", "Settings exclude each other, or need each other."),
            Self::ProtectedHeader => ("protected-header", "A header is edited that frames the message or that the proxy itself writes."),
            Self::AdminWithoutToken => ("admin-without-token", "The admin interface listens off loopback and asks for no token."),
            Self::NotImplementedYet => ("not-implemented-yet", "The setting is known and has no effect yet; it is refused so that nobody relies on it."),
            Self::AddressInUse => ("address-in-use", "Another process, or another listener of this file, has the address."),
            Self::BadCertificate => ("bad-certificate", "A certificate or its key cannot be used."),
            Self::UnreachableRoute => ("unreachable-route", "Another route takes every request that this one could take."),
            Self::UnusedUpstream => ("unused-upstream", "No route names the upstream."),
            Self::PlaintextToTlsPort => ("plaintext-to-tls-port", "A target on port 443 is spoken to in plaintext, because its upstream has no `tls` block."),
            Self::TooManyConnections => ("too-many-connections", "More connections are allowed than the process may have files, less 100."),
            Self::RegexCouldBePrefix => ("regex-could-be-prefix", "A regular expression says no more than `path` or `path-prefix` would, which are faster."),
            Self::DeprecatedSetting => ("deprecated-setting", "A setting has a successor; `config migrate` writes it."),
            Self::CertificateExpires => ("certificate-expires", "A certificate expires within 14 days, or has expired."),
            Self::DoubtfulCertificate => ("doubtful-certificate", "A certificate serves fewer clients than meant: it is not valid yet, names no host, or its OCSP response is stale."),
        }
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

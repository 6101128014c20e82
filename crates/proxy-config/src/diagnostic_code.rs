//! The kinds of things that can be wrong, under names that stay.

use std::fmt;

/// Declares the codes. What a code means is its comment, so that the code's and the operator's
/// reference cannot differ.
macro_rules! fault_codes {
    ($($(#[doc = $doc:literal])+ $code:ident = $name:literal, $severity:ident;)+) => {
        /// A kind of thing that is wrong, or doubtful. The names never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DiagnosticCode {
            $($(#[doc = $doc])+ $code,)+
        }

        impl DiagnosticCode {
            /// All of them, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$code),+];

            /// Its name in reports and in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                let doc = match self {
                    $(Self::$code => concat!($($doc),+),)+
                };
                doc.trim_ascii()
            }

            /// Whether a configuration can be used in spite of it.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$code => Severity::$severity,)+
                }
            }
        }
    };
}

fault_codes! {
    /// A file cannot be read.
    UnreadableFile = "unreadable-file", Error;
    /// A file is larger than 16 MiB, or all files together are larger than 64 MiB.
    FileTooLarge = "file-too-large", Error;
    /// A file is not UTF-8; nothing after that place is read.
    NotUtf8 = "not-utf-8", Error;
    /// A file is neither KDL 2 nor KDL 1. The faults are those of KDL 2.
    Syntax = "syntax", Error;
    /// Blocks stand more than 32 deep within blocks.
    NestingTooDeep = "nesting-too-deep", Error;
    /// An `include` matches no file.
    IncludeWithoutMatch = "include-without-match", Error;
    /// A file includes itself, directly or by way of others.
    IncludeCycle = "include-cycle", Error;
    /// Files include files more than 8 times over.
    IncludeTooDeep = "include-too-deep", Error;
    /// Nothing is called so here.
    UnknownSetting = "unknown-setting", Error;
    /// The value is none of the words that the setting takes.
    UnknownWord = "unknown-word", Error;
    /// The value is of another type than the setting's.
    WrongType = "wrong-type", Error;
    /// The number, size or time is outside the setting's range.
    OutOfRange = "out-of-range", Error;
    /// The text is not of the form that the setting takes.
    BadValue = "bad-value", Error;
    /// The regular expression does not compile.
    BadRegex = "bad-regex", Error;
    /// A setting that must be written is not.
    MissingSetting = "missing-setting", Error;
    /// A setting is written without its value, or a block without its name.
    MissingValue = "missing-value", Error;
    /// There is a value too many, or one where there is none.
    UnexpectedValue = "unexpected-value", Error;
    /// A setting that has no block is written with one.
    UnexpectedBlock = "unexpected-block", Error;
    /// A value has a type annotation; settings know their own types.
    UnexpectedAnnotation = "unexpected-annotation", Error;
    /// A setting is written twice; which one was meant cannot be known.
    RepeatedSetting = "repeated-setting", Error;
    /// Two things of one kind have the same name.
    DuplicateName = "duplicate-name", Error;
    /// A route, upstream or agent is named that does not exist.
    UndefinedName = "undefined-name", Error;
    /// A file or folder that is named does not exist.
    MissingFile = "missing-file", Error;
    /// Settings exclude each other, or need each other.
    Conflict = "conflict", Error;
    /// A header is edited that frames the message or that the proxy itself writes.
    ProtectedHeader = "protected-header", Error;
    /// The admin interface listens off loopback and asks for no token.
    AdminWithoutToken = "admin-without-token", Error;
    /// The setting is known and has no effect yet; it is refused so that nobody relies on it.
    NotImplementedYet = "not-implemented-yet", Error;
    /// Another process, or another listener of this file, has the address.
    AddressInUse = "address-in-use", Error;
    /// An address cannot be listened on: it is not this host's, there is no permission for it, or
    /// what stands at a Unix socket's path is in the way.
    CannotListen = "cannot-listen", Error;
    /// The file of the admin interface's token cannot be read, or holds no token.
    BadToken = "bad-token", Error;
    /// A log's file cannot be opened.
    UnwritableLog = "unwritable-log", Error;
    /// A certificate or its key cannot be used.
    BadCertificate = "bad-certificate", Error;
    /// There is no listener, or no route.
    NobodyServed = "nobody-served", Warning;
    /// Another route takes every request that this one could take.
    UnreachableRoute = "unreachable-route", Warning;
    /// A path that other servers may read in another way, which leads to another route: every request for
    /// it is refused under `path-policy "strict"`.
    AmbiguousPath = "ambiguous-path", Warning;
    /// No route names the upstream.
    UnusedUpstream = "unused-upstream", Warning;
    /// A target on port 443 is spoken to in plaintext, because its upstream has no `tls` block.
    PlaintextToTlsPort = "plaintext-to-tls-port", Warning;
    /// More connections are allowed than the process may have files, less 100.
    TooManyConnections = "too-many-connections", Warning;
    /// A regular expression says no more than `path` or `path-prefix` would, which are faster.
    RegexCouldBePrefix = "regex-could-be-prefix", Warning;
    /// A value is written as another server would want it, and is taken literally here: `/api/*`, the host
    /// `_`, a variable in a header's value.
    ForeignNotation = "foreign-notation", Warning;
    /// `max-body-size 0` refuses every body; in other servers it means no limit.
    NoBodies = "no-bodies", Warning;
    /// The file that answers for paths which are none is not there, so that they are answered 404.
    MissingFallback = "missing-fallback", Warning;
    /// A setting has a successor; `config migrate` writes it.
    DeprecatedSetting = "deprecated-setting", Warning;
    /// A certificate expires within 14 days, or has expired.
    CertificateExpires = "certificate-expires", Warning;
    /// A certificate serves fewer clients than meant: it is not valid yet, names no host, or its
    /// OCSP response is stale.
    DoubtfulCertificate = "doubtful-certificate", Warning;
}

impl fmt::Display for DiagnosticCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a configuration can be used in spite of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can; it may not do what was meant.
    Warning,
}

impl Severity {
    /// The word in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

//! The status codes of gRPC.

/// The status codes of gRPC, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GrpcStatus {
    /// Not an error.
    Ok = 0,
    /// The caller cancelled the call.
    Cancelled = 1,
    /// An error without a more precise code.
    Unknown = 2,
    /// The request is invalid in any state of the system.
    InvalidArgument = 3,
    /// `timeout` of the call has passed.
    DeadlineExceeded = 4,
    /// The requested entity does not exist.
    NotFound = 5,
    /// The entity to be created exists already.
    AlreadyExists = 6,
    /// The client lacks the permission.
    PermissionDenied = 7,
    /// A limit is exhausted.
    ResourceExhausted = 8,
    /// The system is not in the required state.
    FailedPrecondition = 9,
    /// The call was aborted because of a conflict.
    Aborted = 10,
    /// The request exceeds the valid range.
    OutOfRange = 11,
    /// The method is not implemented.
    Unimplemented = 12,
    /// An invariant is broken.
    Internal = 13,
    /// The service is unavailable for now; clients may retry.
    Unavailable = 14,
    /// Data is lost.
    DataLoss = 15,
    /// The client is not authenticated.
    Unauthenticated = 16,
}

impl GrpcStatus {
    /// The number sent in `grpc-status`, 0 to 16.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

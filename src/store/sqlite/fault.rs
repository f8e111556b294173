//! SQLite's errors as the port's: the only place that reads an error code.
//!
//! Promises: no SQL and no path in what a client can see; what the log keeps is in `Error::Internal`.
//! Does not: retry.

use rusqlite::ErrorCode;

use crate::store::Error;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy,
            // "Cannot open" is what a directory gives that takes no new file beside the database.
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Error::ReadOnly,
            // Only ever by a raised flag: `connect::Lent` asks it while a statement runs.
            Some(ErrorCode::OperationInterrupted) => Error::Cancelled,
            Some(ErrorCode::DiskFull) => Error::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Damaged,
            _ => Error::Internal(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Error {
    // Only what this adapter wrote is read as JSON, so a value that does not parse is a damaged file.
    fn from(_: serde_json::Error) -> Self {
        Error::Damaged
    }
}

impl From<crate::transcript::Damaged> for Error {
    fn from(_: crate::transcript::Damaged) -> Self {
        Error::Damaged
    }
}

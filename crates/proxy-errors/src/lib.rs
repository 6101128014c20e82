//! What went wrong: said fully to the log and carefully to the client.

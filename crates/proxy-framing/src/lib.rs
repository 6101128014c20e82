//! Where one HTTP/1.1 message ends and the next begins, to the letter of RFC 9112.

//! What lies in the data directory.

use crate::cli::StateArgs;
use control_app::Environment;
use control_auth::{MasterKey, Sealer};
use std::error::Error;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// The names of the database and of the key file.
#[derive(Debug)]
pub(crate) struct DataDir {
    pub(crate) database_url: String,
    master_key_file: PathBuf,
}

impl DataDir {
    /// Makes the folder if it is not there; only its owner may enter.
    pub(crate) fn open(state: StateArgs) -> Result<Self, io::Error> {
        let StateArgs {
            data_dir,
            database,
            master_key_file,
        } = state;
        fs::create_dir_all(&data_dir)?;
        fs::set_permissions(&data_dir, Permissions::from_mode(0o700))?;
        let file = data_dir.join("control.db");
        let own = format!("sqlite://{}?mode=rwc", file.display());
        Ok(Self {
            database_url: database.unwrap_or(own),
            master_key_file: master_key_file.unwrap_or_else(|| data_dir.join("master.key")),
        })
    }

    /// The keys that seal secrets: one a line, in hexadecimal, the current one first.
    ///
    /// The file is made at the first start. Without it no secret of the database can be read again.
    pub(crate) fn sealer(&self, environment: &Environment) -> Result<Sealer, Box<dyn Error>> {
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.master_key_file);
        match created {
            Ok(mut file) => {
                writeln!(file, "{}", hex(&environment.random::<32>()))?;
                file.sync_all()?;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        let text = fs::read_to_string(&self.master_key_file)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys = lines.map(|line| Ok(MasterKey::new(&bytes(line)?)?));
        let keys: Result<Vec<MasterKey>, Box<dyn Error>> = keys.collect();
        Ok(Sealer::new(keys?)?)
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

fn bytes(hex: &str) -> Result<Vec<u8>, &'static str> {
    let wrong = "the key file has a line that is not hexadecimal";
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    pairs.iter().map(byte).collect::<Option<_>>().ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_it_is_read() {
        assert_eq!(bytes(&hex(&[0, 15, 255])), Ok(vec![0, 15, 255]));
        assert!(bytes("0g").is_err());
        assert!(bytes("123").is_err());
    }
}

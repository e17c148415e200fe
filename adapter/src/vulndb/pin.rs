//! Readers: the current generation, held so that nobody removes it while it is read.

use super::Layout;
use super::lock::{self, Attempt};
use super::store::{DatabaseError, Generation, Store};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

/// How often the pointer is looked at again when the generation that it named is being removed.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(4);

/// A generation that stays as long as this does. Keep it until the engine that reads it has exited.
#[derive(Debug)]
pub struct Pin {
    generation: Generation,
    lock: Option<File>,
}

impl Pin {
    /// Whether a lock holds it. Otherwise only the waiting time of retirement does.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }
}

impl Deref for Pin {
    type Target = Generation;

    fn deref(&self) -> &Generation {
        &self.generation
    }
}

impl Store {
    /// The current generation, held. Call it once per operation and stay with the answer.
    ///
    /// The lock is on the database file, which is opened for reading only: a read-only mount is enough. Where the
    /// file system has no locks the generation still has the waiting time that comes before its removal; that is
    /// logged once.
    ///
    /// # Errors
    /// Those of [`Store::current`].
    pub async fn pin(&self) -> Result<Pin, DatabaseError> {
        let mut generation = self.current()?;
        for _ in 0..TRIES {
            match hold(&generation.path) {
                Ok(Held::Yes(file)) => {
                    return Ok(Pin {
                        generation,
                        lock: Some(file),
                    });
                }
                Ok(Held::No) => break,
                // It is on its way out, so another one is current, or about to be.
                Ok(Held::Going) => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    // The engine will say what is wrong with the file, if anything is.
                    tracing::debug!(%error, "a generation could not be locked");
                    break;
                }
            }
            generation = self.current()?;
        }
        Ok(Pin {
            generation,
            lock: None,
        })
    }

    /// A generation that was looked up by name, held if it can be.
    ///
    /// # Errors
    /// [`DatabaseError::GenerationMissing`] when it is being removed.
    pub fn hold(&self, generation: Generation) -> Result<Pin, DatabaseError> {
        let lock = match hold(&generation.path) {
            Ok(Held::Yes(file)) => Some(file),
            Ok(Held::Going) => return Err(DatabaseError::GenerationMissing),
            Ok(Held::No) | Err(_) => None,
        };
        Ok(Pin { generation, lock })
    }
}

enum Held {
    Yes(File),
    No,
    Going,
}

fn hold(generation: &Path) -> io::Result<Held> {
    static UNSUPPORTED: Once = Once::new();
    Ok(match lock::share(generation)? {
        // The path may have gone between opening and locking.
        Attempt::Locked(file) if lock::is_at(&file, &Layout::database(generation)) => Held::Yes(file),
        Attempt::Absent if generation.is_dir() => Held::No,
        Attempt::Locked(_) | Attempt::Taken | Attempt::Absent => Held::Going,
        Attempt::Unsupported => {
            UNSUPPORTED.call_once(|| {
                tracing::warn!(
                    "the vulnerability database lies where files cannot be locked; what is read is held by the \
                     waiting time before its removal alone"
                );
            });
            Held::No
        }
    })
}

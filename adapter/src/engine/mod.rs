//! The engines: fixed command lines, bounded processes, and what their diagnostics mean.

pub mod cage;
pub mod error;
pub mod growth;
pub mod grype;
pub mod process;
pub mod provenance;
pub mod service;
pub mod syft;
pub mod warnings;

pub use error::EngineError;
pub use growth::MinimumRate;
pub use process::{EngineCommand, Finished, run};
pub use provenance::{DatabaseProvenance, Versions};
pub use service::{CatalogOutput, Download, Engines, EnginesConfig, MatchOutput};
pub use warnings::Warnings;

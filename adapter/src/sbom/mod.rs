//! Engine documents: bytes in, checked, normalised and projected values out. No IO in here.

pub mod budget;
pub mod cyclonedx;
pub mod finding;
pub mod json;
pub mod merge;
pub mod project;
pub mod report;
pub mod text;

//! Whole archives through the gate.

//! Tests of the loop against real repositories and processes.

mod workspace;

//! Checks of the tree.
fn main() {}

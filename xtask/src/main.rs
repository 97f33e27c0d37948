//! `cargo xtask tidy`: checks of the tree that no compiler makes. `cargo test` runs the same checks.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command")]
fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    if command != "tidy" {
        eprintln!("usage: cargo xtask tidy");
        return ExitCode::from(2);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match tidy::check(&root) {
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
        Ok(faults) if faults.is_empty() => {
            println!("tidy");
            ExitCode::SUCCESS
        }
        Ok(faults) => {
            for fault in &faults {
                eprintln!("{fault}");
            }
            ExitCode::FAILURE
        }
    }
}

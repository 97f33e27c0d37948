//! The helper as a program of its own, for embedders that cannot call `maybe_helper` in their `main`.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    robot_exec::maybe_helper().unwrap_or_else(|| {
        writeln!(
            std::io::stderr(),
            "robot-exec-helper is started by robot-exec, not by hand"
        )
        .ok();
        ExitCode::from(2)
    })
}

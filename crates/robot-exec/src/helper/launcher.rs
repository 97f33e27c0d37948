//! Stage 2: gives up the terminal, sets the limits and becomes the command.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit, setsid,
};

use crate::command::Limits;

/// As a shell says it: found, but it cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// As a shell says it: there is no such program.
const NOT_FOUND: u8 = 127;

/// The arguments a supervisor gives to its launcher.
pub(super) fn arguments(
    supervisor: Pid,
    limits: Limits,
    program: OsString,
    args: Vec<OsString>,
) -> Vec<OsString> {
    let limits = serde_json::to_string(&limits).unwrap_or_default();
    let mut all = vec![
        super::LAUNCHER.into(),
        supervisor.to_string().into(),
        limits.into(),
        program,
    ];
    all.extend(args);
    all
}

/// Becomes the command. Returns only if that fails, with one line said on standard error.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let parsed = (parse_pid(args.next()), parse_limits(args.next()), args.next());
    let (Some(supervisor), Some(limits), Some(program)) = parsed else {
        return fail(
            OsStr::new("launcher"),
            &io::Error::from(io::ErrorKind::InvalidInput),
        );
    };
    let error = match prepare(supervisor, limits) {
        Ok(()) => Command::new(&program).args(args).exec(),
        Err(error) => error,
    };
    fail(&program, &error)
}

fn prepare(supervisor: Pid, limits: Limits) -> io::Result<()> {
    // This outlives exec. The supervisor has one thread, so "parent thread died" is "supervisor died".
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(supervisor) {
        return Err(io::Error::other("the supervisor is gone"));
    }
    // A session of its own: no terminal, and `kill 0` reaches neither the supervisor nor its caller.
    setsid()?;
    // Under memory pressure the kernel should pick the command, not the program that runs it. Best effort.
    std::fs::write("/proc/self/oom_score_adj", "500").ok();
    lower(Resource::Core, Some(0))?;
    lower(Resource::Nproc, limits.processes)?;
    lower(Resource::Fsize, limits.file_size)?;
    lower(Resource::Nofile, limits.open_files)?;
    lower(Resource::As, limits.address_space)?;
    Ok(())
}

fn lower(resource: Resource, limit: Option<u64>) -> io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let ceiling = getrlimit(resource).maximum;
    let limit = Some(ceiling.map_or(limit, |ceiling| ceiling.min(limit)));
    Ok(setrlimit(
        resource,
        Rlimit {
            current: limit,
            maximum: limit,
        },
    )?)
}

fn parse_pid(text: Option<OsString>) -> Option<Pid> {
    Pid::from_raw(text?.to_str()?.parse().ok()?)
}

fn parse_limits(text: Option<OsString>) -> Option<Limits> {
    serde_json::from_str(text?.to_str()?).ok()
}

fn fail(program: &OsStr, error: &io::Error) -> ExitCode {
    writeln!(
        io::stderr(),
        "robot-exec: cannot run `{}`: {error}",
        program.display()
    )
    .ok();
    let missing = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    );
    ExitCode::from(if missing { NOT_FOUND } else { NOT_EXECUTABLE })
}

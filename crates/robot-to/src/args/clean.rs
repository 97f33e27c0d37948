//! Flags of `robot-to clean`.

use super::PlaceArgs;
use clap::Args;

/// Flags of `robot-to clean`.
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// This run, even when it could be resumed [default: of finished runs that are older than 30 days, the attempts and
    /// private copies; their logs, notes and branches stay]
    #[arg(value_name = "RUN", conflicts_with_all = ["older_than", "all"])]
    pub(crate) run_id: Option<String>,
    /// All finished runs whose last word is older than so many days, such as 14 or 14d
    #[arg(long, value_name = "DAYS", value_parser = days, conflicts_with = "all")]
    pub(crate) older_than: Option<u32>,
    /// All finished runs
    #[arg(long)]
    pub(crate) all: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
}

fn days(text: &str) -> Result<u32, String> {
    let days = text.strip_suffix('d').unwrap_or(text).parse().ok();
    days.filter(|days| *days <= 36_500)
        .ok_or_else(|| "give a number of days, such as 14 or 14d".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_with_and_without_their_unit() {
        assert_eq!((days("14"), days("0d")), (Ok(14), Ok(0)));
        for text in ["", "d", "-1", "1.5", "14h", "99999"] {
            assert!(days(text).is_err(), "{text}");
        }
    }
}

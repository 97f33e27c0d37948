//! From flags to the plan of a run: every flag for a new run, and for a run that goes on those that were given.

use super::RunArgs;
use clap::ArgMatches;
use clap::parser::ValueSource;
use robot_lab_to::eval::{Measure, MinDelta};
use robot_lab_to::settings::Plan;
use serde_json::{Value, json};

impl RunArgs {
    /// Writes the flags into a plan. `given` is asked for the name of each flag whether it counts.
    pub(crate) fn apply(&self, plan: &mut Plan, given: &dyn Fn(&str) -> bool) {
        macro_rules! set {
            ($($flag:ident => $place:expr, $value:expr;)*) => {
                $(if given(stringify!($flag)) { $place = $value; })*
            };
        }
        set! {
            verify => plan.verify_command, self.verify.clone();
            verify_timeout => plan.verify_timeout, self.verify_timeout;
            no_require_improvement => plan.policy.require_improvement, !self.no_require_improvement;
            no_hooks => plan.hooks, !self.no_hooks;
            sign => plan.sign, self.sign;
            protect_path => plan.protect_paths, self.protect_path.clone();
            commit_format => plan.policy.commit_format, self.commit_format;
            max_verify_repairs => plan.policy.max_verify_repairs, self.max_verify_repairs;
            max_file_mb => plan.max_file_bytes, self.max_file_mb.saturating_mul(1024 * 1024);
            max_iterations => plan.policy.max_iterations, self.max_iterations;
            max_tokens => plan.policy.max_tokens, self.max_tokens;
            max_time => plan.policy.max_time, self.max_time;
            max_consecutive_failures => plan.policy.max_consecutive_failures, self.max_consecutive_failures;
            stop_on_plateau => plan.policy.stop_on_plateau, self.stop_on_plateau;
            stop_when => plan.policy.stop_when, self.stop_when.clone();
            max_tool_rounds => plan.max_tool_calls, self.max_tool_rounds;
            iteration_timeout => plan.iteration_timeout, self.iteration_timeout;
            max_submit_nudges => plan.policy.max_submit_nudges, self.max_submit_nudges;
            max_retries => plan.max_retries, self.max_retries;
            env => plan.env, self.env.clone();
            keep_workspace => plan.keep_workspace, self.keep_workspace;
        }
        self.apply_measure(plan, given);
        let mut model = match &plan.model {
            Value::Object(model) => model.clone(),
            _ => serde_json::Map::new(),
        };
        for (name, value) in [
            ("provider", json!(self.provider)),
            ("model", json!(self.model)),
            ("base_url", json!(self.base_url)),
        ] {
            if given(name) {
                model.insert(name.into(), value);
            }
        }
        plan.model = Value::Object(model);
    }

    fn apply_measure(&self, plan: &mut Plan, given: &dyn Fn(&str) -> bool) {
        if given("measure") {
            let timeout = self.measure_timeout.unwrap_or(plan.verify_timeout);
            plan.measure = self.measure.clone().map(|command| Measure {
                command,
                timeout,
                metric: None,
                minimize: false,
                min_delta: MinDelta::Absolute(0.0),
                target: None,
            });
        }
        let Some(measure) = &mut plan.measure else { return };
        if let Some(timeout) = self.measure_timeout {
            measure.timeout = timeout;
        }
        if self.metric.is_some() {
            measure.metric.clone_from(&self.metric);
        }
        if let Some(min_delta) = self.min_delta {
            measure.min_delta = min_delta;
        }
        measure.minimize |= self.minimize;
        measure.target = self.target.or(measure.target);
    }
}

/// Whether a flag was written, and is no default.
pub(crate) fn written(matches: &ArgMatches, flag: &str) -> bool {
    matches.value_source(flag) == Some(ValueSource::CommandLine)
}

//! From flags to the plan of a run: every flag for a new run, and for a run that goes on those that were given.

use super::RunArgs;
use clap::ArgMatches;
use clap::parser::ValueSource;
use robot_lab_providers::Effort;
use robot_lab_to::eval::Measure;
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
            eval => plan.eval, self.eval.clone();
            minimize => plan.goal.minimize, self.minimize;
            min_delta => plan.goal.min_delta, self.min_delta.unwrap_or_default();
            target => plan.goal.target, self.target;
            no_require_improvement => plan.policy.require_improvement, !self.no_require_improvement;
            no_hooks => plan.hooks, !self.no_hooks;
            sign => plan.sign, self.sign;
            protect_path => plan.protect_paths, self.protect_path.clone();
            commit_format => plan.policy.commit_format, self.commit_format;
            max_verify_repairs => plan.policy.max_verify_repairs, self.max_verify_repairs;
            max_file_mb => plan.max_file_bytes, self.max_file_mb.saturating_mul(1024 * 1024);
            max_iterations => plan.policy.max_iterations, self.max_iterations;
            max_tokens => plan.policy.max_tokens, self.max_tokens;
            max_cost => plan.policy.max_cost, self.max_cost;
            max_iteration_tokens => plan.max_iteration_tokens, self.max_iteration_tokens;
            max_time => plan.policy.max_time, self.max_time;
            max_consecutive_failures => plan.policy.max_consecutive_failures, self.max_consecutive_failures;
            stop_on_plateau => plan.policy.stop_on_plateau, self.stop_on_plateau;
            stop_when => plan.policy.stop_when, self.stop_when.clone();
            no_tools => plan.tools, !self.no_tools;
            local_guards => plan.local_guards, self.local_guards;
            small_steps => plan.small_steps, self.small_steps;
            no_write_guard => plan.write_guard, !self.no_write_guard;
            lint => plan.lint, self.lint.clone();
            max_tool_rounds => plan.max_tool_calls, self.max_tool_rounds;
            iteration_timeout => plan.iteration_timeout, self.iteration_timeout;
            max_submit_nudges => plan.policy.max_submit_nudges, self.max_submit_nudges;
            max_retries => plan.max_retries, self.max_retries;
            max_wait => plan.max_wait, self.max_wait;
            env => plan.env, self.env.clone();
            keep_workspace => plan.keep_workspace, self.keep_workspace;
            setup => plan.setup, self.setup.clone();
            setup_timeout => plan.setup_timeout, self.setup_timeout;
            copy => plan.copy, self.copy.clone();
            include_dirty => plan.include_dirty, self.include_dirty;
            bench_cache => plan.bench_cache, self.bench_cache;
        }
        self.apply_measure(plan, given);
        let mut model = match &plan.model {
            Value::Object(model) => model.clone(),
            _ => serde_json::Map::new(),
        };
        for (flag, name, value) in [
            ("provider", "provider", json!(self.provider)),
            ("model", "model", json!(self.model)),
            ("base_url", "base_url", json!(self.base_url)),
            ("num_ctx", "num_ctx", json!(self.num_ctx)),
            ("api_key_env", "api_key_env", json!(self.api_key_env)),
            ("header", "headers", json!(self.header)),
            ("temperature", "temperature", json!(self.temperature)),
            (
                "max_output_tokens",
                "max_output_tokens",
                json!(self.max_output_tokens),
            ),
            ("reasoning", "reasoning", json!(self.reasoning.map(Effort::name))),
            ("fallback_model", "fallback_model", json!(self.fallback_model)),
            (
                "model_timeout",
                "model_timeout",
                json!(self.model_timeout.map(|time| time.as_secs())),
            ),
        ] {
            if given(flag) {
                model.insert(name.into(), value);
            }
        }
        plan.model = Value::Object(model);
    }

    fn apply_measure(&self, plan: &mut Plan, given: &dyn Fn(&str) -> bool) {
        if given("measure") {
            let timeout = self.measure_timeout.filter(|_| given("measure_timeout"));
            let timeout = timeout.unwrap_or(plan.verify_timeout);
            plan.measure = self.measure.clone().map(|command| Measure {
                command,
                timeout,
                metric: None,
            });
        }
        let Some(measure) = &mut plan.measure else { return };
        if given("measure_timeout")
            && let Some(timeout) = self.measure_timeout
        {
            measure.timeout = timeout;
        }
        if given("metric") && self.metric.is_some() {
            measure.metric.clone_from(&self.metric);
        }
    }

    /// The flag that was given and means nothing in this plan, and what it needs.
    pub(crate) fn lacks(
        &self,
        plan: &Plan,
        given: &dyn Fn(&str) -> bool,
    ) -> Option<(&'static str, &'static str)> {
        let (measure, scored, guards) = ("--measure", "--measure or --eval", "--local-guards");
        let tools = "a robot with tools";
        let set = [
            ("target", "--target", self.target.is_some(), scored),
            ("min_delta", "--min-delta", self.min_delta.is_some(), scored),
            ("minimize", "--minimize", self.minimize, scored),
            ("metric", "--metric", self.metric.is_some(), measure),
            (
                "measure_timeout",
                "--measure-timeout",
                self.measure_timeout.is_some(),
                measure,
            ),
            ("no_write_guard", "--no-write-guard", self.no_write_guard, guards),
            ("small_steps", "--small-steps", self.small_steps, tools),
        ];
        let met = |needed| match needed {
            _ if needed == guards => plan.local_guards || plan.small_steps,
            _ if needed == tools => plan.tools,
            _ if needed == scored => plan.is_scored(),
            _ => plan.measure.is_some(),
        };
        let flag = set
            .into_iter()
            .find(|(id, _, set, needed)| *set && given(id) && !met(*needed));
        flag.map(|(_, flag, _, needed)| (flag, needed))
    }
}

/// Whether a flag, or its opposite, was written on the command line.
pub(crate) fn written(matches: &ArgMatches, flag: &str) -> bool {
    let opposite = flag
        .strip_prefix("no_")
        .map_or_else(|| format!("no_{flag}"), str::to_owned);
    is_written(matches, flag) || is_written(matches, &opposite)
}

/// Whether this very flag was written on the command line; of a switch and its opposite, the last one was.
pub(crate) fn is_written(matches: &ArgMatches, flag: &str) -> bool {
    matches.ids().any(|known| known.as_str() == flag)
        && matches.value_source(flag) == Some(ValueSource::CommandLine)
}

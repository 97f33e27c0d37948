//! Processes that robots leave behind.

use std::sync::{Arc, Mutex};

use testkit::{ModelServer, Reply, survivors};

use crate::lab::Lab;
use crate::replies::{bash, submit, write};

/// Leaves a child that holds the output open, and a daemon in a session of its own that ignores TERM.
const LITTER: &str = "sleep 1000 & \
    (setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1001; done' >/dev/null 2>&1 </dev/null &) ; \
    sleep 0.3; echo litter is out";

#[test]
fn case_104_processes_in_the_background_end_with_the_command_that_started_them() {
    let alive: Arc<Mutex<Vec<String>>> = Arc::default();
    let marker: Arc<Mutex<String>> = Arc::default();
    let server = ModelServer::answering({
        let (alive, marker) = (Arc::clone(&alive), Arc::clone(&marker));
        move |request| {
            if request.messages().len() == 2 {
                return Reply::calls([bash(LITTER)]);
            }
            let marker = marker.lock().unwrap().clone();
            let sleeping = survivors(&marker)
                .into_iter()
                .filter(|(_, line)| line.contains("sleep 100"));
            alive.lock().unwrap().extend(sleeping.map(|(_, line)| line));
            Reply::calls([write("parts/one", "ok\n"), submit("Add part one")])
        }
    });
    let lab = Lab::serving(server);
    lab.env.marker().clone_into(&mut marker.lock().unwrap());
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(
        *alive.lock().unwrap(),
        Vec::<String>::new(),
        "these lived on after the call"
    );
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert!(
        told.contains("litter is out") && told.contains("still ran and had to be ended"),
        "{told}"
    );
}

#[test]
fn processes_in_the_background_end_with_the_verify_command_too() {
    let mut lab = Lab::new([crate::replies::good("one")]);
    lab.verify = Some(format!("sh test.sh || exit 1; {LITTER}"));
    // The clean clone of the checks would be littered as well, so the command is for the run alone.
    let arguments = lab.arguments(&["--max-iterations", "1"]);
    lab.verify = Some("sh test.sh".into());
    let ran = lab.launch(lab.env.command(arguments)).end(crate::lab::PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
}

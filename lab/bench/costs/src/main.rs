//! What callgrind runs: each request of each case by itself, between calls that it does not count.
//! `scripts/handler-costs` starts it, and reads the counts in the order of the names printed here.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use costs::environment::{Environment, Failure, Own, Servers};
use costs::{cases, measured, runtime};

/// Requests of each case before one counts: connections open, caches fill.
const WARM: usize = 3;
/// Requests of each case that count; the median is reported.
const COUNTED: usize = 9;

fn main() -> Result<(), Failure> {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(),
        _ => count(),
    }
}

/// Runs servers until standard input ends. They are in a process of their own, which callgrind does
/// not slow down.
fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let own = runtime.block_on(Own::start())?;
    println!("{}", serde_json::to_string(&own.servers())?);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn count() -> Result<(), Failure> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let servers: Servers = serde_json::from_str(&line)?;
    let runtime = runtime()?;
    let environment = runtime.block_on(Environment::on(&servers))?;
    for case in runtime.block_on(cases::prepare(&environment, WARM + COUNTED))? {
        let (warm, counted) = case.works.split_at(WARM);
        runtime.block_on(async {
            for work in warm {
                work.wait(&environment).await?;
                work.perform(&environment).await;
            }
            Ok::<_, Failure>(())
        })?;
        for work in counted {
            runtime.block_on(work.wait(&environment))?;
            measured(&runtime, &environment, work);
            println!("{}", case.name);
        }
    }
    // Its standard input closes, and it ends.
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

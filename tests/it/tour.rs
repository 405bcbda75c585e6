//! Every command of the tour's steps, run as it stands there.

use std::process::Command;

use local::up::{Engine, Options};

use crate::backends;
use crate::program::onsale;

/// The code blocks of a document whose fence is `sh step`.
fn steps(document: &str) -> Vec<String> {
    let blocks = document.split("```sh step\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_of_the_tour_buy_a_ticket() {
    let root = text::root();
    let steps = steps(&text::read("docs/tour.md"));
    assert!(steps.len() >= 5, "the tour lost its steps");
    let data = tempfile::tempdir().unwrap();
    let engine = Engine::start(backends::engine(Options::persistent(data.path()))).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("sales"), folder.path().join("sales")).unwrap();
    let script = format!(
        "set -euxo pipefail\nonsale() {{ '{}' \"$@\"; }}\n{}",
        onsale().display(),
        steps.concat()
    );
    let mut run = Command::new("bash");
    run.args(["-c", &script])
        .current_dir(folder.path())
        .env("URL", engine.url())
        .env("ONSALE_DATA_DIR", data.path());
    let done = tokio::task::spawn_blocking(move || run.output()).await.unwrap().unwrap();
    let said =
        String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}");
    engine.stop().await.unwrap();
}

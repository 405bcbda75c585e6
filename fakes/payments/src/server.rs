//! A server on a port of 127.0.0.1.

use std::net::SocketAddr;
use std::path::Path;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{Error, listener};

/// A running server; stopped when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    /// Serves what `router` answers, on the port that `file` had before if it is free.
    pub(crate) fn start(
        file: Option<&Path>,
        router: impl FnOnce(SocketAddr) -> Router,
    ) -> Result<Self, Error> {
        let listening = || Error::io("listening for a payment provider");
        let listener = listener(file).map_err(listening())?;
        listener.set_nonblocking(true).map_err(listening())?;
        let address = listener.local_addr().map_err(listening())?;
        let listener = TcpListener::from_std(listener).map_err(listening())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let router = router(address);
        let serve = async move {
            // Resolves when the handle sends or, as it always does, drops its end.
            let end = async {
                let _dropped = stopped.await;
            };
            axum::serve(listener, router).with_graceful_shutdown(end).await
        };
        Ok(Self { address, stop: Some(stop), task: tokio::spawn(serve) })
    }

    /// Its address: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// True if it serves no more though nobody has stopped it.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Answers what is under way, then stops.
    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        if let Ok(Err(error)) = (&mut self.task).await {
            tracing::warn!(%error, "a payment provider had failed");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

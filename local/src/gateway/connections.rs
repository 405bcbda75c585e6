//! A listener with a limit of open connections, and with limits of the time that a connection may say
//! nothing.
//!
//! Whoever connects and sends nothing, or sends the headers of a request byte by byte, has a place that
//! others need: both have a time limit, and so has a connection between two requests. When every place
//! is taken and somebody else connects, the connection that has waited longest for its client gives up
//! its place, whatever bytes have trickled in meanwhile. Where a connection comes from plays no part:
//! on one machine all come from the same address. A connection whose request is being answered is never
//! dropped; if there is none but those, further ones wait in the system's backlog until one closes.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// How long an answer may take to be written before its client counts as one that is waited for.
const WRITE: Duration = Duration::from_secs(1);

/// How long a connection may wait for its client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// From the connection to the first byte.
    pub(super) first_byte: Duration,
    /// From the first byte of a request to the end of its headers.
    pub(super) headers: Duration,
    /// From an answer to the next request, and for an answer to be read.
    pub(super) between: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(10),
            headers: Duration::from_secs(10),
            between: Duration::from_secs(75),
        }
    }
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The first byte of its first request.
    Silent,
    /// The rest of a request's headers.
    Headers,
    /// The rest of a request's body, for which the request has a time limit of its own.
    Body,
    /// Nothing: it is being answered.
    Answer,
    /// Nothing, unless its client does not read: the answer is being written.
    Write,
    Between,
}

/// What the connection, its requests and the listener know of a connection.
#[derive(Debug)]
struct State {
    phase: Phase,
    /// When it entered its phase, which has a time limit.
    entered: Instant,
    /// Since when it waits for its client. Bytes that trickle in do not count.
    since: Instant,
    is_dropped: bool,
    /// Wakes the task that serves it.
    waker: Option<Waker>,
}

impl State {
    fn enter(&mut self, phase: Phase) {
        let now = Instant::now();
        self.phase = phase;
        self.entered = now;
        self.since = now;
    }

    /// Since when it waits for its client; `None` if it is not to be dropped.
    fn waits_since(&self) -> Option<Instant> {
        let waits = match self.phase {
            Phase::Silent | Phase::Headers | Phase::Body | Phase::Between => true,
            Phase::Answer => false,
            Phase::Write => self.entered.elapsed() > WRITE,
        };
        (waits && !self.is_dropped).then_some(self.since)
    }
}

/// A connection as its requests see it.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    state: Arc<Mutex<State>>,
    places: Arc<Places>,
}

impl Progress {
    fn new(places: Arc<Places>) -> Self {
        let now = Instant::now();
        let phase = Phase::Silent;
        let state = State { phase, entered: now, since: now, is_dropped: false, waker: None };
        Self { state: Arc::new(Mutex::new(state)), places }
    }

    /// That of a connection outside of any listener.
    #[cfg(test)]
    pub(super) fn unlimited() -> Self {
        let places = Places {
            free: Arc::new(Semaphore::new(1)),
            open: Mutex::default(),
            changed: Notify::new(),
        };
        Self::new(Arc::new(places))
    }

    /// The headers of a request have come; its body may be on its way.
    pub(super) fn reads_body(&self) {
        self.enter(Phase::Body);
    }

    /// The whole request is there: from now on the client waits for us.
    pub(super) fn answers(&self) {
        let mut state = lock(&self.state);
        state.enter(Phase::Answer);
        // It was quicker: another one loses its place.
        state.is_dropped = false;
    }

    /// The answer is there, and is written next.
    pub(super) fn answered(&self) {
        self.enter(Phase::Write);
    }

    /// Everything that was to be written is.
    fn written(&self) {
        {
            let mut state = lock(&self.state);
            if state.phase != Phase::Write {
                return;
            }
            state.enter(Phase::Between);
        }
        self.places.changed.notify_one();
    }

    fn enter(&self, phase: Phase) {
        lock(&self.state).enter(phase);
    }
}

/// The connections that are open, and the places that they may have.
#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    open: Mutex<HashMap<u64, Arc<Mutex<State>>>>,
    /// Notified when a connection may have become one that can be dropped.
    changed: Notify,
}

impl Places {
    /// A place; if all are taken, that of the connection which has waited longest for its client.
    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            let changed = self.changed.notified();
            if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
                return Some(place);
            }
            // The task of one that is dropped ends as soon as it runs.
            let is_dropped = self.drop_idlest();
            tokio::select! {
                // Nobody closes the semaphore; were it closed, there would be no limit.
                place = Arc::clone(&self.free).acquire_owned() => return place.ok(),
                () = changed, if !is_dropped => {}
                () = tokio::time::sleep(WRITE) => {}
            }
        }
    }

    /// Drops the connection that has waited longest for its client; false if none waits.
    fn drop_idlest(&self) -> bool {
        let open = lock(&self.open);
        let idlest = open.values().filter_map(|state| Some((lock(state).waits_since()?, state)));
        let Some((_, idlest)) = idlest.min_by_key(|(since, _)| *since) else { return false };
        let mut idlest = lock(idlest);
        idlest.is_dropped = true;
        if let Some(waker) = idlest.waker.take() {
            waker.wake();
        }
        true
    }
}

/// A listener with these limits.
#[derive(Debug)]
pub(super) struct Limited {
    listener: TcpListener,
    deadlines: Deadlines,
    places: Arc<Places>,
    accepted: u64,
}

impl Limited {
    /// Lets at most this number of connections of `listener` be open at once.
    pub(super) fn new(listener: TcpListener, connections: usize, deadlines: Deadlines) -> Self {
        let places = Places {
            free: Arc::new(Semaphore::new(connections)),
            open: Mutex::default(),
            changed: Notify::new(),
        };
        Self { listener, deadlines, places: Arc::new(places), accepted: 0 }
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // First somebody who wants a place: nobody loses one for nothing.
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        let place = self.places.take().await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "small replies may wait for the network");
        }
        self.accepted += 1;
        let progress = Progress::new(Arc::clone(&self.places));
        lock(&self.places.open).insert(self.accepted, Arc::clone(&progress.state));
        let connection = Connection {
            stream,
            progress,
            deadlines: self.deadlines,
            deadline: Box::pin(tokio::time::sleep(self.deadlines.first_byte)),
            id: self.accepted,
            _place: place,
        };
        (connection, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection, and its place among those that may be open.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    progress: Progress,
    deadlines: Deadlines,
    deadline: Pin<Box<Sleep>>,
    id: u64,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// What its requests tell of their progress.
    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Fails once the connection was dropped, or its time is over; else has the task woken then.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let limit = {
            let mut state = lock(&self.progress.state);
            if state.is_dropped {
                let why = "others need the place of a connection that waits";
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why));
            }
            if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                state.waker = Some(context.waker().clone());
            }
            let most = match state.phase {
                Phase::Silent => Some(self.deadlines.first_byte),
                Phase::Headers => Some(self.deadlines.headers),
                Phase::Write | Phase::Between => Some(self.deadlines.between),
                Phase::Body | Phase::Answer => None,
            };
            most.map(|most| state.entered + most)
        };
        let Some(limit) = limit else { return Ok(()) };
        if self.deadline.deadline() != limit {
            self.deadline.as_mut().reset(limit);
        }
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }

    /// Bytes have come: if they are the first of a request, its time for headers begins.
    fn heard(&mut self) {
        let mut state = lock(&self.progress.state);
        match state.phase {
            // It has kept us waiting since it connected: one byte does not make it busy.
            Phase::Silent => {}
            Phase::Between => state.since = Instant::now(),
            Phase::Headers | Phase::Body | Phase::Answer | Phase::Write => return,
        }
        state.phase = Phase::Headers;
        state.entered = Instant::now();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.progress.places.open).remove(&self.id);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if matches!(read, Poll::Ready(Ok(()))) && buffer.filled().len() > before {
            self.heard();
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        // The server asks for this once the socket has taken all of an answer.
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.progress.written();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under the lock is a bug of one connection; the others go on.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::extract::ConnectInfo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::super::Peer;
    use super::*;

    /// Nothing takes this long.
    const HANGS: Duration = Duration::from_secs(120);
    /// Time limits that no test comes to.
    const NEVER: Deadlines = Deadlines { first_byte: HOUR, headers: HOUR, between: HOUR };
    const HOUR: Duration = Duration::from_secs(3600);
    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// A server whose answers wait for `may_answer` if the path is `/wait`.
    struct Server {
        address: SocketAddr,
        may_answer: Arc<Semaphore>,
        waiting: Arc<AtomicUsize>,
        task: tokio::task::JoinHandle<()>,
    }

    impl Drop for Server {
        fn drop(&mut self) {
            self.task.abort();
        }
    }

    async fn serve(connections: usize, deadlines: Deadlines) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let may_answer = Arc::new(Semaphore::new(0));
        let waiting = Arc::new(AtomicUsize::new(0));
        let shared = (Arc::clone(&may_answer), Arc::clone(&waiting));
        let answer = move |ConnectInfo(Peer { progress, .. }): ConnectInfo<Peer>,
                           request: axum::extract::Request| async move {
            progress.answers();
            if request.uri().path() == "/wait" {
                shared.1.fetch_add(1, Ordering::Relaxed);
                shared.0.acquire().await.unwrap().forget();
            }
            progress.answered();
            "answered"
        };
        let service = Router::new().fallback(answer).into_make_service_with_connect_info::<Peer>();
        let listener = Limited::new(listener, connections, deadlines);
        let task = tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        Server { address, may_answer, waiting, task }
    }

    /// Waits until the other side closes a connection.
    async fn closed(stream: &mut TcpStream) {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(HANGS, stream.read_to_end(&mut rest)).await;
        // A reset is as good as an end.
        let _ended = read.unwrap();
    }

    /// Sends a request and reads an answer of less than one packet.
    async fn ask(stream: &mut TcpStream, request: &str) -> String {
        stream.write_all(request.as_bytes()).await.unwrap();
        answer(stream).await
    }

    async fn answer(stream: &mut TcpStream) -> String {
        let mut bytes = vec![0; 1024];
        let read = tokio::time::timeout(HANGS, stream.read(&mut bytes)).await.unwrap().unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    async fn connect(server: &Server) -> TcpStream {
        TcpStream::connect(server.address).await.unwrap()
    }

    async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < HANGS, "{what}");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn who_says_nothing_or_not_enough_is_hung_up_on() {
        // What a test must do in time has an hour, so that a slow machine is not hung up on too early.
        let soon = Duration::from_millis(200);
        let server = serve(10, Deadlines { first_byte: soon, ..NEVER }).await;
        closed(&mut connect(&server).await).await;

        let server = serve(10, Deadlines { headers: soon, ..NEVER }).await;
        let mut slow = connect(&server).await;
        slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX: ").await.unwrap();
        closed(&mut slow).await;

        let server = serve(10, Deadlines { between: soon, ..NEVER }).await;
        let mut idle = connect(&server).await;
        assert!(ask(&mut idle, REQUEST).await.ends_with("answered"));
        closed(&mut idle).await;

        // An answer that takes longer is waited for.
        let server = serve(10, Deadlines { headers: soon, between: soon, ..NEVER }).await;
        let mut asking = connect(&server).await;
        asking.write_all(REQUEST.replace("/ ", "/wait ").as_bytes()).await.unwrap();
        until("it is being answered", || server.waiting.load(Ordering::Relaxed) == 1).await;
        tokio::time::sleep(3 * soon).await;
        server.may_answer.add_permits(1);
        assert!(answer(&mut asking).await.ends_with("answered"));
    }

    #[tokio::test]
    async fn when_it_is_full_the_idlest_gives_its_place_up() {
        let server = serve(3, NEVER).await;
        let mut idlest = connect(&server).await;
        assert!(ask(&mut idlest, REQUEST).await.ends_with("answered"));
        let mut trickling = connect(&server).await;
        trickling.write_all(b"GET").await.unwrap();
        let mut busy = connect(&server).await;
        busy.write_all(REQUEST.replace("/ ", "/wait ").as_bytes()).await.unwrap();
        until("one is being answered", || server.waiting.load(Ordering::Relaxed) == 1).await;

        // A byte now and then does not keep a place.
        let mut another = connect(&server).await;
        assert!(ask(&mut another, REQUEST).await.ends_with("answered"));
        closed(&mut idlest).await;
        let _gone = trickling.write_all(b" /").await;
        let mut one_more = connect(&server).await;
        assert!(ask(&mut one_more, REQUEST).await.ends_with("answered"));
        closed(&mut trickling).await;

        // Who is being answered keeps it.
        for _ in 0..5 {
            assert!(ask(&mut connect(&server).await, REQUEST).await.ends_with("answered"));
        }
        server.may_answer.add_permits(1);
        assert!(answer(&mut busy).await.ends_with("answered"));
    }

    #[tokio::test]
    async fn when_all_are_being_answered_the_next_waits_for_one_of_them() {
        let server = serve(2, NEVER).await;
        let wait = REQUEST.replace("/ ", "/wait ");
        let mut asking = Vec::new();
        for _ in 0..2 {
            let mut one = connect(&server).await;
            one.write_all(wait.as_bytes()).await.unwrap();
            asking.push(one);
        }
        until("both are being answered", || server.waiting.load(Ordering::Relaxed) == 2).await;
        let mut next = connect(&server).await;
        next.write_all(REQUEST.as_bytes()).await.unwrap();
        server.may_answer.add_permits(2);
        assert!(answer(&mut next).await.ends_with("answered"));
        for one in &mut asking {
            assert!(answer(one).await.ends_with("answered"));
        }
    }

    /// Sends the headers of a request a byte at a time, and connects again whenever it is hung up on.
    async fn trickle(address: SocketAddr) {
        loop {
            let Ok(mut stream) = TcpStream::connect(address).await else { return };
            for byte in REQUEST.as_bytes() {
                if stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }

    /// 500 that trickle and, as far as the limit of open files allows, 10,000 that say nothing, none of which
    /// is ever late: whoever is served has the place that another one had to give up.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_buyer_is_served_among_slow_and_idle_connections() {
        let server = serve(super::super::MAX_CONNECTIONS, NEVER).await;
        let files = crate::open_files::limit().unwrap_or(crate::open_files::NEEDED);
        let idle = usize::try_from(files.saturating_sub(1500)).unwrap().min(10_000);
        let mut slow = tokio::task::JoinSet::new();
        for _ in 0..500_usize.min(idle) {
            slow.spawn(trickle(server.address));
        }
        let mut silent = Vec::new();
        for _ in 0..idle {
            silent.push(connect(&server).await);
        }
        let mut kept = connect(&server).await;
        let (mut fresh, mut again) = (Vec::new(), Vec::new());
        for _ in 0..500 {
            let began = Instant::now();
            assert!(ask(&mut connect(&server).await, REQUEST).await.ends_with("answered"));
            fresh.push(began.elapsed());
            let began = Instant::now();
            assert!(ask(&mut kept, REQUEST).await.ends_with("answered"));
            again.push(began.elapsed());
        }
        for (what, mut took) in [("a new connection", fresh), ("a kept one", again)] {
            took.sort();
            let (half, most) = (took[took.len() / 2], took[took.len() - 1]);
            println!("{idle} idle, {} slow: {what} p50 {half:?}, most {most:?}", slow.len());
        }
        slow.shutdown().await;
    }
}

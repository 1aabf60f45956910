//! The Unix socket through which `toolgate call` reaches the running gateway. See `crate::local`.

use std::{
    collections::VecDeque,
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::AsyncReadExt as _,
    net::{UnixListener, UnixStream},
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use toolgate::Toolgate;

use super::log::Log;
use crate::{
    commands::call,
    local::{self, LocalAnswer, LocalCall},
};

/// Listens until stopped, then removes the socket.
#[derive(Debug)]
pub struct LocalSocket {
    task: Option<(tokio::task::JoinHandle<()>, OwnSocket)>,
}

impl LocalSocket {
    /// Opens the socket. If that fails, `toolgate call` makes its calls itself. Another running gateway keeps its socket.
    pub async fn open(toolgate: &Arc<Toolgate>, log: Log, stop: CancellationToken) -> Self {
        let path = local::socket(&toolgate.config());
        let opened = match local::key(&toolgate.config()) {
            Ok(key) => bind(&path).await.map(|bound| bound.map(|(listener, socket)| (listener, socket, key))),
            Err(failure) => Err(io::Error::other(failure.to_string())),
        };
        let task = match opened {
            Ok(Some((listener, socket, key))) => {
                let door = Arc::new(LocalServer { toolgate: Arc::clone(toolgate), key });
                Some((tokio::spawn(accept(listener, door, stop)), socket))
            }
            Ok(None) => None,
            Err(error) => {
                log.warn(&format!("`toolgate call` cannot reach this gateway: {}: {error}", path.display()));
                None
            }
        };
        Self { task }
    }

    /// Sends the last answers. Call this after all calls have ended.
    pub async fn close(self) {
        if let Some((task, socket)) = self.task {
            let _ = timeout(LAST_ANSWERS, task).await;
            socket.remove();
        }
    }
}

/// The file of our socket.
#[derive(Debug)]
struct OwnSocket {
    path: PathBuf,
    identity: SocketIdentity,
}

/// Device, inode, and time of the last change: the inode number of a removed file is used again.
type SocketIdentity = (u64, u64, i64, i64);

impl OwnSocket {
    fn bound_at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: Self::identity(path)? })
    }

    /// Another gateway may have replaced it after this one stopped listening.
    fn remove(self) {
        if Self::identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }

    fn identity(path: &Path) -> io::Result<SocketIdentity> {
        let about = fs::symlink_metadata(path)?;
        Ok((about.dev(), about.ino(), about.ctime(), about.ctime_nsec()))
    }
}

/// `None`: another gateway answers there.
async fn bind(path: &Path) -> io::Result<Option<(UnixListener, OwnSocket)>> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if UnixStream::connect(path).await.is_ok() {
                return Ok(None);
            }
            // The socket is left over from a killed gateway.
            fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(Some((listener, OwnSocket::bound_at(path)?)))
}

struct LocalServer {
    toolgate: Arc<Toolgate>,
    key: String,
}

async fn accept(listener: UnixListener, door: Arc<LocalServer>, stop: CancellationToken) {
    let mut requests = PendingConnections::default();
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = calls.join_next(), if !calls.is_empty() => {}
            Some(read) = requests.reading.join_next(), if !requests.reading.is_empty() => {
                if let Ok(Some((stream, request))) = read {
                    let door = Arc::clone(&door);
                    calls.spawn(async move { door.serve(stream, request).await });
                }
            }
            accepted = listener.accept(), if calls.len() < MOST_CALLS => match accepted {
                Ok((stream, _)) => requests.read(stream, &door),
                // Out of descriptors: wait for some to be closed.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    while calls.join_next().await.is_some() {}
}

/// Connections whose request has not come yet, the oldest first.
#[derive(Default)]
struct PendingConnections {
    reading: JoinSet<Option<(UnixStream, LocalCall)>>,
    order: VecDeque<AbortHandle>,
}

impl PendingConnections {
    /// Closes the oldest idle connection if there are too many: a command sends its request at once.
    fn read(&mut self, stream: UnixStream, door: &Arc<LocalServer>) {
        self.order.retain(|one| !one.is_finished());
        if self.order.len() >= MOST_IDLE
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        let door = Arc::clone(door);
        self.order.push_back(self.reading.spawn(async move { door.request(stream).await }));
    }
}

impl LocalServer {
    /// `None`: the peer may not make calls.
    async fn request(&self, mut stream: UnixStream) -> Option<(UnixStream, LocalCall)> {
        if !local::is_own_user(&stream) {
            return None;
        }
        let most = self.toolgate.config().server.max_request;
        let request = local::receive_call(&mut stream, most).await?;
        is_equal(request.key.as_bytes(), self.key.as_bytes()).then_some((stream, request))
    }

    async fn serve(&self, mut stream: UnixStream, request: LocalCall) {
        let answer = {
            let (hung_up, mut byte) = (&mut stream, [0]);
            tokio::select! {
                answer = self.answer(request) => answer,
                // The command was interrupted. Dropping the call cancels it.
                _ = hung_up.read(&mut byte) => return,
            }
        };
        let _ = local::send(&mut stream, &answer).await;
    }

    async fn answer(&self, request: LocalCall) -> LocalAnswer {
        let config = self.toolgate.config();
        if local::config_file(&config).as_ref() != Some(&request.config) {
            return LocalAnswer::NotMine;
        }
        let answer = request.answer.as_ref().map(local::answer_from);
        if matches!(answer, Some(None)) {
            return LocalAnswer::Unusable(
                "unknown answer to an approval question; is the command another version?".to_owned(),
            );
        }
        let answer = answer.flatten();
        match call::make(&self.toolgate, &request.tool, &request.arguments, answer).await {
            Ok((outcome, notes)) => LocalAnswer::Ended(local::to_wire(&outcome), notes),
            Err(failure) => LocalAnswer::Unusable(failure.to_string()),
        }
    }
}

/// Compares in constant time.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

const MOST_CALLS: usize = 256;
const MOST_IDLE: usize = 64;
const PAUSE: Duration = Duration::from_millis(100);
/// How long `close` waits for answers to be sent.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

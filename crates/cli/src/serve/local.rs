//! The Unix socket through which `toolgate call` reaches the running gateway. See `crate::local`.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    io::AsyncReadExt as _,
    net::{UnixListener, UnixStream},
    task::JoinSet,
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
    task: Option<tokio::task::JoinHandle<()>>,
    path: PathBuf,
}

impl LocalSocket {
    /// Opens the socket. If that fails, `toolgate call` makes its calls itself. Another running gateway keeps its socket.
    pub async fn open(toolgate: &Arc<Toolgate>, log: Log, stop: CancellationToken) -> Self {
        let path = local::socket(&toolgate.config());
        let opened = match local::key(&toolgate.config()) {
            Ok(key) => bind(&path).await.map(|listener| listener.map(|listener| (listener, key))),
            Err(failure) => Err(io::Error::other(failure.to_string())),
        };
        let task = match opened {
            Ok(Some((listener, key))) => {
                let server = Arc::new(LocalServer { toolgate: Arc::clone(toolgate), key });
                Some(tokio::spawn(accept(listener, server, stop)))
            }
            Ok(None) => None,
            Err(error) => {
                log.warn(&format!("`toolgate call` cannot reach this gateway: {}: {error}", path.display()));
                None
            }
        };
        Self { task, path }
    }

    /// Sends the last answers. Call this after all calls have ended.
    pub async fn close(self) {
        if let Some(task) = self.task {
            let _ = timeout(LAST_ANSWERS, task).await;
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// `None` if another gateway answers there.
async fn bind(path: &PathBuf) -> io::Result<Option<UnixListener>> {
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
    Ok(Some(listener))
}

struct LocalServer {
    toolgate: Arc<Toolgate>,
    key: String,
}

async fn accept(listener: UnixListener, server: Arc<LocalServer>, stop: CancellationToken) {
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = calls.join_next(), if !calls.is_empty() => {}
            accepted = listener.accept(), if calls.len() < MOST_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let server = Arc::clone(&server);
                    calls.spawn(async move { server.serve(stream).await });
                }
                // Out of descriptors: wait for some to be closed.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    while calls.join_next().await.is_some() {}
}

impl LocalServer {
    async fn serve(&self, mut stream: UnixStream) {
        if !local::is_own_user(&stream) {
            return;
        }
        let most = self.toolgate.config().server.max_request;
        let Some(request) = local::receive_call(&mut stream, most).await else { return };
        if !is_equal(request.key.as_bytes(), self.key.as_bytes()) {
            return;
        }
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

const MOST_CONNECTIONS: usize = 256;
const PAUSE: Duration = Duration::from_millis(100);
/// How long `close` waits for answers to be sent.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

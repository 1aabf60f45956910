//! The socket by which `toolgate call` reaches the running gateway. See `crate::local`.

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

/// Listens until it is stopped, then removes the socket.
#[derive(Debug)]
pub struct LocalDoor {
    task: Option<tokio::task::JoinHandle<()>>,
    path: PathBuf,
}

impl LocalDoor {
    /// Without a socket the command makes its calls itself. A gateway that runs beside this one keeps its socket.
    pub async fn open(toolgate: &Arc<Toolgate>, log: Log, stop: CancellationToken) -> Self {
        let path = local::socket(&toolgate.config());
        let opened = match local::key(&toolgate.config()) {
            Ok(key) => bind(&path).await.map(|listener| listener.map(|listener| (listener, key))),
            Err(failure) => Err(io::Error::other(failure.to_string())),
        };
        let task = match opened {
            Ok(Some((listener, key))) => {
                let door = Arc::new(Door { toolgate: Arc::clone(toolgate), key });
                Some(tokio::spawn(accept(listener, door, stop)))
            }
            Ok(None) => None,
            Err(error) => {
                log.warn(&format!("`toolgate call` cannot use this gateway: {}: {error}", path.display()));
                None
            }
        };
        Self { task, path }
    }

    /// To be called when the calls have ended: the last answers are sent.
    pub async fn close(self) {
        if let Some(task) = self.task {
            let _ = timeout(LAST_ANSWERS, task).await;
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// `None`: another gateway answers there.
async fn bind(path: &PathBuf) -> io::Result<Option<UnixListener>> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if UnixStream::connect(path).await.is_ok() {
                return Ok(None);
            }
            // A gateway that was killed left it.
            fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(Some(listener))
}

struct Door {
    toolgate: Arc<Toolgate>,
    key: String,
}

async fn accept(listener: UnixListener, door: Arc<Door>, stop: CancellationToken) {
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = calls.join_next(), if !calls.is_empty() => {}
            accepted = listener.accept(), if calls.len() < MOST_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let door = Arc::clone(&door);
                    calls.spawn(async move { door.serve(stream).await });
                }
                // Out of descriptors: wait for some to be closed.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    while calls.join_next().await.is_some() {}
}

impl Door {
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
            return LocalAnswer::Unusable("the answer is not one that this gateway knows".to_owned());
        }
        let answer = answer.flatten();
        match call::make(&self.toolgate, &request.tool, &request.arguments, answer).await {
            Ok((outcome, notes)) => LocalAnswer::Ended(local::to_wire(&outcome), notes),
            Err(failure) => LocalAnswer::Unusable(failure.to_string()),
        }
    }
}

/// In constant time.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

const MOST_CONNECTIONS: usize = 256;
const PAUSE: Duration = Duration::from_millis(100);
/// For answers to commands whose calls have ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

//! Observes what a call reached: marker files, a forbidden port, and all output of the command.

use std::{
    collections::BTreeMap,
    fs,
    future::Future,
    io::{Read as _, Write as _},
    mem,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    pin::Pin,
    process::Command,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use serde_json::json;
use toolgate_gate::Runnable;
use toolgate_handlers::{CliTool, CommandOrder, CommandOutcome, Launch};
use toolgate_sandbox::Ending;

use crate::{
    catalog,
    world::{World, call},
};

/// Visible to the command, but not named by its author: text and name of a file, name of a branch.
const NEAR: &str = "n3ar-mark-51c9";
/// Not granted to the tool.
const OUTSIDE: &str = "0utside-mark-7f3a";
/// The shell's result of `RAN-$((6*7))`.
const RAN: &str = "RAN-42";

/// A tree with markers, and two ports: one allowed, one forbidden.
pub struct Canary {
    pub world: World,
    watch: Arc<Watch>,
    allowed: SocketAddr,
    forbidden: Port,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

/// The outcome of one call.
#[derive(Debug)]
pub struct Seen {
    pub has_run: bool,
    /// Everything that must not happen.
    pub wrong: Vec<String>,
    pub said: String,
}

impl Canary {
    /// `launcher` runs the commands and keeps their output.
    pub fn new(launcher: Arc<dyn Launch>) -> Self {
        let world = World::new();
        plant(&world);
        let watch = Arc::new(Watch { launcher, ended: Arc::default() });
        let before = tree(&world.root());
        Self { watch, allowed: web_server(), forbidden: Port::open(), before, world }
    }

    pub fn runnable(&self, tool: CliTool) -> Arc<dyn Runnable> {
        self.world.handlers(Arc::clone(&self.watch) as Arc<dyn Launch>).runnable(tool)
    }

    pub fn call(&self, tool: &Arc<dyn Runnable>, value: &str) -> Seen {
        let answer = call(tool, &json!({ "x": value }));
        let ended = self.watch.take();
        let mut said = format!("{answer:?}");
        for one in &ended {
            assert!(!matches!(one.ending, Ending::JailFailed(_)), "{:?}", one.ending);
            // Also output that is not returned because the command failed.
            said.push_str(&String::from_utf8_lossy(&one.stdout));
            said.push_str(&String::from_utf8_lossy(&one.stderr));
        }
        let marks = [NEAR, OUTSIDE, RAN].into_iter().filter(|mark| said.contains(mark));
        let mut wrong: Vec<String> = marks.map(|mark| format!("said {mark}")).collect();
        wrong.extend(differences(&self.before, &tree(&self.world.root())));
        wrong.extend(self.forbidden.strangers().iter().map(|peer| format!("{peer} came to the port")));
        Seen { has_run: !ended.is_empty(), wrong, said }
    }

    /// Fills in the places that a text names.
    pub fn fill(&self, text: &str) -> String {
        let root = self.world.root();
        let at = |path: &str| root.join(path).display().to_string();
        [
            ("{INSIDE}", at("workspace/inside")),
            ("{NEAR}", at("workspace/inside/private/near.txt")),
            ("{MARK}", at("workspace/inside/PWNED")),
            ("{SECRET}", at("workspace/private/secret.txt")),
            ("{OUTSIDE}", at("outside")),
            ("{OUT}", at("outside/passwd")),
            ("{HOME}", at("home")),
            ("{ALLOWED}", self.allowed.to_string()),
            ("{FORBIDDEN}", self.forbidden.address.to_string()),
            ("{PORT}", self.forbidden.address.port().to_string()),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, place)| text.replace(name, place))
    }
}

/// `inside` is granted to the tools; their authors name `docs`, `archives` and `out` in it.
fn plant(world: &World) {
    let near: &str = &format!("hello docs {NEAR}\n");
    let near_name: &str = &format!("workspace/inside/private/{NEAR}");
    let near_cookies: &str = &format!("127.0.0.1\tFALSE\t/\tFALSE\t0\tnear\t{NEAR}\n");
    let outside: &str = &format!("hello docs {OUTSIDE}\n");
    for (path, text) in [
        ("workspace/inside/docs/a.txt", "hello docs\n"),
        ("workspace/inside/docs/sub/b.txt", "hello below\n"),
        ("workspace/inside/private/near.txt", near),
        (near_name, "x\n"),
        ("workspace/inside/private/near.cookies", near_cookies),
        ("workspace/inside/docs/.env", outside),
        ("workspace/private/secret.txt", outside),
        ("workspace/.toolgate/state", outside),
        ("outside/passwd", outside),
        ("home/.netrc", outside),
        ("home/.gitconfig", outside),
        ("home/.ssh/config", outside),
    ] {
        world.write(path, text);
    }
    let inside = world.at("inside");
    for folder in ["archives", "out"] {
        fs::create_dir(Path::new(&inside).join(folder)).unwrap();
    }
    catalog::git(&inside, &["init", "--quiet", "--template=", "."]);
    catalog::git(&inside, &["add", "docs/a.txt", "private"]);
    catalog::git(&inside, &["commit", "--quiet", "-m", "first"]);
    catalog::git(&inside, &["branch", NEAR]);
    tar(&inside, &["--create", "--file=archives/a.tar", "docs/a.txt", "docs/sub"]);
    tar(&inside, &["--create", "--file=private/near.tar", &format!("private/{NEAR}")]);
    // The targets of an extraction already exist, so it changes nothing.
    tar(&inside, &["--extract", "--file=archives/a.tar", "--directory=out"]);
    symlink(world.root().join("outside"), Path::new(&inside).join("docs/leads_out")).unwrap();
}

fn tar(folder: &str, args: &[&str]) {
    assert!(Command::new("tar").args(args).current_dir(folder).status().unwrap().success(), "{args:?}");
}

/// The content of everything below a directory.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mut what = format!("{:o} ", metadata.permissions().mode()).into_bytes();
            if metadata.is_dir() {
                folders.push(path.clone());
            } else if metadata.is_symlink() {
                what.extend(fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
            } else if metadata.is_file() {
                what.extend(fs::read(&path).unwrap());
            }
            found.insert(path, what);
        }
    }
    found
}

fn differences(before: &BTreeMap<PathBuf, Vec<u8>>, now: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<String> {
    let changed = now.iter().filter(|(path, what)| before.get(*path) != Some(*what));
    let gone = before.iter().filter(|(path, _)| !now.contains_key(*path));
    changed.chain(gone).map(|(path, _)| format!("{} changed", path.display())).collect()
}

/// Records incoming connections.
struct Port {
    address: SocketAddr,
    seen: mpsc::Receiver<SocketAddr>,
}

impl Port {
    fn open() -> Self {
        // Another address than the allowed one, which distinguishes the hosts.
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = mpsc::channel();
        thread::spawn(move || {
            while let Ok((_, peer)) = listener.accept() {
                if tell.send(peer).is_err() {
                    return;
                }
            }
        });
        Self { address, seen }
    }

    /// Connections since the last call. It connects last itself, because it must not miss a queued connection.
    fn strangers(&self) -> Vec<SocketAddr> {
        let own = TcpStream::connect(self.address).unwrap().local_addr().unwrap();
        self.seen.iter().take_while(|peer| *peer != own).collect()
    }
}

/// Answers every request with its body and cookies, for as long as the test runs.
fn web_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            // Clients that disconnect early are ignored, and silent ones must not delay others.
            stream.set_read_timeout(Some(PATIENCE)).ok();
            let asked = request(&mut stream);
            if !asked.is_empty() {
                stream.write_all(answer(&asked).as_bytes()).ok();
            }
        }
    });
    address
}

/// All that a client sends before it stops or disconnects.
fn request(stream: &mut TcpStream) -> String {
    let (mut asked, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let Ok(bytes @ 1..) = stream.read(&mut chunk) else {
            return String::from_utf8_lossy(&asked).into_owned();
        };
        asked.extend_from_slice(&chunk[..bytes]);
        let text = String::from_utf8_lossy(&asked).into_owned();
        if text.split_once("\r\n\r\n").is_some_and(|(head, body)| is_whole(head, body)) {
            return text;
        }
    }
}

fn is_whole(head: &str, body: &str) -> bool {
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap_or_default());
    let is_chunked = head.contains("transfer-encoding: chunked");
    body.len() >= length && (!is_chunked || body.ends_with("0\r\n\r\n"))
}

fn answer(asked: &str) -> String {
    let (head, body) = asked.split_once("\r\n\r\n").unwrap_or((asked, ""));
    let cookies = head.lines().filter(|line| line.to_ascii_lowercase().starts_with("cookie:"));
    let said = format!("served\n{}{body}", cookies.collect::<String>());
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{said}", said.len())
}

const PATIENCE: Duration = Duration::from_secs(10);

/// Keeps the outcome of each command.
struct Watch {
    launcher: Arc<dyn Launch>,
    ended: Arc<Mutex<Vec<CommandOutcome>>>,
}

impl Watch {
    fn take(&self) -> Vec<CommandOutcome> {
        mem::take(&mut *self.ended.lock().unwrap())
    }
}

impl Launch for Watch {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        let running = self.launcher.launch(order);
        let kept = Arc::clone(&self.ended);
        Box::pin(async move {
            let ended = running.await;
            kept.lock().unwrap().push(ended.clone());
            ended
        })
    }
}

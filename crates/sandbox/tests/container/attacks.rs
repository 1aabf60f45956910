//! Attacks from inside a container, and through hostile names and arguments.

use std::{
    fs,
    io::Read,
    os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink},
    os::unix::net::{UnixDatagram, UnixListener, UnixStream},
    path::Path,
    process::ExitCode,
};

use toolgate_sandbox::{Access, Ending, SpawnError};

use crate::driver::{Case, bind, finish, folder, jail, jail_of, output, refusal, with_attacker};

pub const ALL: &[Case] = &[
    Case { name: "hostile_arguments_stay_arguments", body: hostile_arguments_stay_arguments },
    Case { name: "program_named_init_gets_no_extra_mounts", body: program_named_init_gets_no_extra_mounts },
    Case { name: "hostile_bind_names_are_literal", body: hostile_bind_names_are_literal },
    Case { name: "only_tmp_is_writable", body: only_tmp_is_writable },
    Case { name: "tmp_is_bounded_and_noexec", body: tmp_is_bounded_and_noexec },
    Case { name: "hidden_files_and_directories_are_masked", body: hidden_files_and_directories_are_masked },
    Case {
        name: "directories_above_hidden_paths_cannot_be_moved",
        body: directories_above_hidden_paths_cannot_be_moved,
    },
    Case { name: "hard_link_of_a_hidden_file_is_masked", body: hard_link_of_a_hidden_file_is_masked },
    Case {
        name: "symlink_in_a_bind_does_not_redirect_another_bind",
        body: symlink_in_a_bind_does_not_redirect_another_bind,
    },
    Case { name: "hidden_bind_shows_nothing", body: hidden_bind_shows_nothing },
    Case {
        name: "sockets_and_kernel_file_systems_cannot_be_bound",
        body: sockets_and_kernel_file_systems_cannot_be_bound,
    },
    Case {
        name: "host_is_not_reached_through_a_socket_in_a_bind",
        body: host_is_not_reached_through_a_socket_in_a_bind,
    },
    Case { name: "fork_bomb_stops_at_the_limit", body: fork_bomb_stops_at_the_limit },
    Case { name: "file_size_limit_is_enforced", body: file_size_limit_is_enforced },
    Case { name: "mounting_is_denied", body: mounting_is_denied },
];

fn hostile_arguments_stay_arguments() {
    let hostile = [
        "--privileged",
        "-v/:/host",
        "--",
        "--entrypoint=/bin/id",
        "",
        " ",
        "$(id)",
        "`id`",
        ";id",
        "a\tb",
        "'\"",
        "--network=host",
        "*",
        "{{.Id}}",
        "%s",
        "\\n",
        "é\u{202e}",
        "-it",
        "@file",
        "--env-file=/etc/shadow",
    ];
    let argv: Vec<&str> =
        ["/bin/sh", "-c", "for word; do echo \"<$word>\"; done", "sh"].into_iter().chain(hostile).collect();
    let lines: Vec<String> = hostile.iter().map(|word| format!("<{word}>\n")).collect();
    assert_eq!(output(jail_of(&argv)), lines.concat());
}

fn program_named_init_gets_no_extra_mounts() {
    let mounts = output(jail_of(&["/sbin/init"]));
    let writable =
        |line: &&str| line.split_whitespace().nth(3).is_some_and(|options| options.starts_with("rw"));
    let places: Vec<&str> =
        mounts.lines().filter(writable).filter_map(|line| line.split_whitespace().nth(1)).collect();
    let usual = ["/tmp", "/proc", "/dev", "/sys/fs/cgroup"];
    let unusual: Vec<_> = places
        .iter()
        .filter(|place| !usual.contains(place) && !place.starts_with("/dev/") && !place.starts_with("/proc/"))
        .collect();
    assert!(unusual.is_empty(), "{mounts}");
}

fn hostile_bind_names_are_literal() {
    let top = folder();
    let names = [
        "a,target=etc",
        "b\"c",
        "\"quoted\"",
        "c:host:rw",
        "d=e",
        "f g",
        "readonly",
        "h,readonly=false,i",
        "é",
        "--privileged",
        "'j'",
        "k\\l",
        "$(id)",
        "m,\"n",
        " o ",
        "#p",
        "~",
        "q*",
    ];
    let mut one = jail(
        "cat /b*/*/name; for place in /b*/*; do touch \"$place/new\" 2>/dev/null && echo written; done; true",
    );
    let mut expected = String::new();
    for (number, name) in names.iter().enumerate() {
        let source = top.path().join(name);
        fs::create_dir(&source).unwrap();
        fs::write(source.join("name"), format!("{name}\n")).unwrap();
        // The target in the container has the same name.
        let at = format!("/b{number:02}/{name}");
        one.view.binds.push(bind(&source, &at, Access::Read));
        expected.push_str(name);
        expected.push('\n');
    }
    assert_eq!(output(one), expected);
}

fn only_tmp_is_writable() {
    let places = "/ /bin /etc /run /var/tmp /data /proc/sys/kernel /sys /dev";
    let script = format!(
        "for place in {places}; do touch $place/x 2>/dev/null && echo $place; done; touch /tmp/x && echo tmp"
    );
    assert_eq!(output(jail(&script)), "tmp\n");
}

fn tmp_is_bounded_and_noexec() {
    let script = "cp /bin/busybox /tmp/true 2>/dev/null; chmod 755 /tmp/true; /tmp/true 2>/dev/null && echo ran; rm /tmp/true; \
                  for place in /tmp /dev/shm; do dd if=/dev/zero of=$place/big bs=65536 count=64 2>/dev/null && echo $place; done; \
                  wc -c < /tmp/big";
    assert_eq!(output(jail(script)), "1048576\n");
}

fn hidden_files_and_directories_are_masked() {
    let top = folder();
    let path = |name: &str| top.path().join(name);
    fs::create_dir_all(path("keys/deep")).unwrap();
    fs::write(path("keys/deep/key"), "SECRET").unwrap();
    fs::write(path(".env"), "SECRET").unwrap();
    fs::write(path("plain"), "plain\n").unwrap();
    symlink(".env", path("link")).unwrap();
    let script = "cat /w/plain; cat /w/.env /w/link /w/keys/deep/key /w/keys/../.env 2>/dev/null; ls /w/keys 2>/dev/null; \
                  echo x > /w/.env; mv /w/.env /w/moved; rm -rf /w/keys; ln /w/.env /w/hard; chmod 777 /w/.env; \
                  mv /w/keys /w/elsewhere; cat /w/moved /w/hard /w/elsewhere/deep/key; true";
    let mut one = jail(script);
    one.view.binds.push(bind(top.path(), "/w", Access::Write));
    // The symlink names the same file; a missing path needs no mask.
    one.view.hidden = vec![path("link"), path("keys"), path("absent")];
    assert_eq!(output(one), "plain\n");
    assert_eq!(fs::read_to_string(path(".env")).unwrap(), "SECRET");
    assert_eq!(fs::read_to_string(path("keys/deep/key")).unwrap(), "SECRET");
}

fn directories_above_hidden_paths_cannot_be_moved() {
    let top = folder();
    let path = |name: &str| top.path().join(name);
    fs::create_dir_all(path("config/cedar")).unwrap();
    fs::write(path("config/cedar/main.cedar"), "SECRET").unwrap();
    fs::create_dir(path("free")).unwrap();
    let script = "mv /w/config /w/c2 2>/dev/null && echo moved; mv /w/config/cedar /w/config/c3 2>/dev/null && echo moved; \
                  mkdir -p /w/config/cedar; echo x 2>/dev/null > /w/config/cedar/main.cedar; \
                  cat /w/c2/cedar/main.cedar /w/config/c3/main.cedar 2>/dev/null; mv /w/free /w/freed && echo freed";
    let mut one = jail(script);
    one.view.binds.push(bind(top.path(), "/w", Access::Write));
    one.view.hidden = vec![path("config/cedar/main.cedar")];
    // The last line proves that moving is possible at all.
    assert_eq!(output(one), "freed\n");
    assert_eq!(fs::read_to_string(path("config/cedar/main.cedar")).unwrap(), "SECRET");
}

fn hard_link_of_a_hidden_file_is_masked() {
    let (top, elsewhere) = (folder(), folder());
    fs::write(elsewhere.path().join("key"), "SECRET").unwrap();
    fs::hard_link(elsewhere.path().join("key"), top.path().join("innocent")).unwrap();
    let mut one = jail("cat /w/innocent 2>/dev/null || echo covered");
    one.view.binds.push(bind(top.path(), "/w", Access::Read));
    one.view.hidden = vec![elsewhere.path().to_owned()];
    assert_eq!(output(one), "covered\n");
}

fn symlink_in_a_bind_does_not_redirect_another_bind() {
    let (top, inner) = (folder(), folder());
    // Left by an earlier command, so the next one would find the inner bind at its programs.
    symlink("/bin", top.path().join("inner")).unwrap();
    let mut one = jail("true");
    one.view.binds.push(bind(top.path(), "/w", Access::Write));
    one.view.binds.push(bind(inner.path(), "/w/inner", Access::Read));
    assert!(matches!(refusal(one), SpawnError::Failed(_)));
}

fn hidden_bind_shows_nothing() {
    let top = folder();
    fs::create_dir(top.path().join("inner")).unwrap();
    fs::write(top.path().join("inner/key"), "SECRET").unwrap();
    let mut one =
        jail("ls /w 2>/dev/null; cat /w/key 2>/dev/null; touch /w/x 2>/dev/null && echo written; true");
    one.view.binds.push(bind(&top.path().join("inner"), "/w", Access::Write));
    one.view.hidden = vec![top.path().to_owned()];
    assert_eq!(output(one), "");
}

fn sockets_and_kernel_file_systems_cannot_be_bound() {
    let top = folder();
    let _listener = UnixListener::bind(top.path().join("socket")).unwrap();
    let socket = top.path().join("socket");
    for source in [socket.as_path(), Path::new("/proc"), Path::new("/sys"), Path::new("/dev/null")] {
        let mut one = jail("true");
        one.view.binds.push(bind(source, "/w", Access::Read));
        let SpawnError::Invalid(why) = refusal(one) else { panic!("{}", source.display()) };
        assert!(why.contains("cannot be bound"), "{why}");
    }
}

/// A database of the host that listens in the workspace, and a pipe whose reader executes orders.
fn host_is_not_reached_through_a_socket_in_a_bind() {
    let everybody = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    for access in [Access::Read, Access::Write] {
        let top = folder();
        let path = |name: &str| top.path().join(name);
        fs::create_dir_all(path(".pg/run")).unwrap();
        fs::create_dir(path("empty")).unwrap();
        let database = UnixListener::bind(path(".pg/run/.s.PGSQL.5432")).unwrap();
        let log = UnixDatagram::bind(path("log")).unwrap();
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path("orders"), pipe, 0o777.into(), 0).unwrap();
        let mut orders =
            fs::OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path("orders")).unwrap();
        for name in [".pg", ".pg/run", ".pg/run/.s.PGSQL.5432", "log", "orders"] {
            everybody(&path(name));
        }
        for listener in [database.set_nonblocking(true), log.set_nonblocking(true)] {
            listener.unwrap();
        }
        let script = "cd /w; mv .pg pg; mv .pg/run .pg/r; mv .pg/run/.s.PGSQL.5432 s; ln log l; \
                      for place in */ .pg/*/ pg/*/ ''; do for name in log l s orders .s.PGSQL.5432; do \
                      /attacker --reach \"$place$name\"; done; done 2>/dev/null; true";
        let mut one = with_attacker(jail(script));
        one.view.binds.push(bind(top.path(), "/w", access));
        // A pipe in a writable directory reaches its reader, as a file would.
        let expected = if access == Access::Write { "piped orders\n" } else { "" };
        assert_eq!(output(one), expected, "{access:?}");
        assert!(database.accept().is_err() && log.recv(&mut [0; 8]).is_err(), "{access:?}");
        let mut heard = String::new();
        orders.read_to_string(&mut heard).unwrap();
        assert_eq!(heard.is_empty(), access == Access::Read, "{heard}");
    }
}

/// Prints which of these paths can be reached from inside a container.
pub fn reach(paths: &[&str]) -> ExitCode {
    for path in paths {
        if UnixStream::connect(path).is_ok() {
            println!("connected {path}");
        }
        if UnixDatagram::unbound().is_ok_and(|socket| socket.send_to(b"x", path).is_ok()) {
            println!("sent {path}");
        }
        let mut pipe = fs::OpenOptions::new();
        pipe.write(true).custom_flags(NONBLOCK);
        let is_pipe = |file: &fs::File| {
            file.metadata().is_ok_and(|about| std::os::unix::fs::FileTypeExt::is_fifo(&about.file_type()))
        };
        if let Some(mut file) = pipe.open(path).ok().filter(is_pipe)
            && std::io::Write::write_all(&mut file, b"x").is_ok()
        {
            println!("piped {path}");
        }
    }
    ExitCode::SUCCESS
}

fn fork_bomb_stops_at_the_limit() {
    let report =
        finish(jail("n=0; while [ $n -lt 200 ]; do sleep 1000 & n=$((n + 1)); echo $n; done; echo all"));
    let text = String::from_utf8(report.stdout).unwrap();
    let most: u32 = text.lines().last().unwrap().parse().unwrap();
    assert!((1..=32).contains(&most), "{most}");
    assert!(matches!(report.ending, Ending::Exited(1..)), "{:?}", report.ending);
}

fn file_size_limit_is_enforced() {
    let top = folder();
    let mut one = jail("dd if=/dev/zero of=/w/big bs=1048576 count=64 2>/dev/null; wc -c < /w/big");
    one.view.binds.push(bind(top.path(), "/w", Access::Write));
    assert_eq!(output(one), format!("{}\n", 8 << 20));
}

fn mounting_is_denied() {
    let script = "mount -t tmpfs none /tmp 2>/dev/null && echo mounted; mount -o remount,rw / 2>/dev/null && echo writable; \
                  echo $$; ls /proc | grep -c '^[0-9]'";
    let text = output(jail(script));
    let numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(numbers[0] == 1 && numbers[1] < 6, "processes of the host are seen: {text}");
}

/// Makes this program try to reach something from its container.
pub const REACH: &str = "--reach";

/// `O_NONBLOCK`: opening a pipe does not wait.
const NONBLOCK: i32 = 0o4000;

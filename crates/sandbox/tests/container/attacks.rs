//! What somebody inside, or whoever chooses names and arguments, tries.

use std::{fs, os::unix::fs::symlink, os::unix::net::UnixListener, path::Path};

use toolgate_sandbox::{Access, Ending, SpawnError};

use crate::driver::{Case, bind, finish, folder, jail, jail_of, output, refusal};

pub const ALL: &[Case] = &[
    Case { name: "arguments_stay_arguments", body: arguments_stay_arguments },
    Case { name: "a_program_called_init_gets_nothing_more", body: a_program_called_init_gets_nothing_more },
    Case { name: "binds_with_hostile_names_are_themselves", body: binds_with_hostile_names_are_themselves },
    Case { name: "nothing_but_tmp_can_be_written", body: nothing_but_tmp_can_be_written },
    Case { name: "tmp_is_bounded_and_nothing_in_it_runs", body: tmp_is_bounded_and_nothing_in_it_runs },
    Case { name: "hidden_files_and_folders_are_covered", body: hidden_files_and_folders_are_covered },
    Case { name: "folders_above_something_hidden_stay", body: folders_above_something_hidden_stay },
    Case { name: "another_name_of_a_hidden_file_is_covered", body: another_name_of_a_hidden_file_is_covered },
    Case {
        name: "a_link_in_a_bind_does_not_lead_another_bind_astray",
        body: a_link_in_a_bind_does_not_lead_another_bind_astray,
    },
    Case { name: "a_hidden_bind_shows_nothing", body: a_hidden_bind_shows_nothing },
    Case {
        name: "sockets_and_doors_to_the_kernel_are_no_binds",
        body: sockets_and_doors_to_the_kernel_are_no_binds,
    },
    Case { name: "a_fork_bomb_stops_at_the_limit", body: a_fork_bomb_stops_at_the_limit },
    Case { name: "too_large_files_are_not_written", body: too_large_files_are_not_written },
    Case { name: "mounting_is_refused", body: mounting_is_refused },
];

fn arguments_stay_arguments() {
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

fn a_program_called_init_gets_nothing_more() {
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

fn binds_with_hostile_names_are_themselves() {
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
        // The place in the container has the same name.
        let at = format!("/b{number:02}/{name}");
        one.view.binds.push(bind(&source, &at, Access::Read));
        expected.push_str(name);
        expected.push('\n');
    }
    assert_eq!(output(one), expected);
}

fn nothing_but_tmp_can_be_written() {
    let places = "/ /bin /etc /run /var/tmp /data /proc/sys/kernel /sys /dev";
    let script = format!(
        "for place in {places}; do touch $place/x 2>/dev/null && echo $place; done; touch /tmp/x && echo tmp"
    );
    assert_eq!(output(jail(&script)), "tmp\n");
}

fn tmp_is_bounded_and_nothing_in_it_runs() {
    let script = "cp /bin/busybox /tmp/true 2>/dev/null; chmod 755 /tmp/true; /tmp/true 2>/dev/null && echo ran; rm /tmp/true; \
                  for place in /tmp /dev/shm; do dd if=/dev/zero of=$place/big bs=65536 count=64 2>/dev/null && echo $place; done; \
                  wc -c < /tmp/big";
    assert_eq!(output(jail(script)), "1048576\n");
}

fn hidden_files_and_folders_are_covered() {
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
    // The link names the same file; something that is not there needs no cover.
    one.view.hidden = vec![path("link"), path("keys"), path("absent")];
    assert_eq!(output(one), "plain\n");
    assert_eq!(fs::read_to_string(path(".env")).unwrap(), "SECRET");
    assert_eq!(fs::read_to_string(path("keys/deep/key")).unwrap(), "SECRET");
}

fn folders_above_something_hidden_stay() {
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
    // The last one shows that moving is possible at all.
    assert_eq!(output(one), "freed\n");
    assert_eq!(fs::read_to_string(path("config/cedar/main.cedar")).unwrap(), "SECRET");
}

fn another_name_of_a_hidden_file_is_covered() {
    let (top, elsewhere) = (folder(), folder());
    fs::write(elsewhere.path().join("key"), "SECRET").unwrap();
    fs::hard_link(elsewhere.path().join("key"), top.path().join("innocent")).unwrap();
    let mut one = jail("cat /w/innocent 2>/dev/null || echo covered");
    one.view.binds.push(bind(top.path(), "/w", Access::Read));
    one.view.hidden = vec![elsewhere.path().to_owned()];
    assert_eq!(output(one), "covered\n");
}

fn a_link_in_a_bind_does_not_lead_another_bind_astray() {
    let (top, inner) = (folder(), folder());
    // Left by an earlier command, so that the next one finds the inner bind as its programs.
    symlink("/bin", top.path().join("inner")).unwrap();
    let mut one = jail("true");
    one.view.binds.push(bind(top.path(), "/w", Access::Write));
    one.view.binds.push(bind(inner.path(), "/w/inner", Access::Read));
    assert!(matches!(refusal(one), SpawnError::Failed(_)));
}

fn a_hidden_bind_shows_nothing() {
    let top = folder();
    fs::create_dir(top.path().join("inner")).unwrap();
    fs::write(top.path().join("inner/key"), "SECRET").unwrap();
    let mut one =
        jail("ls /w 2>/dev/null; cat /w/key 2>/dev/null; touch /w/x 2>/dev/null && echo written; true");
    one.view.binds.push(bind(&top.path().join("inner"), "/w", Access::Write));
    one.view.hidden = vec![top.path().to_owned()];
    assert_eq!(output(one), "");
}

fn sockets_and_doors_to_the_kernel_are_no_binds() {
    let top = folder();
    let _listener = UnixListener::bind(top.path().join("socket")).unwrap();
    let socket = top.path().join("socket");
    for source in [socket.as_path(), Path::new("/proc"), Path::new("/sys"), Path::new("/dev/null")] {
        let mut one = jail("true");
        one.view.binds.push(bind(source, "/w", Access::Read));
        let SpawnError::Invalid(why) = refusal(one) else { panic!("{}", source.display()) };
        assert!(why.contains("stay outside"), "{why}");
    }
}

fn a_fork_bomb_stops_at_the_limit() {
    let report =
        finish(jail("n=0; while [ $n -lt 200 ]; do sleep 1000 & n=$((n + 1)); echo $n; done; echo all"));
    let text = String::from_utf8(report.stdout).unwrap();
    let most: u32 = text.lines().last().unwrap().parse().unwrap();
    assert!((1..=32).contains(&most), "{most}");
    assert!(matches!(report.ending, Ending::Exited(1..)), "{:?}", report.ending);
}

fn too_large_files_are_not_written() {
    let top = folder();
    let mut one = jail("dd if=/dev/zero of=/w/big bs=1048576 count=64 2>/dev/null; wc -c < /w/big");
    one.view.binds.push(bind(top.path(), "/w", Access::Write));
    assert_eq!(output(one), format!("{}\n", 8 << 20));
}

fn mounting_is_refused() {
    let script = "mount -t tmpfs none /tmp 2>/dev/null && echo mounted; mount -o remount,rw / 2>/dev/null && echo writable; \
                  echo $$; ls /proc | grep -c '^[0-9]'";
    let text = output(jail(script));
    let numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(numbers[0] == 1 && numbers[1] < 6, "processes of the host are seen: {text}");
}

use super::*;

fn blocking(ground: &Ground, blocked: &[&str]) -> Files {
    ground.files_with(|grants| grants.blocked = blocked.iter().map(|text| pattern(text)).collect())
}

#[test]
fn blocked_path_is_blocked_under_every_name() {
    let ground = Ground::new();
    ground.put("ws/keys/id_rsa", CANARY);
    ground.put("ws/keys/readme", "r");
    ground.put("ws/a/f", "f");
    ground.link("ws/link", "keys/id_rsa");
    ground.link("ws/folder", "keys");
    ground.link("ws/a/chain", "../folder/id_rsa");
    let files = blocking(&ground, &["$WORKSPACE/keys/id_*"]);
    let absolute = ground.text_path("ws/keys/id_rsa");
    for path in
        ["keys/id_rsa", "keys//./id_rsa/", "a/../keys/id_rsa", "link", "folder/id_rsa", "a/chain", &absolute]
    {
        for said in everything_said_about(&files, path) {
            assert!(said.contains("SECURITY") || said.contains("Security"), "{path}: {said}");
            assert!(!said.contains(CANARY), "{path}: {said}");
        }
        refused(files.read_text(path), "SECURITY readText path-blocked");
        assert!(!files.exists(path).unwrap(), "{path}");
        assert!(files.write_text(path, "x").is_err_and(|error| error.class == FileErrorClass::Security));
        assert!(files.delete(path).is_err());
    }
    refused(files.write_text("keys/id_new", "x"), "SECURITY writeText path-blocked");
    refused(files.write_text("folder/id_new", "x"), "SECURITY writeText path-blocked");
    refused(files.write_text("keys/id_new/below", "x"), "SECURITY writeText path-blocked");
    assert!(!ground.path("ws/keys/id_new").exists());
    assert_eq!(ground.content("ws/keys/id_rsa"), CANARY);
    assert_eq!(files.read_text("keys/readme").unwrap(), "r");
}

#[test]
fn hard_link_to_a_blocked_file_is_blocked() {
    for (secret, blocked) in [
        ("ws/hidden.txt", "$WORKSPACE/hidden.txt"),
        ("ws/keys/deep/key", "$WORKSPACE/keys"),
        ("ws/a/.env", "$WORKSPACE/**/.env"),
        ("ws/b/.env", "/**/.env"),
        ("elsewhere/shadow", "ELSEWHERE/shadow"),
        ("elsewhere/ssh/id_rsa", "ELSEWHERE/ssh/id_*"),
    ] {
        let ground = Ground::new();
        ground.put(secret, CANARY);
        ground.put("ws/one", "harmless");
        fs::hard_link(ground.path("ws/one"), ground.path("ws/two")).unwrap();
        fs::hard_link(ground.path(secret), ground.path("ws/pub.txt")).unwrap();
        let files = blocking(&ground, &[&blocked.replace("ELSEWHERE", &ground.text_path("elsewhere"))]);
        for said in everything_said_about(&files, "pub.txt") {
            assert!(said.starts_with("Err") && !said.contains(CANARY), "{blocked}: {said}");
        }
        refused(files.read_text("pub.txt"), "SECURITY readText path-blocked");
        refused(files.append_text("pub.txt", "x"), "SECURITY appendText path-blocked");
        assert!(!files.exists("pub.txt").unwrap(), "{blocked}");
        let hits = files.search_in_files(".", "*", "CANARY", SearchOptions::default()).unwrap();
        assert!(hits.is_empty(), "{blocked}: {hits:?}");
        assert_eq!(files.read_text("two").unwrap(), "harmless", "{blocked}");
    }
}

#[test]
fn hard_link_to_the_gateways_files_is_blocked_in_large_trees() {
    let ground = Ground::new();
    for number in 0..2_100 {
        ground.put(&format!("state/{number}"), CANARY);
    }
    let own = ground.path("state");
    let files = ground.files_with(|grants| {
        grants.blocked = vec![pattern(&ground.text_path("state"))];
        grants.own = vec![own];
    });
    for number in [0, 1_050, 2_099] {
        let name = format!("alias{number}");
        fs::hard_link(ground.path(&format!("state/{number}")), ground.path(&format!("ws/{name}"))).unwrap();
    }
    for name in ["alias0", "alias1050", "alias2099"] {
        refused(files.read_text(name), "SECURITY readText path-blocked");
    }
}

#[test]
fn blocked_paths_are_not_listed_found_or_searched() {
    let ground = Ground::new();
    ground.put("ws/keys/id_rsa", CANARY);
    ground.put("ws/keys/readme", "CANARY song");
    ground.link("ws/folder", "keys");
    let files = blocking(&ground, &["$WORKSPACE/keys/id_*"]);
    assert_eq!(files.list("keys").unwrap(), ["keys/readme"]);
    assert_eq!(files.list("folder").unwrap(), ["folder/readme"]);
    assert_eq!(files.find(".", "*", FindOptions::default()).unwrap(), ["folder", "keys", "keys/readme"]);
    assert_eq!(files.find("folder", "*", FindOptions::default()).unwrap(), ["folder/readme"]);
    for dir in [".", "keys", "folder"] {
        let hits = files.search_in_files(dir, "*", "CANARY", SearchOptions::default()).unwrap();
        assert_eq!(hits.len(), 1, "{hits:?}");
        assert_eq!(hits[0].text, "CANARY song");
    }
}

#[test]
fn directory_with_a_blocked_path_is_not_moved_or_deleted() {
    let ground = Ground::new();
    ground.put("ws/app/deep/.env", CANARY);
    ground.put("ws/app/f", "f");
    ground.put("ws/free/name", "n");
    let files = blocking(&ground, &["/**/.env", "$WORKSPACE/app/name"]);
    refused(files.move_("app", "other"), "SECURITY move path-blocked");
    refused(files.move_("app/deep", "other"), "SECURITY move path-blocked");
    refused(files.delete_dir("app"), "SECURITY deleteDir path-blocked");
    refused(files.move_("free/name", "free/.env"), "SECURITY move path-blocked");
    refused(files.copy("free/name", "app/name"), "SECURITY copy path-blocked");
    assert_eq!(ground.content("ws/app/deep/.env") + &ground.content("ws/app/f"), format!("{CANARY}f"));
    // Its new name would be blocked, although the old one is not.
    files.delete("app/f").unwrap();
    fs::remove_dir_all(ground.path("ws/app")).unwrap();
    refused(files.move_("free", "app"), "SECURITY move path-blocked");
    assert_eq!(files.move_("free", "elsewhere").unwrap(), ground.text_path("ws/elsewhere"));
}

#[test]
fn block_follows_symlinks_of_its_own_path() {
    let ground = Ground::new();
    ground.put("ws/real/secret", CANARY);
    ground.link("ws/alias", "real");
    let files = blocking(&ground, &["$WORKSPACE/alias/sec*"]);
    refused(files.read_text("real/secret"), "SECURITY readText path-blocked");
    refused(files.read_text("alias/secret"), "SECURITY readText path-blocked");
    // A root that is reached through a symlink, and a block by the name in the grant.
    ground.link("entry", "ws");
    for blocked in ["entry/real", "ws/real"] {
        let files = ground.files_with(|grants| {
            grants.workspace = ground.path("entry");
            grants.blocked = vec![pattern(&ground.text_path(blocked))];
        });
        refused(files.read_text("real/secret"), "SECURITY readText path-blocked");
        assert_eq!(files.workspace(), ground.text_path("entry"));
        let real = ground.text_path("ws/real/secret");
        refused(files.read_text(&real), "SECURITY readText path-blocked");
        assert_eq!(files.write_text(&ground.text_path("ws/new"), "").unwrap(), ground.text_path("entry/new"));
        assert_eq!(files.list(&ground.text_path("entry")).unwrap(), ["alias", "new"]);
    }
}

#[test]
fn home_is_blocked_under_both_of_its_names() {
    let ground = Ground::new();
    ground.put("lib/.ssh/id_rsa", CANARY);
    ground.link("home", "lib");
    for home in ["home", "lib"] {
        let files = ground.files_with(|grants| {
            grants.home = ground.path(home);
            grants.read_roots = vec![ground.path("home")];
            grants.blocked = vec![pattern("$HOME/.ssh")];
        });
        for path in ["home/.ssh/id_rsa", "lib/.ssh/id_rsa", "home/.ssh"] {
            refused(files.read_text(&ground.text_path(path)), "SECURITY readText path-blocked");
        }
    }
}

#[test]
fn only_allowed_paths_count_inside_the_roots() {
    let ground = Ground::new();
    ground.put("ws/in/a", "a");
    ground.put("ws/b", "b");
    ground.link("ws/in/link", "../b");
    let files = ground.files_with(|grants| grants.allowed = vec![pattern("$WORKSPACE/in")]);
    assert_eq!(files.read_text("in/a").unwrap(), "a");
    for path in ["b", ".", "in/link", "in/../b", "IN/a"] {
        refused(files.read_text(path), "SECURITY readText path-not-allowed");
    }
    refused(files.write_text("c", ""), "SECURITY writeText path-not-allowed");
    refused(files.write_text("d/c", ""), "SECURITY writeText path-not-allowed");
    refused(files.move_("in", "d"), "SECURITY move path-not-allowed");
    refused(files.delete("b"), "SECURITY delete path-not-allowed");
    files.write_text("in/new/c", "").unwrap();
    let nothing = ground.files_with(|grants| grants.allowed.clear());
    refused(nothing.read_text("in/a"), "SECURITY readText path-not-allowed");
    assert!(!nothing.exists("in/a").unwrap());
    refused(nothing.list("."), "SECURITY list path-not-allowed");
}

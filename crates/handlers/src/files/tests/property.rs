use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// The parts of trees and paths. Few names, so they collide.
const NAMES: [&str; 4] = ["a", "b", "out", "secret"];
const STEPS: [&str; 12] = ["a", "b", "out", "secret", "..", ".", "", "ws", "/", "A", "deep", "\u{2025}"];

#[derive(Clone, Debug)]
enum Planted {
    File,
    Folder,
    LinkTo(String),
}

fn planted() -> impl Strategy<Value = (Vec<&'static str>, Planted)> {
    let link = (any::<bool>(), vec(select(&STEPS[..]), 1..5)).prop_map(|(is_absolute, steps)| {
        Planted::LinkTo(format!("{}{}", if is_absolute { "/" } else { "" }, steps.join("/")))
    });
    let what = prop_oneof![Just(Planted::File), Just(Planted::Folder), link];
    (vec(select(&NAMES[..]), 1..4), what)
}

fn asked() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => vec(select(&STEPS[..]), 1..7).prop_map(|steps| steps.join("/")),
        1 => any::<String>(),
    ]
}

/// Creates what is possible of the tree; symlinks to `/ws` and `/out` get the real directories.
fn plant(ground: &Ground, tree: &[(Vec<&str>, Planted)]) {
    for (names, what) in tree {
        let path = ground.path("ws").join(names.join("/"));
        // The setup itself must not follow a symlink.
        if path.ancestors().any(Path::is_symlink) {
            continue;
        }
        let _ = fs::create_dir_all(path.parent().unwrap());
        let _ = match what {
            Planted::File => fs::write(path, "plain"),
            Planted::Folder => fs::create_dir(path),
            Planted::LinkTo(to) if to.starts_with('/') => {
                symlink(format!("{}{to}", ground.text_path("")), path)
            }
            Planted::LinkTo(to) => symlink(to, path),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_outside_is_revealed_or_changed(
        tree in vec(planted(), 0..12),
        paths in vec(asked(), 1..5),
    ) {
        let ground = Ground::new();
        plant(&ground, &tree);
        let files = ground.files();
        for path in &paths {
            let real = format!("{}/{path}", ground.text_path("ws"));
            for path in [path, &real] {
                for said in everything_said_about(&files, path) {
                    prop_assert!(!said.contains(CANARY), "{path}: {said}");
                }
                let _ = files.write_text(path, "written");
                let _ = files.append_text(path, "written");
                let _ = files.move_(path, "moved");
                let _ = files.move_("moved", path);
                let _ = files.delete(path);
                let _ = files.delete_dir(path);
            }
            prop_assert!(ground.is_untouched(), "{path}");
            prop_assert_eq!(fs::read_dir(ground.path("")).unwrap().count(), 3);
        }
    }

    #[test]
    fn no_pattern_or_glob_panics(pattern in any::<String>(), glob in any::<String>(), line in "\\PC{0,40}") {
        let ground = Ground::new();
        ground.put("ws/f", &line);
        let files = ground.files();
        let _ = files.grep(&pattern, "f", GrepOptions::default());
        let _ = files.find(".", &glob, FindOptions::default());
        let options = CutOptions { fields: vec![1, 2], delimiter: Some(pattern), regex: true };
        let _ = files.cut("f", &options);
    }
}

use super::*;

const KINDS: [JailKind; 3] = [JailKind::Worker, JailKind::Command, JailKind::Container];

fn encoded(layer: Layer) -> u64 {
    LayerSet::of(&[layer]).to_bits()
}

#[test]
fn every_set_survives_encoding() {
    for kind in KINDS {
        let all = kind.possible();
        assert_eq!(LayerSet::from_bits(kind, all.to_bits()), Some(all));
        for layer in all.iter() {
            let one = LayerSet::of(&[layer]);
            assert_eq!(LayerSet::from_bits(kind, one.to_bits()), Some(one), "{layer:?}");
            assert_eq!(one.names(), [layer.name()]);
        }
        assert_eq!(LayerSet::from_bits(kind, 0), Some(LayerSet::NONE));
    }
    let with_landlock = LayerSet::of(&[Layer::Seccomp]).with_landlock(6);
    assert_eq!(LayerSet::from_bits(JailKind::Worker, with_landlock.to_bits()), Some(with_landlock));
    assert_eq!(with_landlock.names(), ["seccomp", "landlock-6"]);
}

#[test]
fn jail_cannot_report_a_layer_of_another_kind() {
    for kind in KINDS {
        let honest = kind.mandatory().to_bits();
        for layer in Layer::ALL {
            let decoded = LayerSet::from_bits(kind, honest | encoded(layer));
            assert_eq!(decoded.is_some(), kind.possible().has(layer), "{kind:?} {layer:?}");
        }
    }
    for layer in [Layer::PrivateView, Layer::ControlGroup, Layer::SameFiles, Layer::NetworkNone] {
        assert_eq!(LayerSet::from_bits(JailKind::Worker, encoded(layer)), None, "{layer:?}");
    }
    let landlock = LayerSet::NONE.with_landlock(1).to_bits();
    assert_eq!(LayerSet::from_bits(JailKind::Container, landlock), None);
}

#[test]
fn bits_of_another_build_are_rejected() {
    for kind in KINDS {
        for unknown in 32..LANDLOCK_SHIFT {
            assert_eq!(LayerSet::from_bits(kind, 1 << unknown), None, "bit {unknown}");
        }
    }
}

#[test]
fn missing_mandatory_layers_are_always_reported() {
    for kind in KINDS {
        assert!(kind.mandatory().missing(kind, LayerSet::NONE).is_empty());
        for layer in kind.mandatory().iter() {
            let mut others = kind.possible();
            others.remove(layer);
            assert_eq!(others.missing(kind, LayerSet::NONE).names(), [layer.name()]);
        }
    }
}

#[track_caller]
fn check_missing(kind: JailKind, in_force: LayerSet, required: LayerSet, expect: &[&str]) {
    assert_eq!(in_force.missing(kind, required).names(), expect);
}

#[test]
fn missing_layers_are_named() {
    let hardened = |kind: JailKind, expect| check_missing(kind, kind.mandatory(), kind.hardened(), expect);
    hardened(
        JailKind::Worker,
        &["unprivileged-ids", "network-namespace", "ipc-namespace", "mount-namespace", "landlock-1"],
    );
    hardened(
        JailKind::Command,
        &[
            "process-limit",
            "private-view",
            "pid-namespace",
            "network-namespace",
            "ipc-namespace",
            "landlock-1",
        ],
    );
    hardened(JailKind::Container, &["memory-limit", "process-limit", "cpu-limit"]);
    for kind in KINDS {
        check_missing(kind, kind.possible(), kind.hardened(), &[]);
    }
}

#[test]
fn older_landlock_is_missing() {
    let worker = JailKind::Worker;
    let old = worker.mandatory().with_landlock(3);
    check_missing(worker, old, LayerSet::NONE.with_landlock(4), &["landlock-4"]);
    check_missing(worker, old, LayerSet::NONE.with_landlock(3), &[]);
}

#[test]
fn layer_that_the_jail_cannot_have_is_missing() {
    let required = LayerSet::of(&[Layer::SameFiles]);
    check_missing(JailKind::Command, JailKind::Command.possible(), required, &["same-files"]);
}

#[test]
fn each_layer_has_its_own_name_and_bit() {
    let all: LayerSet = Layer::ALL.into_iter().collect();
    let mut names = all.names();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), all.to_bits()), (Layer::ALL.len(), u64::from(u32::MAX)));
    for layer in Layer::ALL {
        assert!(layer.description().ends_with('.'), "{layer:?}");
        assert!(KINDS.iter().any(|kind| kind.possible().has(layer)), "{layer:?}");
    }
    for kind in KINDS {
        assert!(kind.possible().missing(kind, kind.minimum()).is_empty(), "{kind:?}");
    }
}

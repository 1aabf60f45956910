//! List of reported denials: each once, with a maximum per kind. The rest is counted.

use std::mem;

use super::super::Refused;

/// The denials of one command.
#[derive(Debug, Default)]
pub(crate) struct List {
    listed: Listed,
    /// How many of them were reported immediately.
    told: usize,
}

#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Listed {
    pub(crate) kept: Vec<Refused>,
    /// Number of further denials.
    pub(crate) beyond: u64,
    /// How many of those were paths.
    pub(crate) paths_beyond: u64,
}

impl List {
    pub(crate) fn add(&mut self, refused: Refused) {
        let listed = &mut self.listed;
        if listed.kept.contains(&refused) {
            return;
        }
        if has_room_for(&listed.kept, &refused) {
            listed.kept.push(refused);
            return;
        }
        listed.beyond = listed.beyond.saturating_add(1);
        if matches!(refused, Refused::Path { .. }) {
            listed.paths_beyond = listed.paths_beyond.saturating_add(1);
        }
    }

    /// The denials added since the last call.
    pub(crate) fn news(&mut self) -> Vec<Refused> {
        let news = self.listed.kept.get(self.told..).unwrap_or_default().to_vec();
        self.told = self.listed.kept.len();
        news
    }

    pub(crate) fn take(&mut self) -> Listed {
        mem::take(&mut self.listed)
    }
}

/// Separate limits per kind, and per system call name, so a flood of one kind cannot hide others.
fn has_room_for(kept: &[Refused], refused: &Refused) -> bool {
    let kind = mem::discriminant(refused);
    let of_kind = || kept.iter().filter(|known| mem::discriminant(*known) == kind).count();
    match refused {
        Refused::Path { .. } => of_kind() < MOST_PATHS,
        Refused::Address { .. } => of_kind() < MOST_ADDRESSES,
        Refused::Syscall { name, .. } => {
            let is_same =
                |known: &&Refused| matches!(known, Refused::Syscall { name: known, .. } if known == name);
            of_kind() < MOST_CALLS && kept.iter().filter(is_same).count() < MOST_OF_ONE_CALL
        }
        Refused::LookUp => true,
    }
}

const MOST_PATHS: usize = 100;
const MOST_ADDRESSES: usize = 30;
const MOST_CALLS: usize = 30;
const MOST_OF_ONE_CALL: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Attempt;

    fn call(name: &str, number: usize) -> Refused {
        Refused::Syscall { name: name.to_owned(), detail: number.to_string() }
    }

    fn path(number: usize) -> Refused {
        Refused::Path { path: format!("/srv/{number}").into(), access: Attempt::Read }
    }

    fn address(number: usize) -> Refused {
        Refused::Address { address: format!("192.0.2.1:{number}") }
    }

    fn listed(all: impl IntoIterator<Item = Refused>) -> Listed {
        let mut list = List::default();
        all.into_iter().for_each(|one| list.add(one));
        list.take()
    }

    #[test]
    fn each_denial_is_listed_once() {
        let told = listed([path(1), Refused::LookUp, path(1), Refused::LookUp]);
        assert_eq!(told, Listed { kept: vec![path(1), Refused::LookUp], beyond: 0, paths_beyond: 0 });
    }

    #[test]
    fn flood_of_one_kind_does_not_hide_others() {
        let flood = (0..150).map(|number| call("ioctl", number));
        let told = listed(flood.chain([call("ptrace", 0), path(0), address(0), Refused::LookUp]));
        assert_eq!(told.kept.len(), 14);
        assert_eq!(told.kept.last(), Some(&Refused::LookUp));
        assert_eq!((told.beyond, told.paths_beyond), (140, 0));
        let names = (0..50).map(|number| call(&number.to_string(), 0));
        let told = listed(names.chain((0..130).map(path)).chain((0..50).map(address)));
        assert_eq!(told.kept.len(), 30 + 100 + 30);
        assert_eq!((told.beyond, told.paths_beyond), (20 + 30 + 20, 30));
    }

    #[test]
    fn news_are_returned_once() {
        let mut list = List::default();
        list.add(path(1));
        assert_eq!(list.news(), [path(1)]);
        list.add(path(2));
        list.add(path(1));
        assert_eq!(list.news(), [path(2)]);
        assert_eq!(list.news(), []);
        assert_eq!(list.take().kept, [path(1), path(2)]);
    }
}

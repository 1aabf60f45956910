//! What must hold of every command, in each kind of jail.

mod ends;
mod files;
mod hanging;
mod limits;
mod mounted;
mod prepared;
mod refusals;
mod running;
pub mod unseen;

use toolgate_sandbox::{CommandJail, CommandReport, Ending};

use crate::{
    attacks,
    driver::{Case, Tier, jail},
};

pub use ends::be_a_gateway;
pub use hanging::{be_a_hanger, take as hang_and_take};
pub use mounted::be_a_mounter;
pub use prepared::be_a_changer;

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for tier in [Tier::Namespaces, Tier::Landlock] {
        let mut add = |name: &str, body: fn(Tier)| {
            cases.push(Case {
                name: format!("{tier:?}/{name}").to_lowercase(),
                body: Box::new(move || body(tier)),
            });
        };
        add("true_and_false_end_as_they_should", running::exit_codes);
        add("echo_is_heard_and_no_shell_is_near", running::echo);
        add("the_environment_and_folder_are_exactly_those_given", running::environment);
        add("standard_input_is_fed", running::standard_input);
        add("a_bound_file_is_read_and_nothing_beside_it", files::bound_file);
        add("writing_needs_a_bind_for_writing", files::writing);
        add("what_is_hidden_stays_hidden", files::hidden);
        add("what_is_hidden_in_a_folder_of_the_system_stays_hidden", files::hidden_in_system);
        add("what_is_not_there_takes_no_folder_of_the_system_apart", files::absent_in_system);
        add("another_name_in_the_system_does_not_open_what_is_hidden", files::hard_links_in_system);
        add("another_name_of_a_hidden_file_is_hidden_too", files::hard_links);
        add("what_is_hidden_is_hidden_where_it_is_mounted_too", mounted::hidden);
        add("a_deadline_ends_it", running::deadline);
        add("too_much_output_ends_it", running::output_cap);
        add("too_much_complaint_is_cut", running::complaint_cap);
        add("nothing_outlives_the_command", ends::survivors);
        add("dropping_it_kills_it", ends::dropped);
        add("dropping_it_kills_it_without_its_supervisor", ends::stopped_supervisor);
        add("the_death_of_the_gateway_kills_it", ends::gateway_death);
        add("a_signal_is_told", running::signalled);
        add("few_descriptors_are_few", limits::few_descriptors);
        add("a_missing_program_is_told", running::missing_program);
        add("refused_calls_are_told", refusals::refused_calls);
        add("refused_paths_are_told", refusals::refused_paths);
        add("what_is_refused_by_other_ways_is_told", refusals::refused_by_other_ways);
        add("refused_questions_are_told", refusals::refused_questions);
        add("what_is_there_is_neither_made_nor_refused", refusals::made_where_something_is);
        add("a_flood_of_calls_hides_no_path", refusals::flood);
        add("refusals_of_a_dropped_command_are_told", refusals::refusals_of_a_dropped_command);
        add("memory_runs_out_for_one_and_for_all", limits::memory);
        add("memory_of_hidden_processes_is_counted", unseen::memory);
        add("what_hangs_holds_up_no_limit", hanging::limits);
        add("locks_are_counted", limits::locks);
        add("waiting_works", limits::waiting);
        add("for_want_of_memory_it_dies_first", limits::first_to_die);
        add("a_program_in_a_bind_runs_only_where_allowed", files::no_execution);
        add("common_programs_run", running::common_programs);
    }
    cases.extend(once());
    cases.extend(attacks::cases());
    cases
}

/// What depends on namespaces, or on no jail at all.
fn once() -> Vec<Case> {
    let case = |name: &str, body: fn()| Case { name: name.to_owned(), body: Box::new(body) };
    vec![
        case("the_temporary_folder_is_its_own_and_bounded", files::own_tmp),
        case("the_view_shows_nothing_else", files::view),
        case("an_opened_folder_is_bound_or_refused", files::opened_source),
        case("a_bind_through_a_link_is_refused", files::link_in_target),
        case("a_hidden_path_is_hidden_through_every_bind", files::hidden_twice),
        case("copies_keep_what_they_can", running::copies),
        case("a_fork_bomb_is_bounded", limits::fork_bomb),
        case("the_hosts_own_limit_of_processes_is_untouched", limits::host_untouched),
        case("without_namespaces_hardened_is_refused", refusals::too_weak),
        case("jails_that_make_no_sense_are_refused", refusals::nonsense),
        case("a_dead_jailer_is_replaced", ends::dead_jailer),
        case("every_command_has_new_namespaces", prepared::new_namespaces),
        case("a_prepared_jail_is_used_once", prepared::used_once),
        case("prepared_jails_are_refilled_within_bounds", prepared::refilled_within_bounds),
        case("prepared_jails_end_with_the_jailer", prepared::gone_with_the_jailer),
        case("prepared_jails_end_with_the_gateway", prepared::gone_with_the_gateway),
        case("stale_prepared_jails_are_not_used", prepared::stale_ones_are_not_used),
        case("the_proxy_is_all_of_the_network", crate::network::proxied),
    ]
}

fn shell(tier: Tier, script: &str) -> CommandJail {
    jail(tier, "/bin/sh", &["-c", script])
}

#[track_caller]
fn text(report: &CommandReport) -> &str {
    std::str::from_utf8(&report.stdout).unwrap()
}

#[track_caller]
fn ended(report: &CommandReport, code: u8) {
    let errors = String::from_utf8_lossy(&report.stderr);
    assert_eq!(report.ending, Ending::Exited(code), "{errors} {:?}", report.refused);
}

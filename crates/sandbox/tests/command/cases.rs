//! Requirements for every command, in each kind of jail.

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
        add("exit_codes_of_true_and_false_are_reported", running::exit_codes);
        add("echo_output_is_captured_without_a_shell", running::echo);
        add("environment_and_directory_are_exactly_as_given", running::environment);
        add("standard_input_is_passed", running::standard_input);
        add("bound_file_is_readable_and_its_neighbours_are_not", files::bound_file);
        add("writing_needs_a_bind_for_writing", files::writing);
        add("hidden_paths_stay_hidden", files::hidden);
        add("hidden_paths_in_system_directories_stay_hidden", files::hidden_in_system);
        add("missing_hidden_paths_do_not_split_system_directories", files::absent_in_system);
        add("system_hard_link_does_not_open_a_hidden_file", files::hard_links_in_system);
        add("hard_link_of_a_hidden_file_is_hidden", files::hard_links);
        add("hidden_paths_are_hidden_at_other_mounts", mounted::hidden);
        add("deadline_kills_the_command", running::deadline);
        add("excessive_output_kills_the_command", running::output_cap);
        add("excessive_stderr_is_truncated", running::complaint_cap);
        add("nothing_outlives_the_command", ends::survivors);
        add("dropping_the_command_kills_it", ends::dropped);
        add("dropping_the_command_kills_it_without_its_supervisor", ends::stopped_supervisor);
        add("gateway_death_kills_the_command", ends::gateway_death);
        add("signals_are_reported", running::signalled);
        add("descriptor_limit_is_enforced", limits::few_descriptors);
        add("missing_program_is_reported", running::missing_program);
        add("denied_calls_are_reported", refusals::refused_calls);
        add("denied_paths_are_reported", refusals::refused_paths);
        add("indirect_denials_are_reported", refusals::refused_by_other_ways);
        add("denied_queries_are_reported", refusals::refused_questions);
        add("creating_an_existing_file_is_not_a_denial", refusals::made_where_something_is);
        add("flood_of_calls_does_not_hide_paths", refusals::flood);
        add("denials_of_a_dropped_command_are_reported", refusals::refusals_of_a_dropped_command);
        add("memory_limit_holds_for_one_and_all_processes", limits::memory);
        add("memory_of_hidden_processes_is_counted", unseen::memory);
        add("hanging_file_system_does_not_delay_limits", hanging::limits);
        add("locks_are_counted", limits::locks);
        add("epoll_works", limits::waiting);
        add("command_is_the_first_oom_victim", limits::first_to_die);
        add("program_in_a_bind_runs_only_if_allowed", files::no_execution);
        add("common_programs_run", running::common_programs);
    }
    cases.extend(once());
    cases.extend(attacks::cases());
    cases
}

/// Cases that depend on namespaces, or on no jail at all.
fn once() -> Vec<Case> {
    let case = |name: &str, body: fn()| Case { name: name.to_owned(), body: Box::new(body) };
    vec![
        case("tmp_is_private_and_bounded", files::own_tmp),
        case("view_shows_nothing_else", files::view),
        case("opened_directory_is_bound_or_rejected", files::opened_source),
        case("bind_through_a_symlink_is_rejected", files::link_in_target),
        case("hidden_path_is_hidden_in_every_bind", files::hidden_twice),
        case("copies_keep_modes_and_times", running::copies),
        case("fork_bomb_is_bounded", limits::fork_bomb),
        case("process_limit_of_the_host_is_unchanged", limits::host_untouched),
        case("hardened_requires_namespaces", refusals::too_weak),
        case("invalid_jails_are_rejected", refusals::nonsense),
        case("dead_jailer_is_replaced", ends::dead_jailer),
        case("every_command_has_new_namespaces", prepared::new_namespaces),
        case("prepared_jail_is_used_once", prepared::used_once),
        case("prepared_jails_are_refilled_within_bounds", prepared::refilled_within_bounds),
        case("prepared_jails_end_with_the_jailer", prepared::ends_with_the_jailer),
        case("prepared_jails_end_with_the_gateway", prepared::ends_with_the_gateway),
        case("stale_prepared_jails_are_not_used", prepared::stale_jails_are_not_used),
        case("only_the_proxy_is_reachable", crate::network::proxied),
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

# SPDX-License-Identifier: Apache-2.0
"""What make test runs of the tests of the kernel side and from end to end; make test-all runs all.

A test is in make test unless it is named here. One that is there for many Pythons runs on one of SOME, chosen by its name,
so that each of these has its share of the tests: what tells the others from these, to pybpf, are offsets and how they were
built. Tests of EACH_VERSION show the former, tests of EACH_BUILD the latter.
"""
import fnmatch
import zlib

import pythons

# Frames that a struct of C's leads to, and those of the thread state; with the free-threaded one, all that is new.
SOME = [(3, 12), pythons.NEWEST]
# As rows have it in their names.
NEWEST = "%d.%d" % pythons.NEWEST

# A name, or a name and parameters as fnmatch takes them.
EACH_VERSION = [
    "test_async::test_a_task_that_several_await",
    "test_dump::test_threads_that_stand",
    "test_dump_async::test_the_tree_of_older_pythons",
    "test_dump_deadlocks::test_who_has_the_lock",
    "test_dump_locals::test_values_are_those_of_repr",
    "test_dump_native::test_each_run_of_the_loop_has_its_functions",
    "test_dump_native::test_threads_that_sleep_are_not_stopped",
    "test_dump_subinterpreters::test_a_thread_has_no_functions_of_another_one",
    "test_every_instruction::test_coroutines",
    "test_every_instruction::test_ways_into_a_function",
    "test_lines::test_lines *-dis",
    "test_native::test_chains_that_are_known",
    "test_native_agrees::test_stopped_at_any_instruction",
    "test_native_agrees::test_threads_that_have_slept_since_before_the_run",
    "test_stacks::test_stacks *-calls",
    "test_states::test_exception_mode_keeps_handlers",
    "test_wall::test_the_gil_is_told_from_a_lock",
    "test_truth::test_stacks_are_possible",
    "test_walk_agrees::test_same_frames",
]
# Stripped copies, too.
EACH_BUILD = [
    "test_stacks::test_stacks *-calls",
    "test_young::test_a_loader_at_work_is_waited_for",
]

# Their verdict depends on clocks: they run when no other test does, in make test with the GIL only. make test-all runs them
# ten times beside two busy loops as well.
TIMED = [
    "test_async::test_waits_of_tasks",
    "test_collected::test_times_are_bounded",
    "test_gil::test_a_gil_that_is_found_without_its_symbol",
    "test_gil::test_a_sleep_with_the_gil_is_counted_and_measured",
    "test_gil::test_a_wait_counts_once",
    "test_gil::test_the_right_holder_has_the_wait",
    "test_gil::test_waits_are_as_long_as_the_programs_own_clock_says",
    "test_growth",
    "test_thread_times",
    "test_top::test_change_is_told_only_beyond_chance",
    "test_top::test_shares_of_a_known_program",
    "test_top::test_threads_and_what_they_wait_for",
    "test_top::test_threads_have_their_states",
    "test_wakers::test_the_waker_is_the_thread_that_did_it",
    "test_wall::test_an_exec_by_another_thread",
    "test_wall::test_waits_are_as_long_as_the_program_measures",
    "test_wall_times",
    "test_wall_truth",
    "test_windows",
]

# Only in make test-all, but for the parameters that are named.
THOROUGH = {
    # The whole of something, of which others show a part.
    "test_bench": None,
    "test_debuginfod::test_debuginfod": None,
    "test_dist": None,
    "test_dist_arm64": None,
    "test_dist_image": None,
    "test_databases::test_functions_of_a_service_over_a_day": None,
    "test_databases::test_parquet": None,
    "test_databases::test_the_share_of_each_service_by_hour": None,
    "test_databases::test_threads_of_a_container": None,
    "test_databases::test_two_versions_of_a_service": None,
    "test_databases::test_what_a_service_waits_for": None,
    "test_docker_podman": None,
    "test_engines": None,
    "test_readers_desktop": None,
    "test_readers_firefox": None,
    "test_readers_flamegraphs": None,
    "test_readers_pages": None,
    "test_otlp_collector": None,
    "test_agent_modes::test_one_keeper_is_killed": None,
    "test_agent_modes::test_receivers_get_all_modes": None,
    "test_agent_modes::test_services_that_come_and_go": None,
    "test_agent_modes::test_the_command_line_replaces_the_modes_of_the_file": None,
    "test_agent_serve::test_go_tool_pprof": None,
    "test_agent_serve::test_promtool": None,
    "test_agent_serve::test_the_memory_limit_is_of_one_epoch": None,
    "test_serve::test_a_request_without_an_answer_ends": None,
    "test_serve::test_addresses": ["[[]*"],
    "test_serve::test_garbage": None,
    "test_serve::test_go_tool_pprof": None,
    "test_serve::test_memory_is_flat": None,
    "test_serve::test_prometheus": None,
    "test_serve::test_promtool": None,
    "test_soak": None,
    "test_static_network::test_a_folder_of_authorities": None,
    "test_static_network::test_authorities_where_distributions_have_them": None,
    "test_static_network::test_the_option_is_in_place_of_all_others": None,
    "test_systemd": None,
    "test_targets": None,
    "test_dump_schema::test_what_it_does_not_allow": None,
    "test_fast_agent::test_an_agent_stays_as_it_is": ["200"],
    "test_formats_timeline::test_speedscope_shows_gaps": None,
    "test_native_places::test_firefox_profiler_symbolizes": None,
    "test_native_places::test_lines_of_a_file_that_dwz_made_small": None,
    "test_native::test_chains_that_are_known": ["*2.7*", "*3.11*", "*3.12*", f"*{NEWEST}*", "built*"],
    "test_native::test_as_py_spy_has_it": None,
    "test_native_agrees::test_100_000_stacks": None,
    "test_native_agrees::test_stacks_of_a_library": None,
    "test_native_agrees::test_stopped_at_any_instruction": ["*3.6*", "*3.12*", "*musl", f"*{NEWEST}"],
    "test_native_agrees::test_threads_that_have_slept_since_before_the_run": ["*2.7*", "*3.10*", "*3.14", f"*{NEWEST}*", "built*t"],
    "test_native_bindings": None,
    "test_native_libraries": None,
    "test_native_calls::test_calls_are_possible": ["*3.12*-greenlets", f"*{NEWEST}*-objects"],
    "test_native_fibers::test_fibers": ["makecontext", "as libco"],
    "test_native_greenlets::test_stacks_are_whole": ["*3.12*"],
    "test_native_made::test_cpythons_own_jit": [f"*{NEWEST}*"],
    "test_native_made::test_code_that_changes_in_its_place": None,
    "test_native_made::test_code_that_is_replaced": None,
    "test_native_made::test_names_are_the_users_own": ["another user's"],
    "test_native_made::test_numba": None,
    "test_native_made::test_wasmtime": None,
    "test_native_made::test_trampolines_for_perf": ["*3.12*"],
    "test_native_perf": None,
    "test_native_unusual::test_aligned_stacks_are_whole": ["-O2 -mstackrealign"],
    "test_native_unusual::test_nothing_is_false_without_information": ["-O2"],
    "test_readers_pstats::test_snakeviz": None,
    "test_readers_pstats::test_tuna": None,
    "test_threads_without_python::test_valgrind_is_told": None,
    "test_top_view::test_arrows": ["LC_ALL=C-*"],
    "test_wall_formats::test_firefox_profiler_has_time_and_markers": None,
    "test_children::test_started_and_running": ["tini", "bwrap"],
    "test_children::test_without_children_the_pythons_are_named": ["bwrap"],
    "test_containers::test_container_that_starts_and_ends_during_the_run": ["words0"],
    "test_containers::test_control_groups_of_other_runtimes": None,
    "test_all::test_choice": ["--all", "--all --exclude-comm alph[?]", "--all --comm beta", "--all --user nobody", "*-p*{second}*", "*--exclude-pid*"],
    "test_all::test_every_version_at_once": None,
    "test_cli::test_crowd_costs_no_more_than_one": None,
    "test_cli::test_rate": ["-r"],
    "test_counting::test_changes_of_memory_that_were_not_sent_are_counted": None,
    "test_counting::test_full_table": ["64"],
    "test_counting::test_new_deep_stacks_at_every_sample": ["*-8000"],
    "test_dump_async::test_the_tree_of_older_pythons": ["[[]]-*", "*pyenv-3.12*"],
    "test_dump_deadlocks::test_who_has_the_lock": ["running-*", "*pyenv-3.12*", f"*python{NEWEST}", "*built*t"],
    "test_dump_locals::test_no_value_is_that_of_another_variable": ["texts*", "numbers*", "naps*"],
    "test_dump_native::test_each_run_of_the_loop_has_its_functions": ["*2.7*", "*3.12*", "*musl", f"*{NEWEST}"],
    "test_dump_native::test_threads_that_sleep_are_not_stopped": ["*3.12*", f"*{NEWEST}"],
    "test_dump_native_memory": ["locals"],
    "test_dump_subinterpreters::test_a_thread_has_no_functions_of_another_one": ["running-*", "*pyenv-3.12*", f"*python{NEWEST}"],
    "test_embedded::test_interpreter_that_starts_again": ["3.13"],
    "test_epochs::test_every_sample_is_in_one_part": ["*--0", "*bpf_loop-3"],
    "test_every_instruction::test_ways_into_a_function": ["*2.7*", "*3.11*", f"sid-python{NEWEST}", "built*t"],
    "test_formats_timeline::test_chrometrace_in_firefox_and_speedscope": None,
    "test_formats_timeline::test_empty": None,
    "test_formats_timeline::test_hostile_names": None,
    "test_terminal_text::test_no_python": ["a*"],
    "test_terminal_text::test_all": ["controls"],
    "test_terminal_text::test_run": ["controls"],
    "test_terminal_text::test_report": ["controls-folded", "directions-text"],
    "test_terminal_text::test_names_of_functions": ["controls-wall"],
    "test_thread_names::test_threads_have_the_names_that_python_knows": ["pyenv-3.12*", "built*t"],
    "test_wall::test_the_gil_is_told_from_a_lock": ["*2.7*", "*3.6*", "*3.9*", "*3.11*", "*3.12*", f"*{NEWEST}*", "built*t*"],
    "test_truth::test_stacks_are_possible": [
        *["pyenv-3.12*-" + one for one in "callbacks deep exceptions generators greenlets made released threads".split()],
        *["sid-python3.14-" + one for one in "interpreters replaced same_address threads_made".split()],
    ],
    "test_hostile::test_dump": ["*all*"],
    "test_hostile::test_lie": ["3.14-" + one for one in ("cycles", "wild", "lengths", "churn", "costly")],
    "test_hostile::test_all_lies": ["3.8", "3.14"],
    "test_hostile::test_debug_offsets_are_refused": ["cut", "half free-threaded"],
    "test_hostile::test_one_debug_offset_is_wrong": ["31", "59", "87"],
    # Awaiters are read otherwise from 3.14 on.
    "test_async::test_a_task_that_several_await": ["*3.12*", f"*{NEWEST}"],
    "test_async::test_asyncio_that_is_imported_late": ["pyenv-3.12*"],
    "test_async::test_no_task_where_there_is_none": ["pyenv-3.12*", "sid*"],
    "test_command::test_from_the_first_instruction_to_the_end": ["pyenv-3.12*"],
    "test_runtimes::test_a_copy_by_fork": ["*2.7*"],
    "test_runtimes::test_a_thread_for_each": ["2.7*"],
    "test_runtimes::test_each_calls_the_other": ["*3.14*"],
    "test_runtimes::test_one_calls_the_other": ["2.7*-nested", "*3.14*-released"],
    "test_runtimes::test_one_that_comes_later": ["2.7*"],
    "test_runtimes::test_one_thread_by_turns": ["*3.14*"],
    "test_badinput::test_hostile_target": ["*3.12*-table", "*3.12*-unaligned", f"*{NEWEST}*-cycle", f"*{NEWEST}*-code"],
    "test_dead_helpers": ["9", "*-9", "*-9-*"],
    "test_formats_timeline::test_without_times": ["chrometrace"],
    "test_load::test_new_stacks_keep_coming": ["-*", "bpf_loop,*"],
    "test_load::test_true_stacks": ["-*", "bpf_loop,*"],
    "test_load::test_recursion": ["7000--*", "7000-bpf_loop,*"],
    "test_load::test_a_thread_that_begins_later": ["", "bpf_loop,*"],
    "test_load::test_threads_that_are_met_before_they_are_known": ["bpf_loop,*"],
    "test_kernel_frames::test_a_list_that_is_none_does_no_harm": ["", "zz*"],
    "test_idle_places::test_pools_and_loops_wait_for_work": ["*executor", "*server", "*loop"],
    "test_memory::test_formats_say_bytes": ["text", "json"],
    "test_native::test_a_library_whose_information_is_damaged": ["0"],
    "test_output_failures::test_closed_streams_are_no_place_for_files": [">&-", "<&- >&- 2>&-"],
    "test_output_failures::test_killed_at_random_points": None,
    "test_output_failures::test_signals_at_random_points": None,
    "test_output_file::test_swapped_link": ["True"],
    "test_rights::test_terminals_that_a_user_describes": ["TERMINFO"],
    "test_rights::test_two_capabilities_do_not_do": ["own-bpf+perfmon"],
    "test_source_text::test_replaced": ["*-other-*"],
    "test_source_text::test_replaced_before_the_clock_was_set": ["other-*"],
    "test_states::test_exception_mode_keeps_handlers": ["*3.8*", "*3.11*", f"*{NEWEST}*", "built*t"],
    "test_time_namespace::test_processes_are_found": ["boottime+100000-one", "monotonic*-all"],
    "test_time_namespace::test_samples_have_their_time": ["boottime+100000"],
    "test_wall_times::test_sleeps_are_not_time_on_a_cpu": ["0"],
    "test_young::test_a_contradiction_that_lasts_is_a_refusal": ["1"],
    "test_young::test_a_loader_at_work_is_waited_for": ["pyenv*", "sid*", "built*", "*shared2.7", "*shared3.8", "*shared3.11", "*shared3.13"],
    # With many threads, processes or files.
    "test_churn::test_pid_used_again": None,
    "test_churn::test_multiprocessing": ["fork-version0"],
    "test_churn::test_fork_storm": ["*-10"],
    "test_churn::test_idle_and_busy": None,
    "test_churn::test_scripts_by_the_hundred": None,
    "test_ps::test_five_hundred_processes": None,
    "test_growth": None,
    "test_threads::test_many_threads": ["1", "100"],
    "test_many_threads::test_every_sleeper_has_its_stack_or_is_counted": None,
    "test_collected::test_times_are_bounded": None,
    "test_dump_server": None,
    "test_helpers::test_a_mapped_file_whose_server_does_not_answer": None,
    "test_losses::test_losses_of_others": None,
    "test_losses::test_losses_that_concern_nobody": None,
    "test_losses::test_nothing_is_lost": ["--all-forks*"],
    "test_losses::test_what_was_lost_is_found": ["maps*"],
    "test_async_all::test_thousands_of_tasks": None,
    "test_async_block::test_none_is_lost_before_one_that_computes": None,
    "test_out_of_memory::test_run": None,
    "test_out_of_memory::test_diff": ["*text*"],
    "test_out_of_memory::test_report_of_compiled_code": None,
    "test_out_of_memory::test_report": ["folded-long", "html-rich"],
    "test_helpers::test_a_path_that_the_program_could_not_read": ["groups1*", "groups2*"],
    "test_helpers::test_a_program_whose_text_it_can_read": ["its own*", "another group's*", "another user's*"],
    "test_helpers::test_helpers_that_are_killed": ["*0"],
    "test_html_cases::test_fits_its_window_in_both_themes": ["dark-390-844"],
    "test_lines::test_lines": ["pyenv-2.7*", "pyenv-3.9*", "pyenv-3.10*", "pyenv-3.12*", f"sid-*{NEWEST}-*", "built*t-*"],
    "test_many_threads::test_run_ends_in_time_in_every_mode": ["*wall --idle*"],
    "test_many_threads::test_signal_ends_the_run": ["0.3"],
    "test_many_threads::test_strangers_threads_delay_nobody_else": None,
    "test_many_threads::test_what_was_not_read_in_time_is_told": None,
    "test_many_threads::test_processes_with_many_threads_do_not_hinder_each_other": None,
    "test_threads_without_python::test_many_native_threads_leave_room": None,
    "test_top::test_a_long_interval_loses_nothing": None,
    "test_windows::test_a_run": ["wall"],
    "test_windows::test_epochs": ["wall-fixed"],
    "test_young::test_one_that_ends_after_the_refusal": None,
    "test_wall::test_five_hundred_threads_that_are_switched_while_they_are_found": None,
    "test_young::test_none_is_lost_beside_a_load": None,
    # Slow to build or to draw.
    "test_hardening::test_folder": None,
    "test_diff::test_same_work_on_both_sides": None,
    "test_html_access": None,
    "test_html_cases": ["*dark*"],
    "test_html_waits::test_no_words_of_a_histogram_overlap": ["400"],
    "test_html_words::test_their_own_words": ["faults"],
    "test_wall_formats::test_the_report_has_colours_and_columns_of_states": ["*dark*"],
    "test_unknown_lines::test_nuitka": None,
    # That need the machine for themselves.
    "test_gil::test_waits_are_as_long_as_the_programs_own_clock_says": ["*8 threads"],
    "test_thread_times::test_a_thread_alone_has_none_that_ended": ["cpu"],
    "test_thread_times::test_cpu_time_that_samples_do_not_stand_for_is_told": ["50"],
    "test_top::test_change_is_told_only_beyond_chance": None,
    "test_top::test_threads_have_their_states": None,
    "test_wall_times::test_details_and_names_are_left_out_as_elsewhere": None,
    "test_wall_times::test_no_times_on_request": None,
    "test_wall_times::test_the_report_draws_strips_and_a_range_cuts_every_view": None,
    "test_wall_truth::test_each_of_500_threads_has_the_time_of_its_own_clock": None,
    "test_threads_without_python::test_numpy": ["pyenv-3.12*"],
    "test_dump_locals::test_numpy_and_pandas": ["pyenv-3.8*numpy*", "pyenv-3.12*"],
}


def is_named(patterns, name, parameters):
    return any(name == pattern or fnmatch.fnmatch(name + " " + parameters, pattern) for pattern in patterns)


def is_timed(name):
    return name in TIMED or name.partition("::")[0] in TIMED


def kept_of(name, group):
    """The rows of a test that THOROUGH does not leave to make test-all."""
    patterns = THOROUGH.get(name, THOROUGH.get(name.partition("::")[0], ["*"]))
    if patterns is None:
        return []
    # A machine may have none of these Pythons: then the first there is.
    return [row for row in group if any(fnmatch.fnmatch(row[2], pattern) for pattern in patterns)] or group[:1]


def is_release(python):
    return python.kind in ("shared", "static") and "musl" not in python.name


def first_of_each(found, key):
    chosen = {}
    for python in found:
        chosen.setdefault(key(python), python)
    return set(chosen.values())


def versions():
    """One release build of each version, and the first free-threaded, debug and musl one."""
    found = pythons.interpreters()
    chosen = first_of_each([python for python in found if is_release(python)], lambda python: python.version)
    for kind in ("free-threaded", "debug"):
        chosen |= set([python for python in found if python.kind == kind][-1:])
    return chosen | {python for python in found if "musl" in python.name}


def releases(wanted):
    return {python for python in versions() if is_release(python) and python.version in wanted}


def some():
    """A release build of each version of SOME, and the free-threaded one."""
    return releases(SOME) | {python for python in versions() if python.kind == "free-threaded"}


def chosen(words):
    """The Pythons that a person names: 3.12 (release builds), 3.13t, or the name that tests have for one, as fnmatch takes it."""
    found = set()
    for word in words.split():
        number, free = word.rstrip("t"), word.endswith("t")
        some = {
            python
            for python in pythons.interpreters()
            if fnmatch.fnmatch(python.name, word)
            or ("%d.%d" % python.version == number and (python.kind == "free-threaded" if free else is_release(python)))
        }
        if not some:
            raise ValueError('there is no Python "%s" here; there are %s' % (word, names(pythons.interpreters())))
        found |= some
    return found


def names(found):
    return " ".join(python.name for python in found)


def used(tier, words):
    """The names of the Pythons that some test may run on."""
    wanted = set(pythons.interpreters())
    if words:
        wanted = chosen(words)
    elif tier == "gate":
        wanted = versions() | {python for python in wanted if python.kind == "stripped"}
    return names(python for python in pythons.interpreters() if python in wanted)


def one_of_each(name, rows):
    """Chooses one of rows that differ in their Pythons only, by the test's name: the same with any other tests beside it."""
    groups = {}
    for row in rows:
        parameters = row[2]
        for python in row[3]:
            parameters = parameters.replace(python.name, "*", 1)
        groups.setdefault(parameters, []).append(row)
    return [group[zlib.crc32((name + parameters).encode()) % len(group)] for parameters, group in groups.items()]


def gate(rows):
    """rows: (id, test_file::test, parameters, interpreters). The ids that make test runs."""
    of_some, of_versions, of_timed = some(), versions(), releases(SOME)
    kept, groups = set(), {}
    for row in rows:
        groups.setdefault(row[1], []).append(row)
    for name, group in groups.items():
        group = kept_of(name, group)
        these, alike = [], []
        for row in group:
            each_build, each_version = (is_named(patterns, name, row[2]) for patterns in (EACH_BUILD, EACH_VERSION))
            allowed = of_versions if each_version else of_timed if is_timed(name) else of_some
            if all(python in allowed or (each_build and python.kind == "stripped") for python in row[3]):
                (these if each_build or each_version else alike).append(row)
        these += one_of_each(name, alike)
        if group and not these:
            # Not lost: it is a test of other versions alone, and runs on the newest of them.
            newest = max((one for row in group for one in row[3]), key=lambda one: (one.kind != "stripped", one.version))
            these = [row for row in group if newest in row[3]]
        kept |= {row[0] for row in these}
    return kept

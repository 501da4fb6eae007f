# SPDX-License-Identifier: Apache-2.0
"""
What make test-all runs a second time, with build/pybpf-san: of each room of user/ the way it is used most, and foreign bytes
that were made to harm. Left out are tests that count memory, samples or time, of which the sanitizers take much, those that
take resources away (allocations, address space, system calls), of which ASan needs more than pybpf, and those that drop
rights, since an unprivileged user's ASan cannot look for leaks.
"""

TESTS = {
    "all": "every_version_at_once choice same_program_under_one_root table_of_processes",
    "badinput": "not_python pypy_is_refused_by_name too_old zombie",
    "children": "started_and_running",
    "cli": "threads_names_and_ids full_filenames json_stats help_begins_with_examples",
    "collected": "times_of_processes_that_end facts source_as_it_ran",
    "command": "exit_code signals_are_passed_on command_not_found",
    "containers": "containers_are_told_apart a_file_that_is_gone_or_harmful",
    "diff": "what_grew_is_named_and_nothing_else by_line html_has_what_was_compared truncated",
    "doctor": "doctor_says_what_the_host_offers",
    "dump": "threads_that_stand text_reads_as_a_traceback stopped_and_frozen bad_input",
    "dump_async": "the_tree_is_that_of_asyncio_itself cycles_are_named tasks_that_come_and_go",
    "dump_core": "truncated no_python deadlocks a_crash_tells_its_address_and_its_variables",
    "dump_deadlocks": "a_mutex_and_the_gil text_says_what_the_circle_is threads_that_go_on_are_no_deadlock",
    "dump_locals": "values_are_those_of_repr values_that_change_all_the_time what_cannot_be_read_says_so",
    "dump_native": "what_runs_is_whole_or_says_so reversed_is_the_same_from_its_end",
    "dump_freeze": "signals_arrive_as_often_as_they_were_sent what_a_signal_had_stopped_stays_stopped one_that_is_traced_already",
    "dump_watch": "text watching_goes_on_until_it_is_interrupted",
    "formats_text": "callgrind_with_names_made_to_harm json_with_names_made_to_harm text",
    "limits": "process_table_is_full",
    "ps": "every_version_at_once table what_is_not_supported_is_listed_with_the_reason deleted_interpreter",
    "report": "as_saved_again two_are_added_up anonymized_in_every_format",
    "report_refused": "empty_profile_in_every_format no_saved_profile",
    "runtimes": "a_thread_for_each one_that_comes_later",
    "terminal_text": "run no_python",
    "top": "a_signal_ends_it_with_a_last_line a_process_that_ends",
    "top_view": "keys flame_graph source_with_the_time_of_each_line",
    "wall": "threads_that_sleep_throughout_are_left_out_and_named more_peers_than_names_keep_their_state",
    "young": "an_address_read_from_code_is_confirmed",
}


# Foreign bytes, and the ways of each command: what make test has; make test-all has all.
SHORT = "badinput cli dump dump_async dump_core dump_deadlocks dump_locals dump_native formats_text ps report report_refused runtimes wall".split()


def names(short=False):
    """As pytest takes them, in the project's folder."""
    return [
        "tests/e2e/test_%s.py::test_%s" % (file, test)
        for file, tests in TESTS.items()
        for test in tests.split()
        if not short or file in SHORT
    ]

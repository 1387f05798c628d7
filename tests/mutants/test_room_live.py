"""Mutants of what a process does around the table of a room: each breaks one rule, and a test with processes fails."""

from __future__ import annotations

from tests.mutants.copies import (  # noqa: F401 (the tests of this table)
    HANGS,
    Mutant,
    test_each_mutant_can_be_made,
    test_each_mutant_is_noticed,
    test_each_test_passes_without_a_mutant,
)

NAMES = ("deaths", "ends", "requests", "aio", "loops", "locks", "clocks", "closing", "api", "unusable", "older")
DEATHS, ENDS, REQUESTS, AIO, LOOPS, LOCKS, CLOCKS, CLOSING, API, UNUSABLE, OLDER = (
    f"room/test_{name}.py::test_" for name in NAMES
)
MUTANTS = {
    # Changes.
    "DIRTY is ignored": Mutant(
        "room/changes.py",
        "            if m[DIRTY] or m[KEPT] or m[STOP] or",
        "            if m[KEPT] or m[STOP] or",
        f"{DEATHS}a_process_that_dies_in_the_middle_of_a_change_is_repaired",
    ),
    "a grant is not rung": Mutant(
        "room/changes.py",
        "        for owner, ticket in told:\n            self.ring(owner, ticket)\n",
        "",
        f"{ENDS}a_change_that_is_refused_wakes_those_whom_it_let_in",
    ),
    "zeros are taken for a grant": Mutant(
        "room/changes.py",
        "            file.check_whole()\n",
        "",
        "room/test_damage.py::test_zeros_in_the_middle_of_a_change_are_not_believed",
    ),
    "a failed change wakes nobody": Mutant(
        "room/changes.py",
        "                self.tell(self.undone(change))\n",
        "                pass\n",
        f"{ENDS}a_change_that_is_refused_wakes_those_whom_it_let_in",
    ),
    "a failed change keeps its request": Mutant(
        "room/changes.py",
        "            rules.withdraw(self.file.m, change)\n            return",
        "            return",
        f"{ENDS}a_change_that_fails_takes_its_request_back",
    ),
    "a repeated change makes two requests": Mutant(
        "room/changes.py",
        "        rules.withdraw(self.file.m, change)  # the first attempt may have made a request\n",
        "",
        f"{ENDS}a_change_that_is_repeated_makes_one_request",
    ),
    "an interrupted change is not repaired": Mutant(
        "room/changes.py",
        "            if self.file.m[DIRTY]:\n                self.file.rebuild(change)\n",
        "",
        f"{ENDS}a_change_that_is_interrupted_leaves_a_whole_table",
    ),
    "a signal handler waits for its own thread": Mutant(
        "room/calls.py",
        "            if self.changing:\n                self.refuse()\n"
        "            self.changing = True\n            try:\n                result = self.change_alone",
        "            self.changing = True\n            try:\n                result = self.change_alone",
        f"{ENDS}a_signal_handler_cannot_acquire_in_the_middle_of_a_change",
    ),
    "what a signal handler has asked for is forgotten": Mutant(
        "room/calls.py",
        "at any call\n                self.changing = False\n                if self.postponed:\n",
        "at any call\n                self.changing = False\n                if False:\n",
        f"{ENDS}a_signal_handler_releases_in_the_middle_of_a_change",
    ),
    "a stopped process keeps the lock": Mutant(
        "room/file.py",
        "            os.kill(pid, signal.SIGCONT)\n",
        "            pass\n",
        f"{DEATHS}a_process_that_is_stopped_with_the_lock_is_continued",
    ),
    "a continued process does not stop again": Mutant(
        "room/file.py",
        "            os.kill(self.pid, signal.SIGSTOP)\n",
        "            pass\n",
        f"{DEATHS}a_process_that_is_stopped_with_the_lock_is_continued",
        HANGS,
    ),
    "all who wait for the lock look at once who has it": Mutant(
        "room/file.py",
        "                return NOT_LOOKED\n",
        "                pass\n",
        f"{LOCKS}waiters_take_turns_to_look_who_has_the_lock",
    ),
    "a slow owner of the lock counts as stuck": Mutant(
        "room/file.py",
        "        else:\n            return None\n        return GateStuck",
        "        else:\n            whom = 'x'\n        return GateStuck",
        f"{LOCKS}a_slow_owner_of_the_lock_is_not_stuck",
    ),
    "openings do not count as turns": Mutant(
        "room/file.py",
        "                self.m[TURNS] = (self.m[TURNS] + 1) % LIMIT\n",
        "",
        f"{LOCKS}every_turn_counts",
    ),
    "an empty file of another program becomes a gate": Mutant(
        "room/file.py",
        "            if not found.st_mode & STICKY:\n",
        "            if False:\n",
        "room/test_unusable.py::test_an_empty_file_is_refused_and_not_changed",
    ),
    # Closing.
    "gates are opened while their peer closes": Mutant(
        "room/tasks.py",
        "                self.closed = True  # other tasks run while its gates are closed\n",
        "                pass\n",
        f"{API}no_gate_is_opened_while_the_peer_is_closing",
    ),
    "a room that another thread closes is used": Mutant(
        "room/peer.py",
        "    except OSError:\n        return False\n",
        "    except ZeroDivisionError:\n        return False\n",
        f"{API}a_gate_that_is_closed_at_the_same_moment_is_opened_again",
    ),
    "two threads close the files of one room": Mutant(
        "room/room.py",
        "        if self.is_closed():\n            return\n        busy",
        "        busy",
        f"{API}a_gate_and_its_peer_can_be_closed_at_the_same_moment",
    ),
    # Time namespaces.
    "all time namespaces have one clock": Mutant(
        "room/system.py",
        "    offset = clock_offset(process)\n",
        "    offset = 0\n",
        f"{CLOCKS}a_gate_in_use_with_another_clock_is_refused",
    ),
    "offsets are those of the children": Mutant(
        "room/system.py",
        "    if own == INITIAL_TIME:\n        return 0\n",
        "",
        f"{CLOCKS}a_process_keeps_its_clock_when_only_its_children_get_another_one",
    ),
    "what was left inside is not looked for in another time namespace": Mutant(
        "room/senses.py",
        "        if system.is_this_boot(m[BOOT]):\n",
        "        if False:\n",
        f"{CLOCKS}what_a_killed_process_has_left_inside_counts",
    ),
    "a table that is started again forgets a kept slot": Mutant(
        "room/file.py",
        "        self.end_kept(self.m)\n",
        "",
        f"{CLOCKS}a_table_that_is_started_again_counts_the_entries_of_a_kept_slot",
    ),
    # Files of the version before.
    "a file of an older version is converted while somebody has it open": Mutant(
        "room/file.py",
        "        if system.is_open_elsewhere(self.fd) or senses.living(m, links.all_seats(m)):\n",
        "        if senses.living(m, links.all_seats(m)):\n",
        f"{OLDER}an_older_process_that_has_the_gate_open",
    ),
    "a converted file forgets a kept slot": Mutant(
        "room/file.py",
        "        self.end_kept(m)\n",
        "",
        f"{OLDER}the_fence_of_a_kept_slot_is_not_given_again",
    ),
    "a converted file begins with new fences": Mutant(
        "room/file.py",
        "        self.m[LAST_FENCE] = m[LAST_FENCE]\n",
        "",
        f"{OLDER}the_fence_of_a_kept_slot_is_not_given_again",
    ),
    "a room of a cluster is converted into one of a host": Mutant(
        "room/file.py",
        "        self.check_kind(m)\n",
        "",
        f"{OLDER}what_cannot_be_converted_here",
    ),
    "an interrupted conversion is never finished": Mutant(
        "room/file.py",
        "size >= older.SIZE_THEN",
        "size >= FIRST_SIZE",
        f"{OLDER}a_conversion_that_was_interrupted",
    ),
    "a guest does not compare clocks": Mutant(
        "room/guest.py",
        "    (described(standing.folder) or standing).refuse_other_clock()\n",
        "",
        "test_guest_clocks.py::test_a_guest_with_another_clock_is_refused",
    ),
    "a peer does not compare clocks": Mutant(
        "room/clusters.py",
        "    refuse_guests_of_another_clock(path)\n",
        "",
        "test_guest_clocks.py::test_a_peer_with_another_clock_than_its_guests_is_refused",
        HANGS,
    ),
    # Waiting.
    "a stale ring is taken for one's own": Mutant(
        "room/desk.py",
        "            if visit.ticket in tickets:",
        "            if tickets:",
        f"{REQUESTS}a_ring_for_an_earlier_request_lets_nobody_in",
    ),
    "a waiter does not say that it heard of its grant": Mutant(
        "room/rules.py",
        "    m[seat + HEARD] = 1\n",
        "    pass\n",
        f"{REQUESTS}holders_are_not_woken_again_once_they_know",
    ),
    "nobody watches": Mutant(
        "room/bell.py",
        "            self.poll.watch(self.lines[owner])\n",
        "            pass\n",
        f"{DEATHS}a_killed_holder_frees_its_slot",
    ),
    "a forked child keeps the bells of its parent": Mutant(
        "room/room.py",
        "    for bell in list(bells.ours):\n        bell.close(remove=False)\n",
        "",
        f"{DEATHS}everything_that_a_killed_process_held_is_free_although_its_child_lives",
    ),
    "a forked child keeps the lock of its parent": Mutant(
        "room/room.py",
        "    for file in list(files):\n        file.drop()\n",
        "",
        f"{DEATHS}a_child_of_a_process_that_died_with_the_lock_does_not_keep_it",
    ),
    # Closing, while a thread or a task is let in.
    "a permit is read from the seat": Mutant(
        "room/permit.py",
        "        self.ticket: int = visit.ticket\n",
        "        self.ticket: int = visit.desk.file.m[visit.seat + TICKET]\n",
        f"{CLOSING}a_permit_is_that_of_its_request_though_another_one_has_its_seat",
    ),
    "a grant is taken without looking whether the room was closed": Mutant(
        "room/room.py",
        "                if self.desk.closed:\n",
        "                if False:\n",
        f"{CLOSING}a_request_that_is_closed_when_it_was_granted_gets_no_permit",
    ),
    "another thread may close the room between the ring and the look": Mutant(
        "room/desk.py",
        "                self.exclude_changes(visit.take_rung)",
        "                rules.hear(self.file.m, visit.seat)",
        f"{CLOSING}closing_between_the_ring_and_the_permit_leaves_the_next_holder_alone",
    ),
    "another thread may close the room while a lease is extended": Mutant(
        "room/permit.py",
        "self.desk.exclude_changes(lambda: self.extended(clock() + nanoseconds))",
        "self.extended(clock() + nanoseconds)",
        f"{CLOSING}a_lease_is_not_extended_in_a_seat_that_another_request_has",
    ),
    "two threads release a permit twice": Mutant(
        "room/permit.py",
        "        if self.ended:\n",
        "        if False:\n",
        f"{CLOSING}two_threads_that_release_a_permit_release_it_once",
    ),
    "the reason of a loss is judged when its user asks": Mutant(
        "room/permit.py",
        "m[self.seat + SINCE] if m[self.seat + STATE] == LOST else clock()",
        "clock()",
        "room/test_ends.py::test_the_reason_of_a_loss_is_what_ended_the_permit_not_what_came_later",
    ),
    "a lost permit does not say since when": Mutant(
        "room/table.py",
        "    m[seat + SINCE] = change.now  # before the state: its owner looks without the lock\n",
        "",
        "room/test_ends.py::test_the_reason_of_a_loss_is_the_lease_that_was_over_first",
    ),
    "a permit is valid in a forked child": Mutant(
        "room/permit.py",
        " and not self.desk.forked\n",
        "\n",
        f"{CLOSING}a_permit_is_not_valid_in_a_forked_child",
    ),
    "a task does not look whether its gate was closed": Mutant(
        "room/aio.py",
        "            self.check_open()  # it may have been closed before this task went on\n",
        "",
        f"{CLOSING}a_gate_that_is_closed_before_a_task_goes_on_gives_it_no_permit",
    ),
    "a task does not look whether its room was closed": Mutant(
        "room/aio.py",
        "        self.room.check_open()  # another thread may have closed it\n",
        "",
        f"{CLOSING}a_room_that_another_thread_closes_before_a_task_goes_on_gives_it_no_permit",
    ),
    "a bell that its loop has closed is rung": Mutant(
        "room/bell.py",
        "            if self.fd >= 0:\n                ring(",
        "            if True:\n                ring(",
        f"{LOOPS}a_room_is_closed_although_its_loop_has_just_closed_its_bell",
    ),
    # Several event loops.
    "two threads forget an ended loop": Mutant(
        "room/tasks.py",
        "self.by_loop.pop(old, None)",
        "self.by_loop.pop(old)",
        f"{LOOPS}two_threads_forget_an_ended_loop_at_once",
    ),
    "a loop that runs in another thread is used": Mutant(
        "room/tasks.py",
        "                if not runs_elsewhere(gate.loop):  #",
        "                if True:  #",
        f"{LOOPS}closing_a_gate_wakes_the_loops_of_other_threads",
    ),
    "loops are rung before their room is closed": Mutant(
        "room/room.py",
        "                busy.append(bell)\n",
        "                bell.ring()\n",
        f"{LOOPS}a_loop_that_looks_at_its_ring_finds_the_room_closed",
    ),
    # Files.
    "an emptied file that is in use becomes a new gate": Mutant(
        "room/file.py",
        "            if system.is_open_elsewhere(self.fd):\n",
        "            if False:\n",
        f"{UNUSABLE}an_emptied_file_that_is_in_use_does_not_become_a_new_gate",
    ),
    # For people.
    "a holder whose lease is over is shown as one": Mutant(
        "room/room.py",
        "links.valid_holders(m, change.now), list",
        "links.holders(m), list",
        f"{API}a_holder_whose_lease_is_over_is_not_shown_as_one",
    ),
    # Event loops.
    "a release does not keep its place": Mutant(
        "room/backlog.py",
        "        if not self.entries:\n            with suppress(BlockingIOError):\n",
        "        if True:\n            with suppress(BlockingIOError):\n",
        f"{AIO}a_request_does_not_pass_an_earlier_release",
    ),
    "a cancelled request is not taken back": Mutant(
        "room/aio.py",
        "                self.backlog.post(visit.leave)\n",
        "                pass\n",
        f"{AIO}a_task_cancelled_just_after_it_has_asked_leaves_nothing_behind",
    ),
    "a loop that ends leaves steps undone": Mutant(
        "room/backlog.py",
        "            self.finish()\n",
        "            pass\n",
        f"{AIO}a_loop_that_ends_leaves_nothing_to_do",
    ),
    "a request that is given up does not wait until it is taken back": Mutant(
        "room/aio.py",
        "                await self.backlog.settled()\n",
        "",
        f"{AIO}a_loop_that_ends_leaves_nothing_to_do",
    ),
    "tasks of a loop that is closed are cancelled": Mutant(
        "room/aio.py",
        "            if not self.loop.is_closed():\n                task.cancel()\n",
        "            task.cancel()\n",
        f"{AIO}a_room_can_be_closed_after_its_loop",
    ),
    "a loss is told to a loop that is closed": Mutant(
        "room/aio.py",
        " and not self.gate.loop.is_closed():\n                self.on_loss()",
        ":\n                self.on_loss()",
        f"{AIO}a_room_can_be_closed_after_its_loop",
    ),
    "async with does not wait for its release": Mutant(
        "api.py",
        "            await self.held.settled()\n",
        "            pass\n",
        "./test_on_first_use.py::test_async_with_ends_after_its_release",
    ),
    "a request that has failed when its time is over is let in": Mutant(
        "room/aio.py",
        "            waiter.granted.result()\n        finally:",
        "        finally:",
        f"{CLOSING}a_request_that_fails_when_its_time_is_over_is_not_inside",
    ),
    "a look goes on after the gate was closed": Mutant(
        "room/aio.py",
        "        if self.closed:\n            return  # meanwhile: the request has ended\n",
        "",
        f"{AIO}a_try_while_the_gate_is_closed_ends_with_that",
    ),
    "a permit that a close has ended counts as revoked": Mutant(
        "room/permit.py",
        "            elif self.why_closed():\n",
        "            elif self.desk.is_closed():\n",
        f"{AIO}permits_are_lost_by_the_close_from_its_first_moment",
    ),
    "a lost ring is never made up for": Mutant(
        "room/aio.py",
        "        self.check_held()\n        self.keep_checking()\n",
        "        self.keep_checking()\n",
        f"{AIO}a_revocation_is_noticed_although_nobody_rings",
    ),
    "a full bell is not noticed": Mutant(
        "room/aio.py",
        "        if len(tickets) >= FULL:\n            self.check_held()\n",
        "",
        f"{AIO}a_revocation_is_noticed_at_once_although_the_bell_is_full",
    ),
}

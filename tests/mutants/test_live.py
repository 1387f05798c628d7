"""Each mutant of the live part is one rule gone wrong, and a test of tests/live must notice it."""

from __future__ import annotations

import pytest

from tests.mutants.copies import HANGS, PASSES, SKIPPED, Mutant, end_of

MUTANTS = {
    # Entering again by the seat that was kept.
    "a node hears a message before it is told who left": Mutant(
        "live/gate.py",
        "            if self.kept is not None:\n                self.release_kept()\n",
        "",
        "test_gate.py::test_two_peers_take_turns",
        HANGS,
    ),
    "a seat is kept while others wait": Mutant(
        "live/gate.py",
        " and self.nodes[ticket.ident].alone():",
        ":",
        "test_generic.py::test_in_and_out_of_threads[centralised]",
        HANGS,
    ),
    "entries that nobody was asked for are not counted": Mutant(
        "live/gate.py",
        "            node.retaken(ticket.retakes)\n",
        "            pass\n",
        "test_gate.py::test_fences_rise_past_entries_that_nobody_else_heard_of",
    ),
    "the same fence again": Mutant(
        "live/ticket.py",
        "        ticket.fence = self.fence + 1\n",
        "        ticket.fence = self.fence\n",
        "test_gate.py::test_fences_rise_past_entries_that_nobody_else_heard_of",
    ),
    "fences run over by entering again": Mutant(
        "live/gate.py",
        " or is_late(old.fence):",
        ":",
        "test_gate.py::test_fences_that_run_out_are_those_of_another_view",
        HANGS,
    ),
    "fences run over": Mutant(
        "live/gate.py",
        "        if is_late(fence):\n",
        "        if False:\n",
        "test_gate.py::test_fences_that_run_out_are_those_of_another_view",
        HANGS,
    ),
    # Requests.
    "a closed gate lets in": Mutant(
        "live/gate.py",
        "            raise GateClosed(self.closed)\n",
        "            pass\n",
        "test_generic.py::test_close[gate-centralised]",
        HANGS,
    ),
    "what is lost is over by a release": Mutant(
        "live/gate.py",
        "        if ticket.state in (WAITING, INSIDE):\n            self.end(ticket)\n",
        "        if True:\n            self.end(ticket)\n",
        "test_generic.py::test_close[gate-centralised]",
    ),
    "a ghost is not inside": Mutant(
        "live/gate.py",
        "        if seat.ghost:\n            node.is_inside(GHOST_REQUEST, seat.slot)\n",
        "",
        "test_ghosts.py::test_a_ghost_outlives_its_warden[nothing]",
    ),
    "who is inside of a gate that closes is not told": Mutant(
        "live/gate.py",
        "            if was == INSIDE:\n                self.tell_lost(ticket, why)\n",
        "            if was == INSIDE:\n                pass\n",
        "test_generic.py::test_close[gate-centralised]",
    ),
    "a step that was broken off is as if it were whole": Mutant(
        "live/engine.py",
        "gate.broken = ticket  # must come first",
        "pass  # must come first",
        "test_ctrl_c.py::test_ctrl_c_wherever_a_function_begins[20.0]",
        HANGS,
    ),
    "after a step that was broken off there is no new view": Mutant(
        "live/gate.py",
        " if ident not in self.tickets]\n        self.owner.renew(self)\n",
        " if ident not in self.tickets]\n",
        "test_ctrl_c.py::test_ctrl_c_wherever_a_function_begins[None]",
        HANGS,
    ),
    "Ctrl-C while one waits": Mutant(
        "sync.py",
        "ever release it\n            self.engine.release(self.gate, ticket)\n",
        "ever release it\n",
        "test_ctrl_c.py::test_ctrl_c_while_one_waits",
    ),
    "Ctrl-C after entering again": Mutant(
        "live/engine.py",
        "            if ticket is not None:\n                self.release(gate, ticket)\n",
        "",
        "test_ctrl_c.py::test_ctrl_c_wherever_a_function_begins[None]",
    ),
    # Who reads and who writes.
    "a user's thread takes what is the engine's": Mutant(
        "live/traffic.py",
        "                return False\n",
        "                return True\n",
        "test_reader.py::test_what_is_for_the_peer_itself_comes_to_it",
        HANGS,
    ),
    "two read at once": Mutant(
        "net/reader.py",
        "        self.reading = Latch()\n",
        '        self.reading = __import__("threading").Semaphore(2)\n',
        "test_reader.py::test_while_one_thread_takes_a_piece_the_other_waits",
    ),
    "the loop never looks by itself": Mutant(
        "net/reader.py", "        self.look()\n", "", "test_reader.py::test_a_handler_of_signals_may_wait_too", HANGS
    ),
    "the rest is lost": Mutant(
        "net/pipe.py",
        "        self.rest = bytearray(data[sent:]) if sent < len(data) else EMPTY\n",
        "        self.rest = EMPTY\n",
        "test_transport.py::test_what_was_sent_before_the_close_arrives[asyncio]",
    ),
    "another thread goes before what waits": Mutant(
        "net/pipe.py",
        "if self.waiting or self.rest or not self.up",
        "if not self.up",
        "test_transport.py::test_another_thread_keeps_the_order[asyncio]",
        HANGS,
    ),
    "what is flushed goes before the rest": Mutant(
        "net/connection.py",
        "            elif self.rest:\n                self.rest += data\n",
        "",
        "test_transport.py::test_pressure_is_reported_and_its_end[asyncio]",
        HANGS,
    ),
    # Frames.
    "any version": Mutant(
        "net/codec.py", "        if version != VERSION:\n", "        if False:\n", "test_codec.py::test_another_version"
    ),
    "any length": Mutant(
        "net/codec.py",
        "        if length > self.limit:\n",
        "        if False:\n",
        "test_codec.py::test_a_length_that_is_too_large_is_refused_before_anything_is_kept",
    ),
    "any depth": Mutant(
        "net/codec.py",
        "    for _ in range(depth - 1):\n",
        "    for _ in range(depth):\n",
        "test_codec.py::test_depth[leaf0]",
    ),
    "half a frame is forgotten": Mutant(
        "net/codec.py",
        "            self.rest += data[start:]\n",
        "            pass\n",
        "test_codec.py::test_byte_by_byte",
    ),
    "what has come is never read by who enters again": Mutant(
        "live/engine.py",
        "            if gate.retakes >= RETAKES:\n",
        "            if False:\n",
        "test_reader.py::test_who_asks_is_heard_after_so_many_entries_of_another",
    ),
    "entering again is not counted": Mutant(
        "live/gate.py",
        "        self.retakes += 1\n",
        "",
        "test_reader.py::test_who_asks_is_heard_after_so_many_entries_of_another",
    ),
    "who is let in is told at once": Mutant(
        "live/traffic.py",
        "        if self.stepping:\n",
        "        if False:\n",
        "test_reader.py::test_who_was_let_in_is_told_when_all_that_came_was_read",
    ),
    "only one of those who were let in is told": Mutant(
        "live/traffic.py",
        "        while self.let_in:\n",
        "        if self.let_in:\n",
        "test_reader.py::test_who_was_let_in_is_told_when_all_that_came_was_read",
        HANGS,
    ),
    "the bell is not rung": Mutant(
        "net/reader.py",
        "                os.eventfd_write(self.bell, 1)\n",
        "                pass\n",
        "test_reader.py::test_the_end_of_a_peer_wakes_it",
        HANGS,
    ),
    "the loop is not shown what comes when nobody reads any more": Mutant(
        "net/reader.py",
        "            self.shown.hide(self.inner, False)\n",
        "",
        "test_reader.py::test_when_it_leaves_the_loop_reads_again",
    ),
    # Who is let in.
    "any user": Mutant(
        "net/transport.py",
        "        if not rule.admits(who):\n",
        "        if False:\n",
        "test_strangers.py::test_another_user_is_refused_by_what_the_kernel_says",
    ),
    "any group": Mutant(
        "net/access.py",
        "(self.group is not None and self.group in who.groups)",
        "self.group is not None",
        "test_strangers.py::test_the_rule_of_a_directory",
    ),
    "any directory": Mutant(
        "net/access.py", "    if mode & 0o007:\n", "    if False:\n", "test_strangers.py::test_modes"
    ),
    "any cluster": Mutant(
        "net/transport.py",
        "        if cluster != self.cluster:\n",
        "        if False:\n",
        "test_hosts.py::test_another_cluster_is_refused",
    ),
    "no certificate": Mutant(
        "net/tls.py",
        "        context.verify_mode = ssl.CERT_REQUIRED\n",
        "        context.verify_mode = ssl.CERT_OPTIONAL\n",
        "test_tls.py::test_a_client_without_a_certificate[asyncio]",
        HANGS,
    ),
    "another host's certificate": Mutant(
        "net/tls.py",
        "    return Tls(server, client)\n",
        "    client.check_hostname = False\n    return Tls(server, client)\n",
        "test_tls.py::test_a_certificate_of_another_host",
        HANGS,
    ),
    "a stranger's long frame": Mutant(
        "net/connection.py",
        "LIMIT if dial else HELLO_LIMIT",
        "LIMIT",
        "test_strangers.py::test_one_line_and_closed[a stranger's frame over its small limit-asyncio]",
        HANGS,
    ),
    "a stranger's silence": Mutant(
        "net/connection.py",
        "        self.timer = self.loop.call_later(self.owner.greeting_seconds, self.too_late)\n",
        "",
        "test_strangers.py::test_one_line_and_closed[silence-asyncio]",
        HANGS,
    ),
    "any number of strangers": Mutant(
        "net/transport.py",
        "            if len(self.strangers) >= MOST_STRANGERS:\n",
        "            if False:\n",
        "test_strangers.py::test_many_who_say_nothing_do_not_use_up_the_peer",
        HANGS,
    ),
    # The roster.
    "changes without the lock": Mutant(
        "net/members.py",
        "        while not try_lock(lock):\n",
        "        while False:\n",
        "test_members.py::test_a_lock_that_is_never_given_back_is_one_line",
    ),
    "views follow the clock": Mutant(
        "net/roster.py",
        "max(at.seconds - EPOCH_ZERO, members.epoch + 1)",
        "at.seconds - EPOCH_ZERO",
        "test_members.py::test_views_rise_whatever_the_clock_does",
    ),
    "the seats of the dead stay": Mutant(
        "net/roster.py",
        "            if seat.host not in change.peers:\n",
        "            if True:\n",
        "test_members.py::test_the_seats_of_the_dead_go_and_of_their_processes_stay",
    ),
    "a number is a sign of life": Mutant(
        "net/watch.py",
        "start_time(pid) not in (started, UNKNOWN) or has_ended(pidfd)",
        "has_ended(pidfd)",
        "test_members.py::test_a_number_that_another_process_has_now_is_no_sign_of_life",
    ),
    "any k": Mutant(
        "net/roster.py", "    if gate.k != change.k:\n", "    if False:\n", "test_gate.py::test_another_k_is_refused"
    ),
    "nobody buries the dead": Mutant(
        "live/on_host.py",
        "            await engine.check()\n",
        "            pass\n",
        "test_roster_fails.py::test_a_death_is_told_when_the_lock_is_free_again",
        HANGS,
    ),
    "a connection that breaks is not made good": Mutant(
        "live/on_host.py",
        "            await engine.change(Renew(gate))\n",
        "            pass\n",
        "test_gate.py::test_a_connection_that_breaks_between_the_living_is_made_good",
        HANGS,
    ),
    "nobody hears of a change": Mutant(
        "live/on_host.py",
        "            self.engine.links.send(other, (NEWS, members.version))\n",
        "            pass\n",
        "test_generic.py::test_close[gate-centralised]",
        HANGS,
    ),
    "frames do not wait for their connection": Mutant(
        "live/links.py", "            self.keep(peer, frame)\n", "", "test_gate.py::test_two_peers_take_turns", HANGS
    ),
    # What outlives its peer.
    "the slot of a killed peer's processes is free": Mutant(
        "net/roster.py",
        "            elif (gate.name, seat.ident) in ghosts:\n",
        "            elif False:\n",
        "test_run_ends.py::test_what_outlives_a_killed_fairgate_keeps_the_slot",
    ),
    "who closed all its files has left": Mutant(
        "net/occupancy.py",
        "not (is_locked(file) or is_populated(held))",
        "not is_locked(file)",
        "test_run_ends.py::test_who_closes_its_files_keeps_the_slot_by_its_group",
    ),
    "who left its process group has left": Mutant(
        "net/occupancy.py",
        "not (is_locked(file) or is_populated(held))",
        "not is_populated(held)",
        "test_ghosts.py::test_a_ghost_outlives_its_warden[nothing]",
    ),
    "a ghost is for ever": Mutant(
        "live/ghosts.py",
        "                self.on_over(gate, ident)\n",
        "                pass\n",
        "test_ghosts.py::test_a_ghost_outlives_its_warden[nothing]",
        HANGS,
    ),
    # Leases.
    "a lease is never over": Mutant(
        "live/engine.py",
        '                gate.lose(ticket, "its lease has expired")\n',
        "                pass\n",
        "test_generic.py::test_a_thread_hears_of_its_loss",
        HANGS,
    ),
    "a lease that was extended is never over": Mutant(
        "live/engine.py",
        "                self.loop.call_later(left / 1e9, self.watch_lease, gate, ticket)\n",
        "                pass\n",
        "test_generic.py::test_a_thread_hears_of_its_loss",
        HANGS,
    ),
    "a lease that was extended is over all the same": Mutant(
        "live/permit.py",
        "before, self.ticket.deadline = self.ticket.deadline, until",
        "before = self.ticket.deadline",
        "test_generic.py::test_a_thread_hears_of_its_loss",
    ),
    "a lease that was shortened is as long as before": Mutant(
        "live/permit.py",
        "            if before == NO_DEADLINE or until < before:",
        "            if before == NO_DEADLINE:",
        "test_generic.py::test_a_thread_hears_of_its_loss",
        HANGS,
    ),
    "valid whatever the clock says": Mutant(
        "live/permit.py",
        " and (ticket.deadline == NO_DEADLINE or clock() < ticket.deadline)",
        "",
        "test_gate.py::test_a_lease_that_is_over_is_over_before_anybody_has_said_so",
        HANGS,
    ),
    # What users see.
    "a child uses its parent's peer": Mutant(
        "live/engine.py",
        "        if self.pid != process[0]:  # `check_process`, inlined: every entry comes through here\n",
        "        if False:\n",
        "test_generic.py::test_a_child_cannot_use_its_parents_peer",
        HANGS,
    ),
    "in without a permit": Mutant(
        "sync.py",
        "        if permit is None:\n            raise AcquireTimeout",
        "        if False:\n            raise AcquireTimeout",
        "test_generic.py::test_in_and_out_of_threads[centralised]",
    ),
    "who is cancelled goes on waiting": Mutant(
        "api.py",
        "        except BaseException:\n            self.engine.release(self.gate, ticket)\n",
        "        except BaseException:\n",
        "test_generic.py::test_a_hundred_cancels_and_timeouts_leak_nothing[centralised]",
        HANGS,
    ),
    "whose time is over goes on waiting": Mutant(
        "api.py",
        "        if ticket.state == WAITING:\n            self.engine.release(self.gate, ticket)\n",
        "",
        "test_generic.py::test_in_and_out[centralised]",
    ),
    "a thread whose time is over goes on waiting": Mutant(
        "sync.py",
        "                if ticket.state == WAITING:\n                    self.engine.release(self.gate, ticket)\n",
        "",
        "test_generic.py::test_threads_that_give_up_leak_nothing",
    ),
    "a permit for a loop that is closed": Mutant(
        "live/engine.py",
        "        self.loop.call_soon_threadsafe(self.drop, gate, ticket)\n",
        "        pass\n",
        "test_generic.py::test_a_loop_that_is_closed_while_one_waits_leaks_no_permit",
    ),
    "a loss does not end the body": Mutant(
        "api.py",
        "                self.task.cancel()\n",
        "",
        "test_generic.py::test_a_lease_that_is_over_cancels_the_body[centralised]",
        HANGS,
    ),
    # Between hosts.
    "no channel between hosts": Mutant(
        "live/reliable.py",
        "        if peer not in self.addresses:\n",
        "        if True:\n",
        "test_hosts.py::test_connections_that_break_lose_nothing[0]",
        HANGS,
    ),
    "who does not keep the roster changes it": Mutant(
        "live/in_cluster.py",
        "            if self.keeper != engine.me:\n                raise",
        "            if False:\n                raise",
        "test_hosts.py::test_who_does_not_keep_the_roster_changes_nothing",
    ),
}
NODES = sorted({mutant.test for mutant in MUTANTS.values()})


@pytest.mark.stress
@pytest.mark.parametrize("rule", MUTANTS)
def test_each_mutant_is_noticed(rule: str) -> None:
    mutant = MUTANTS[rule]
    end = end_of(mutant.test, mutant)
    if end == SKIPPED:
        pytest.skip("its test is skipped here")
    assert end == mutant.end


@pytest.mark.stress
@pytest.mark.parametrize("node", NODES)
def test_nothing_is_noticed_where_nothing_was_changed(node: str) -> None:
    assert end_of(node) in (PASSES, SKIPPED)

"""Mutation tests of live peers: each mutant breaks one rule, and a test of tests/live must notice it."""

from __future__ import annotations

import pytest

from tests.mutants.copies import FAILS_OR_HANGS, HANGS, PASSES, SKIPPED, Mutant, end_of

MUTANTS = {
    # Retaking.
    "a node receives a message before it is told of the kept release": Mutant(
        "live/gate.py",
        "        if self.kept is not None:\n            self.release_kept()\n        try:",
        "        try:",
        "test_gate.py::test_two_peers_take_turns",
        HANGS,
    ),
    "a seat is kept while others wait": Mutant(
        "live/gate.py",
        " and self.nodes[ticket.ident].alone():",
        ":",
        "test_generic.py::test_acquire_and_release_in_threads[centralised]",
        HANGS,
    ),
    "retaken permits are not counted in the fence": Mutant(
        "live/gate.py",
        "            node.retaken(ticket.retakes)\n",
        "            pass\n",
        "test_gate.py::test_fences_rise_across_retaken_permits",
    ),
    "a retaken permit has the same fence": Mutant(
        "live/ticket.py",
        "        ticket.fence = self.fence + 1\n",
        "        ticket.fence = self.fence\n",
        "test_gate.py::test_fences_rise_across_retaken_permits",
    ),
    "fences overflow by retaking": Mutant(
        "live/gate.py",
        " or is_late(old.fence) or",
        " or",
        "test_gate.py::test_fences_that_run_out_lead_to_a_new_view",
        HANGS,
    ),
    "fences overflow": Mutant(
        "live/gate.py",
        "        if is_late(fence) and self.renewed != self.record.view:\n",
        "        if False:\n",
        "test_gate.py::test_fences_that_run_out_lead_to_a_new_view",
        HANGS,
    ),
    "every entry asks for the view that replaces late fences": Mutant(
        "live/gate.py",
        "            self.renewed = self.record.view  # once",
        "            pass  # once",
        "test_gate.py::test_a_view_whose_fences_run_out_is_replaced_once",
    ),
    "a thread that enters without a pause keeps the engine from running": Mutant(
        "live/pauses.py",
        "            time.sleep(SECONDS)\n",
        "            pass\n",
        "test_gate.py::test_the_engine_runs_while_a_thread_enters_without_a_pause",
    ),
    # Requests.
    "a closed gate grants permits": Mutant(
        "live/gate.py",
        "            raise GateClosed(self.closed)\n",
        "            pass\n",
        "test_generic.py::test_close[gate-centralised]",
        FAILS_OR_HANGS,
    ),
    "releasing a lost permit ends it again": Mutant(
        "live/gate.py",
        "        if ticket.state in (WAITING, INSIDE):\n            self.end(ticket, ticket.state)\n",
        "        if True:\n            self.end(ticket, ticket.state)\n",
        "test_generic.py::test_close[gate-centralised]",
    ),
    "holders are not notified when the gate closes": Mutant(
        "live/gate.py",
        "            if was == INSIDE:\n                self.tell_lost(ticket, why)\n",
        "            if was == INSIDE:\n                pass\n",
        "test_generic.py::test_close[gate-centralised]",
    ),
    "a permit is valid while its slot passes on": Mutant(
        "live/gate.py",
        "            self.tell_lost(ticket, why)\n            self.end(ticket, INSIDE)\n",
        "            self.end(ticket, INSIDE)\n            self.tell_lost(ticket, why)\n",
        "test_gate.py::test_a_permit_ends_before_its_slot_passes_on[it is revoked]",
    ),
    "a request that is closed as it is granted came too late": Mutant(
        "live/cluster_permit.py",
        "        return state == INSIDE\n",
        "        return ticket.state == INSIDE\n",
        "test_gate.py::test_the_state_of_a_request_is_judged_by_one_look",
    ),
    "an interrupted step counts as complete": Mutant(
        "live/engine.py",
        "gate.broken = ticket  # must come first",
        "pass  # must come first",
        "test_ctrl_c.py::test_ctrl_c_at_the_start_of_every_function[20.0]",
        HANGS,
    ),
    "an interrupted step causes no new view": Mutant(
        "live/gate.py",
        " if ident not in self.tickets]\n        self.owner.renew(self)\n",
        " if ident not in self.tickets]\n",
        "test_ctrl_c.py::test_ctrl_c_at_the_start_of_every_function[None]",
        HANGS,
    ),
    "Ctrl-C does not withdraw the request": Mutant(
        "live/threads.py",
        "ever release it\n            self.engine.release(self.gate, ticket)\n",
        "ever release it\n",
        "test_ctrl_c.py::test_ctrl_c_while_waiting",
    ),
    "Ctrl-C after retaking leaks the permit": Mutant(
        "live/engine.py",
        "            if ticket is not None:\n                self.release(gate, ticket)\n",
        "",
        "test_ctrl_c.py::test_ctrl_c_at_the_start_of_every_function[None]",
    ),
    # Reading and writing.
    "a user's thread swallows frames for the engine": Mutant(
        "live/traffic.py",
        "                return False\n",
        "                return True\n",
        "test_reader.py::test_frames_for_the_engine_reach_it",
        HANGS,
    ),
    "two threads read at once": Mutant(
        "net/reader.py",
        "        self.reading = Latch()\n",
        '        self.reading = __import__("threading").Semaphore(2)\n',
        "test_reader.py::test_only_one_thread_handles_a_piece_at_a_time",
    ),
    "the loop never reads by itself": Mutant(
        "net/reader.py", "        self.look()\n", "", "test_reader.py::test_a_signal_handler_may_acquire_too", HANGS
    ),
    "data that the socket did not accept is lost": Mutant(
        "net/pipe.py",
        "        self.rest = bytearray(data[sent:]) if sent < len(data) else EMPTY\n",
        "        self.rest = EMPTY\n",
        "test_transport.py::test_frames_sent_before_close_arrive[asyncio]",
    ),
    "another thread overtakes queued data": Mutant(
        "net/pipe.py",
        "if self.waiting or self.rest or not self.up",
        "if not self.up",
        "test_transport.py::test_another_thread_keeps_the_order[asyncio]",
        HANGS,
    ),
    "flushed data overtakes the rest": Mutant(
        "net/connection.py",
        "            elif self.rest:\n                self.rest += data\n",
        "",
        "test_transport.py::test_the_start_and_end_of_pressure_are_reported[asyncio]",
        HANGS,
    ),
    # Frames.
    "any frame version is accepted": Mutant(
        "net/codec.py",
        "        if version != VERSION:\n",
        "        if False:\n",
        "test_codec.py::test_another_frame_version_is_refused",
    ),
    "any frame length is accepted": Mutant(
        "net/codec.py",
        "        if length > self.limit:\n",
        "        if False:\n",
        "test_codec.py::test_an_excessive_length_is_refused_before_buffering",
    ),
    "frames may be nested too deep": Mutant(
        "net/codec.py",
        "    for _ in range(depth - 1):\n",
        "    for _ in range(depth):\n",
        "test_codec.py::test_nesting_deeper_than_the_limit_is_refused[leaf0]",
    ),
    "an incomplete frame is dropped": Mutant(
        "net/codec.py",
        "            self.rest += data[start:]\n",
        "            pass\n",
        "test_codec.py::test_decoding_byte_by_byte",
    ),
    "retaking never reads what has arrived": Mutant(
        "live/engine.py",
        "            if gate.retakes >= RETAKES:\n",
        "            if False:\n",
        "test_reader.py::test_a_request_is_heard_after_a_limited_number_of_retakes",
    ),
    "retakes are not counted": Mutant(
        "live/gate.py",
        "        self.retakes += 1\n",
        "",
        "test_reader.py::test_a_request_is_heard_after_a_limited_number_of_retakes",
    ),
    "waiters are woken before everything is read": Mutant(
        "live/traffic.py",
        "        if self.stepping:\n",
        "        if False:\n",
        "test_reader.py::test_waiters_are_woken_after_everything_that_arrived_was_read",
    ),
    "only one granted waiter is woken": Mutant(
        "live/traffic.py",
        "        while self.let_in:\n",
        "        for _ in (0,) if self.let_in else ():\n",
        "test_reader.py::test_waiters_are_woken_after_everything_that_arrived_was_read",
    ),
    "the reading thread is not woken": Mutant(
        "net/reader.py",
        "                os.eventfd_write(self.bell, 1)\n",
        "                pass\n",
        "test_reader.py::test_a_grant_by_another_thread_wakes_the_reading_thread",
    ),
    "the loop does not resume reading when the thread stops": Mutant(
        "net/reader.py",
        "            self.shown.hide(self.inner, False)\n",
        "",
        "test_reader.py::test_the_loop_reads_again_when_the_thread_stops",
        HANGS,
    ),
    # Access.
    "any user is accepted": Mutant(
        "net/listening.py",
        "    if not rule.admits(who):\n",
        "    if False:\n",
        "test_strangers.py::test_another_user_is_refused_by_credentials",
    ),
    "any group is accepted": Mutant(
        "net/access.py",
        "(self.group is not None and self.group in who.groups)",
        "self.group is not None",
        "test_strangers.py::test_the_access_rule_of_a_directory",
    ),
    "any directory is accepted": Mutant(
        "net/access.py",
        "    if mode & 0o007:\n",
        "    if False:\n",
        "test_strangers.py::test_directories_with_unsafe_modes_are_refused",
    ),
    "any cluster is accepted": Mutant(
        "net/transport.py",
        "        if cluster != self.cluster:\n",
        "        if False:\n",
        "test_strangers.py::test_bad_input_costs_the_connection[another cluster-asyncio]",
        HANGS,
    ),
    "a client needs no certificate": Mutant(
        "net/tls.py",
        "        context.verify_mode = ssl.CERT_REQUIRED\n",
        "        context.verify_mode = ssl.CERT_OPTIONAL\n",
        "test_tls.py::test_a_client_without_a_certificate[asyncio]",
        HANGS,
    ),
    "the certificate of another host is accepted": Mutant(
        "net/tls.py",
        "    return Tls(server, client, holder)\n",
        "    client.check_hostname = False\n    return Tls(server, client, holder)\n",
        "test_tls.py::test_a_certificate_of_another_host",
        HANGS,
    ),
    "long frames are accepted before the greeting": Mutant(
        "net/connection.py",
        "        super().__init__(owner, HELLO_LIMIT)\n",
        "        super().__init__(owner, LIMIT)\n",
        "test_crowds.py::test_frames_are_small_before_the_greeting_is_over",
    ),
    "a silent connection never times out": Mutant(
        "net/connection.py",
        "        self.timer = self.loop.call_later(self.owner.greeting_seconds, self.too_late)\n",
        "",
        "test_strangers.py::test_bad_input_costs_the_connection[silence-asyncio]",
        HANGS,
    ),
    "the number of unfinished greetings is not limited": Mutant(
        "net/listening.py",
        "        elif len(strangers) >= MOST_STRANGERS:\n",
        "        elif False:\n",
        "test_crowds.py::test_the_limit_for_all_addresses",
        HANGS,
    ),
    "a peer that has just come up is taken for a stranger": Mutant(
        "net/listening.py",
        " if not stranger.has_greeted()]\n",
        "]\n",
        "test_crowds.py::test_some_descriptors_stay_free[uvloop]",
        HANGS,
    ),
    # Broken connections.
    "a broken connection causes no new view": Mutant(
        "live/in_cluster.py",
        "            await self.engine.change(Renew(gate))\n",
        "            pass\n",
        "test_gate.py::test_a_broken_connection_between_living_peers_is_repaired",
        HANGS,
    ),
    "frames are not queued until the connection is up": Mutant(
        "live/reliable.py",
        "            Links.keep(self, peer, frame)\n",
        "            pass\n",
        "test_gate.py::test_two_peers_take_turns",
        HANGS,
    ),
    # Unix sockets.
    "the messages of gates go over the channel": Mutant(
        "live/reliable.py",
        "        if frame[0] == MESSAGE:\n            self.send_bare(peer, frame)\n",
        "        if False:\n            self.send_bare(peer, frame)\n",
        "test_unix_clusters.py::test_only_the_messages_of_gates_bypass_the_channel",
    ),
    "the socket of a living process is replaced": Mutant(
        "net/unix_socket.py",
        "    if not is_dead(path):\n",
        "    if False:\n",
        "test_unix_clusters.py::test_the_socket_of_a_living_process_is_left_alone",
    ),
    "any file is replaced": Mutant(
        "net/unix_socket.py",
        "    if not is_socket(path):\n        raise",
        "    if False:\n        raise",
        "test_unix_clusters.py::test_other_files_are_left_alone",
    ),
    "sockets beside a socket are removed while they are in use": Mutant(
        "net/unix_socket.py",
        " and is_dead(path.parent / name)",
        "",
        "test_unix_clusters.py::test_only_dead_sockets_with_names_of_ours_are_swept",
    ),
    "sockets of any name are removed": Mutant(
        "net/unix_socket.py",
        " and TAG.fullmatch(name, len(path.name))",
        "",
        "test_unix_clusters.py::test_only_dead_sockets_with_names_of_ours_are_swept",
    ),
    "sockets are replaced without the lock": Mutant(
        "net/unix_socket.py",
        "        while not try_lock(lock):\n",
        "        while False:\n",
        "test_unix_clusters.py::test_a_lock_that_is_never_released_is_reported",
    ),
    "the file of a socket stays": Mutant(
        "net/listening.py",
        "            file.remove()\n",
        "            pass\n",
        "test_unix_clusters.py::test_peers_share_gates_and_leave_no_files",
    ),
    "the file of another socket is removed": Mutant(
        "net/unix_socket.py",
        "            if identity_of(self.path) == self.identity:\n",
        "            if True:\n",
        "test_unix_clusters.py::test_a_file_that_was_replaced_by_hand_is_not_removed",
        HANGS,
    ),
    "peers over TCP join a cluster over Unix sockets": Mutant(
        "live/in_cluster.py",
        "            check_one_kind([parse_address(self.address), address])\n",
        "",
        "test_unix_clusters.py::test_peers_that_others_could_not_reach_are_refused",
    ),
    "closing waits for a connection that uvloop does not report": Mutant(
        "net/listening.py",
        "            self.owner.connections.discard(made)  # nobody",
        "            pass  # nobody",
        "test_transport.py::test_closing_in_the_middle_of_a_greeting_ends_at_once_and_leaks_nothing[uvloop]",
        HANGS,
    ),
    "a cancelled connection leaks its socket": Mutant(
        "net/connection.py",
        "        if self.forgotten:\n",
        "        if False:\n",
        "test_transport.py::test_closing_in_the_middle_of_a_greeting_ends_at_once_and_leaks_nothing[uvloop]",
    ),
    # Leases.
    "a lease never expires": Mutant(
        "live/engine.py",
        "                gate.lose(ticket, EXPIRED)\n",
        "                pass\n",
        "test_generic.py::test_an_expired_lease_cancels_the_body[centralised]",
        HANGS,
    ),
    "an extended lease never expires": Mutant(
        "live/engine.py",
        "                self.loop.call_later(left / SECOND, self.watch_lease, gate, ticket)\n",
        "                pass\n",
        "test_generic.py::test_a_changed_lease_cancels_the_body[0.05-0.15-cluster]",
        HANGS,
    ),
    "extending a lease has no effect": Mutant(
        "live/cluster_permit.py",
        "before, self.ticket.deadline = self.ticket.deadline, until",
        "before = self.ticket.deadline",
        "test_generic.py::test_a_thread_is_notified_of_a_lost_permit[cluster]",
    ),
    "shortening a lease has no effect": Mutant(
        "live/cluster_permit.py",
        "            if before == NO_DEADLINE or until < before:",
        "            if before == NO_DEADLINE:",
        "test_generic.py::test_a_changed_lease_cancels_the_body[20.0-0.05-cluster]",
        HANGS,
    ),
    "a permit is valid past its deadline": Mutant(
        "live/cluster_permit.py",
        " and not self.why_expired()",
        "",
        "test_gate.py::test_a_permit_is_lost_at_its_deadline_before_the_engine_notices",
        HANGS,
    ),
    "a permit that was released after its deadline was not lost": Mutant(
        "live/cluster_permit.py",
        "        if why := self.why_expired():\n",
        "        if False:\n",
        "test_gate.py::test_a_permit_is_lost_at_its_deadline_before_the_engine_notices",
    ),
    # The API.
    "a child can use its parent's peer": Mutant(
        "live/engine.py",
        "        if self.pid != process[0]:  # `check_process`, inlined: every entry comes through here\n",
        "        if False:\n",
        "test_generic.py::test_a_child_cannot_use_its_parents_peer[cluster]",
        HANGS,
    ),
    "a timeout enters without a permit": Mutant(
        "sync.py",
        "        if permit is None:\n            assert timeout is not None, ",
        "        if False:\n            assert timeout is not None, ",
        "test_generic.py::test_acquire_and_release_in_threads[centralised]",
    ),
    "a cancelled task keeps waiting": Mutant(
        "live/tasks.py",
        "        except BaseException:\n            self.engine.release(self.gate, ticket)\n",
        "        except BaseException:\n",
        "test_generic.py::test_a_hundred_cancels_and_timeouts_leak_nothing[centralised]",
        HANGS,
    ),
    "a timed-out task keeps waiting": Mutant(
        "live/tasks.py",
        "        if ticket.state == WAITING:\n            self.engine.release(self.gate, ticket)\n",
        "",
        "test_generic.py::test_acquire_and_release[centralised]",
    ),
    "a timed-out thread keeps waiting": Mutant(
        "live/threads.py",
        "                if ticket.state == WAITING:\n                    self.engine.release(self.gate, ticket)\n",
        "",
        "test_generic.py::test_threads_that_give_up_leak_nothing[cluster]",
    ),
    "a permit for a closed loop leaks": Mutant(
        "live/engine.py",
        "        self.loop.call_soon_threadsafe(self.drop, gate, ticket)\n",
        "        pass\n",
        "test_generic.py::test_closing_the_loop_of_a_waiter_leaks_no_permit[cluster]",
        HANGS,
    ),
    "a loss does not cancel the body": Mutant(
        "api.py",
        "            self.task.cancel()\n",
        "",
        "test_generic.py::test_an_expired_lease_cancels_the_body[centralised]",
        HANGS,
    ),
    # Between hosts.
    "acknowledgements wait however many messages there are": Mutant(
        "live/reliable.py",
        "        if number - self.acked.get(peer, 0) >= MOST_OWED:\n",
        "        if False:\n",
        "test_acknowledgements.py::test_many_messages_are_acknowledged_at_once",
    ),
    "the alarm is not set again": Mutant(
        "live/reliable.py",
        "            if timers:\n                self.set_alarm()\n",
        "",
        "test_acknowledgements.py::test_what_is_not_acknowledged_is_sent_again",
        HANGS,
    ),
    "links between hosts have no reliable channel": Mutant(
        "live/reliable.py",
        'would never be reported."""\n        if peer not in self.addresses:\n',
        'would never be reported."""\n        if True:\n',
        "test_hosts.py::test_broken_connections_lose_nothing[0]",
        HANGS,
    ),
    # Times.
    "the lease of a peer counts as the user's": Mutant(
        "live/cluster_permit.py",
        "        return self.ticket.deadline\n",
        "        return self.safe_until()\n",
        "test_safe_until.py::test_without_a_lease_there_is_no_deadline[peer]",
    ),
    "what a peer has promised is shown as the lease of its guest": Mutant(
        "room/listing.py",
        "deadline=m[seat + DEADLINE] if inside",
        "deadline=end_of(m, seat) if inside",
        "test_safe_until.py::test_a_room_keeps_the_two_apart",
    ),
    "only the lease of the user is guaranteed": Mutant(
        "live/cluster_permit.py",
        "for end in (self.ticket.deadline, self.engine.lease_until) if",
        "for end in (self.ticket.deadline,) if",
        "test_safe_until.py::test_safe_until_is_the_earlier_end[peer]",
    ),
}
NODES = sorted({mutant.test for mutant in MUTANTS.values()})


@pytest.mark.stress
@pytest.mark.parametrize("rule", MUTANTS)
def test_each_mutant_is_noticed(rule: str) -> None:
    mutant = MUTANTS[rule]
    end = end_of(mutant.test, mutant)
    if end == SKIPPED:
        pytest.skip("its test is skipped on this machine")
    assert end in mutant.end.split(" or ")


@pytest.mark.stress
@pytest.mark.parametrize("node", NODES)
def test_each_test_passes_without_a_mutant(node: str) -> None:
    assert end_of(node) in (PASSES, SKIPPED)

"""Mutation tests of clusters: each mutant breaks one rule of rosters, leases or saved state, and a test must notice."""

from __future__ import annotations

from tests.mutants.copies import (  # noqa: F401 (the tests of this table)
    HANGS,
    Mutant,
    test_each_mutant_can_be_made,
    test_each_mutant_is_noticed,
    test_each_test_passes_without_a_mutant,
)

LEASES, ROSTER = "test_leases.py", "recovery/test_roster.py"

MUTANTS = {
    # Leases.
    "a lease never ends": Mutant(
        "live/uplink.py",
        "        return self.lease_until == 0 or self.now < self.lease_until\n",
        "        return True\n",
        f"{LEASES}::test_a_lapsed_lease_cancels_the_body",
        HANGS,
    ),
    "a lapse is forgotten when the lease is raised": Mutant(
        "live/peer_lease.py",
        "        if not uplink.has_lease():\n            self.lapse()\n",
        "",
        f"{LEASES}::test_no_lease_is_raised_before_its_lapse_was_dealt_with",
    ),
    "nobody is told of a lapse": Mutant(
        "live/peer_lease.py",
        "                self.lapse()\n                self.tell()\n",
        "                self.tell()\n",
        f"{LEASES}::test_a_lapsed_lease_cancels_the_body",
        HANGS,
    ),
    "grants need no lease": Mutant(
        "live/gate.py",
        "        if self.uplink.has_lease():\n            self.let_in(ticket)\n",
        "        if True:\n            self.let_in(ticket)\n",
        f"{LEASES}::test_a_grant_without_a_lease_is_withheld",
        HANGS,
    ),
    "withheld grants are forgotten": Mutant(
        "live/peer_lease.py",
        "                gate.let_in_withheld()\n",
        "                pass\n",
        f"{LEASES}::test_a_grant_without_a_lease_is_withheld",
        HANGS,
    ),
    "retaking needs no lease": Mutant(
        "live/gate.py",
        " or not self.uplink.has_lease():\n            return None",
        ":\n            return None",
        f"{LEASES}::test_a_kept_seat_is_not_retaken_without_a_lease",
    ),
    "a leader that did not run excludes everyone": Mutant(
        "live/views_driver.py",
        "        if 2 * late > views.patience:",
        "        if False:",
        f"{LEASES}::test_a_lapsed_lease_loses_permits_and_comes_back",
    ),
    "a lease that was released goes on": Mutant(
        "live/cluster_permit.py",
        "        if self.ticket.state != INSIDE or self.engine.pid != process[0]:\n            return LONG_AGO\n",
        "",
        "test_safe_until.py::test_nothing_is_guaranteed_of_a_permit_that_was_released[peer-60.0]",
    ),
    "a cluster guarantees something to a forked child": Mutant(
        "live/cluster_permit.py",
        "        if self.ticket.state != INSIDE or self.engine.pid != process[0]:\n            return LONG_AGO\n",
        "        if self.ticket.state != INSIDE:\n            return LONG_AGO\n",
        "test_safe_until.py::test_nothing_is_guaranteed_in_a_forked_child[peer-60.0]",
    ),
    "a promise outlives its permit": Mutant(
        "room/permit.py",
        "        return until if inside and self.has_seat() and not self.released else LONG_AGO\n",
        "        return until\n",
        "test_safe_until.py::test_nothing_is_guaranteed_of_a_permit_that_was_released[guest-60.0]",
    ),
    # Gates.
    "the default is taken whatever the gate runs": Mutant(
        "live/live_protocols.py",
        "    return default_protocol(k) if record is None or record.k != k else record.protocol\n",
        "    return default_protocol(k)\n",
        "test_unix_clusters.py::test_a_peer_that_names_no_protocol_takes_the_one_that_the_gate_runs",
    ),
    # Links.
    "acknowledgements are sent under another id": Mutant(
        "live/reliable.py",
        "            self.owed.clear()\n",
        "",
        "test_acknowledgements.py::test_what_was_sent_under_an_old_id_is_not_repeated",
    ),
    "messages are repeated under another id": Mutant(
        "live/reliable.py",
        "            for peer in list(self.channel.links):\n",
        "            for peer in ():\n",
        "test_acknowledgements.py::test_what_was_sent_under_an_old_id_is_not_repeated",
    ),
    "a connection that delivers nothing is kept": Mutant(
        "live/reliable.py",
        "                self.check_progress(int(name.removeprefix(TIMER)))\n",
        "",
        "test_acknowledgements.py::test_a_connection_that_delivers_nothing_is_made_anew",
    ),
    "a message before its turn is kept": Mutant(
        "live/reliable.py",
        "            if isinstance(msg, Data) and msg.number > link.taken + 1:\n                return True\n",
        "",
        "test_acknowledgements.py::test_a_message_before_its_turn_is_not_kept",
    ),
    "no id is ever forgotten": Mutant(
        "live/reliable.py",
        "        if len(self.outsiders) > MOST_OUTSIDERS:\n",
        "        if False:\n",
        "test_acknowledgements.py::test_ids_that_are_not_members_are_forgotten",
    ),
    "an id that is connected is forgotten": Mutant(
        "live/reliable.py",
        "                if peer not in self.up:\n",
        "                if True:\n",
        "test_acknowledgements.py::test_ids_that_are_not_members_are_forgotten",
    ),
    "a connection that has ended is remembered": Mutant(
        "live/views_driver.py",
        "        self.told.pop(peer, None)\n",
        "",
        "test_one_member.py::test_nothing_stays_of_connections_that_have_ended",
    ),
    "an id that is gone is remembered": Mutant(
        "live/views_driver.py",
        "            self.heard.pop(peer, None)\n",
        "            pass\n",
        "test_one_member.py::test_nothing_stays_of_connections_that_have_ended",
    ),
    "answers are kept until they are acknowledged": Mutant(
        "live/engine.py",
        "                self.links.send_bare(peer, (TELL,",
        "                self.links.send(peer, (TELL,",
        "test_one_member.py::test_answers_are_not_kept_for_a_member",
    ),
    "anyone can tell a peer that it was excluded": Mutant(
        "live/entrance.py",
        "        if asked is None:\n            return\n        _, _,",
        "        asked = asked or clock()\n        _, _,",
        "test_one_member.py::test_a_roster_that_nobody_asked_for_excludes_nobody",
    ),
    # Turns of a standing peer.
    "a turn that has failed is not repeated": Mutant(
        "live/guest_room.py",
        "        if self.requests or self.book.owners or self.over or m[HEAD] or m[DIRTY]:\n",
        "        if self.requests:\n",
        "test_guest_turns.py::test_a_guest_is_not_forgotten_if_a_turn_raises[gate]",
        HANGS,
    ),
    "the cluster is asked before it is recorded for whom": Mutant(
        "live/guest_room.py",
        "            self.requests[asked.number] = asked\n            guestbook.has_asked(self.book, asked.number)\n"
        "            if old is None:\n                asked.gate.acquire(asked.ticket)\n",
        "            if old is None:\n                asked.gate.acquire(asked.ticket)\n"
        "                self.requests[asked.number] = asked\n"
        "                guestbook.has_asked(self.book, asked.number)\n",
        "test_guest_turns.py::test_whatever_raises_in_a_turn_is_made_up_for[guestbook-before]",
        HANGS,
    ),
    "a slot is forgotten before it is returned": Mutant(
        "live/guest_room.py",
        "                self.release(over[0])\n                over.popleft()\n",
        "                self.release(over.popleft())\n",
        "test_guest_turns.py::test_whatever_raises_in_a_turn_is_made_up_for[room-before]",
        HANGS,
    ),
    "a slot that is half returned stays so": Mutant(
        "live/guest_room.py",
        "            asked.gate.spoil(wrong)  # perhaps half-way\n",
        "",
        "test_guest_turns.py::test_whatever_raises_in_a_turn_is_made_up_for[gate-before]",
        HANGS,
    ),
    "an answer that was lost on its way is not missed": Mutant(
        "live/guest_room.py",
        "            self.find_lost()\n",
        "",
        "test_guest_turns.py::test_whatever_raises_in_a_turn_is_made_up_for[traffic-before]",
        HANGS,
    ),
    "what raises in the loop is not counted": Mutant(
        "live/engine.py",
        "        self.loop.set_exception_handler(self.raised)\n",
        "",
        "test_guest_turns.py::test_whatever_raises_in_the_loop_of_a_peer_is_counted",
        HANGS,
    ),
    "the loop never pauses for a crowd": Mutant(
        "live/guest_room.py",
        "list(self.book.new.items())[:MOST_AT_ONCE]",
        "list(self.book.new.items())",
        "test_guest_turns.py::test_the_loop_goes_on_between_the_turns_of_a_crowd",
    ),
    "promises wait for the lock of the room": Mutant(
        "live/guest_room.py",
        "            guestbook.promise(self.desk.file.m, calls.clock(), self.book, self.engine.lease_until)\n",
        "            self.desk.try_change(Look(self, None), GLIMPSE)\n"
        "            guestbook.promise(self.desk.file.m, calls.clock(), self.book, self.engine.lease_until)\n",
        "test_guest_turns.py::test_promises_are_renewed_while_the_file_of_a_room_is_locked",
        HANGS,
    ),
    "the loop looks up who has the lock": Mutant(
        "live/guest_room.py",
        "            await self.loop.run_in_executor(None, continue_owner, self.desk.file)\n",
        "            continue_owner(self.desk.file)\n",
        "test_guest_turns.py::test_the_loop_goes_on_while_it_is_looked_up_who_has_the_lock",
        HANGS,
    ),
    "a doorbell looks at all rooms": Mutant(
        "live/guests.py",
        "        self.find_rooms()\n        ended =",
        "        self.forget_rooms()\n        self.find_rooms()\n        ended =",
        "test_guest_turns.py::test_a_doorbell_does_not_look_at_known_rooms",
    ),
    "the peer looks for rooms at every ring": Mutant(
        "live/guests.py",
        "max(self.next_look - calls.clock(), 0) / SECOND",
        "0.0",
        "test_guest_turns.py::test_the_loop_pauses_between_looks_for_rooms",
    ),
    "rooms are opened in the loop": Mutant(
        "live/guests.py",
        "await self.engine.loop.run_in_executor(None, open_table, path_of_gate(self.folder, file))",
        "open_table(path_of_gate(self.folder, file))",
        "test_guest_turns.py::test_a_room_whose_file_is_locked_does_not_hold_the_loop_up",
        HANGS,
    ),
    # Exclusions.
    "requests of an excluded peer are lost": Mutant(
        "live/gate.py",
        "                self.ask_again(ticket)\n",
        "                pass\n",
        f"{LEASES}::test_an_excluded_peer_joins_again_under_another_id",
        HANGS,
    ),
    "an excluded peer does not join again": Mutant(
        "live/in_cluster.py",
        "            self.engine.loop.call_soon(self.engine.spawn, self.join_again(why))\n",
        "            pass\n",
        f"{LEASES}::test_an_excluded_peer_joins_again_under_another_id",
        HANGS,
    ),
    "the end of a census is not told": Mutant(
        "live/gate.py",
        "            self.owner.census_is_over()\n",
        "",
        "test_hosts.py::test_three_hosts_share_a_gate",
        HANGS,
    ),
    "seats are asked for one by one": Mutant(
        "live/gate.py",
        "1 << (self.seats - 1).bit_length())\n",
        "self.seats)\n",
        f"{LEASES}::test_seats_are_asked_for_by_doubling",
    ),
    # Coming and going.
    "a peer waits for others that have ended": Mutant(
        "live/reach.py",
        "        return peer not in self.owner.transport.up and self.refuses(peer)\n",
        "        return False\n",
        "test_hosts.py::test_the_last_standing_peer_warns_as_it_leaves",
    ),
    "the last standing peer waits for nobody": Mutant(
        "live/in_cluster.py",
        "LAST_SECONDS = 0.5",
        "LAST_SECONDS = 0.0",
        f"{LEASES}::test_peers_that_leave_at_once[False]",
    ),
    "a newcomer goes on asking a peer that leaves": Mutant(
        "live/in_cluster.py",
        "        self.ask_another.set()\n",
        "        self.joined.set_exception(BadInput('it leaves'))\n",
        f"{LEASES}::test_a_newcomer_asks_another_member_if_the_first_leaves",
    ),
    "a refusal that will not go away is waited out": Mutant(
        "live/entrance.py",
        "        if all(dial.is_refused or dial not in transport.dials for dial in dials):\n",
        "        if False:\n",
        "test_hosts.py::test_a_refusal_that_will_not_go_away_ends_the_attempt_to_join[how0]",
        HANGS,
    ),
    "any refusal is taken for one that will not go away": Mutant(
        "net/dial.py",
        "        self.is_refused = self.refusing\n",
        "        self.is_refused = True\n",
        "test_hosts.py::test_joining_an_unreachable_seed_times_out",
    ),
    # Rest.
    "gates never rest": Mutant(
        "live/resting.py",
        "            gate.rest()\n            self.owner.put_to_rest(gate)\n",
        "            pass\n",
        "test_resting.py::test_the_roster_has_only_gates_that_are_in_use",
        HANGS,
    ),
    "gates at rest are kept": Mutant(
        "live/resting.py",
        "WeakValueDictionary[str, LiveGate] = WeakValueDictionary()",
        "dict[str, LiveGate] = {}",
        "test_resting.py::test_the_roster_has_only_gates_that_are_in_use",
        HANGS,
    ),
    "a gate that is kept open rests": Mutant(
        "live/gate.py",
        " or self.pinned or self.broken is not None\n",
        " or self.broken is not None\n",
        "test_resting.py::test_a_gate_that_is_kept_open_does_not_rest",
    ),
    "seats that were just taken are given up": Mutant(
        "live/engine.py",
        "        if self.gates.get(gate.name) is not gate or not (gate.closed or gate.resting):\n",
        "        if False:\n",
        "test_resting.py::test_an_excluded_peer_takes_new_seats_instead_of_giving_them_up",
    ),
    "a census trusts a seat that was given up and taken again": Mutant(
        "recovery/regenerate.py",
        "if places.get(i, NIL) in there}",
        "if places.get(i, NIL) in self.member_set}",
        "recovery/test_ghosts.py::test_a_seat_that_was_given_up_and_taken_again_says_nothing_about_tokens[naimi_trehel]",
    ),
    "the leader remembers all gates": Mutant(
        "recovery/changes.py",
        " if self.book.leader_of(self.value[4], gate) != NIL}",
        "}",
        "test_resting.py::test_the_roster_has_only_gates_that_are_in_use",
    ),
    "rooms stay that no guest uses": Mutant(
        "live/guests.py",
        "                room.remove_if_unused()\n",
        "                pass\n",
        "test_resting.py::test_rooms_that_no_guest_uses_are_removed",
        HANGS,
    ),
    "rooms are removed that guests have open": Mutant(
        "room/sweep.py",
        " or system.is_open_elsewhere(fd):\n",
        ":\n",
        "test_resting.py::test_rooms_that_no_guest_uses_are_removed",
    ),
    # Principals.
    "the founder does not know its principal": Mutant(
        "live/entrance.py",
        "        proved = own_principal(self.direct, self.network.tls, self.network.secret)\n",
        '        proved = "nothing"\n',
        "test_principals.py::test_another_member_cannot_take_the_id_of_the_dead_founder",
    ),
    "a member of the roster is whoever says so": Mutant(
        "live/in_cluster.py",
        "        return record is None or record.principal == principal\n",
        "        return True\n",
        "test_principals.py::test_another_member_cannot_take_the_id_of_the_dead_founder",
    ),
    "one key may have any number of connections": Mutant(
        "net/crowd.py",
        "        for each in outsiders[: max(len(outsiders) - most, 0)]:\n",
        "        for each in ():\n",
        "test_one_member.py::test_connections_of_one_principal_are_bounded",
    ),
    "members count as outsiders": Mutant(
        "net/crowd.py",
        "for each in connections if not self.owner.is_member(each.peer)]",
        "for each in connections]",
        "test_one_member.py::test_connections_of_one_principal_are_bounded",
    ),
    "one key may begin any number of large frames": Mutant(
        "net/crowd.py",
        "            if excess <= 0:\n",
        "            if True:\n",
        "test_one_member.py::test_bytes_in_flight_of_one_principal_are_bounded[loop]",
        HANGS,
    ),
    "large frames that another thread reads are not counted": Mutant(
        "net/pipe.py",
        "                self.later(self.frame_begun)\n",
        "                pass\n",
        "test_one_member.py::test_bytes_in_flight_of_one_principal_are_bounded[reader]",
        HANGS,
    ),
    "one key may leave any number of answers unread": Mutant(
        "net/crowd.py",
        "        for each in outsiders[: max(len(outsiders) - MOST_FULL, 0)]:\n",
        "        for each in ():\n",
        "test_one_member.py::test_answers_that_one_principal_does_not_read_are_bounded",
        HANGS,
    ),
    "early messages are not bounded for each peer": Mutant(
        "live/gate_checks.py",
        "size > MOST_EARLY or ",
        "",
        "test_forged_frames.py::test_messages_for_unknown_views_are_kept_and_bounded",
    ),
    "early messages are not bounded for all peers": Mutant(
        "live/gate_checks.py",
        " or sum(self.sizes.values()) + len(frame) > MOST_EARLY_OF_ALL",
        "",
        "test_forged_frames.py::test_messages_for_unknown_views_are_kept_and_bounded",
    ),
    "members fill the log": Mutant(
        "net/connection.py",
        "                rationed = self.owner.members_log if self.up else self.owner.strangers_log\n",
        "                rationed = log if self.up else self.owner.strangers_log\n",
        "test_one_member.py::test_lines_about_members_are_rationed",
    ),
    "a record may be without a principal": Mutant(
        "recovery/roster.py",
        "        if not self.principal:\n",
        "        if False:\n",
        f"{ROSTER}::test_no_record_is_without_a_principal",
    ),
    # The roster.
    "view numbers follow the clock": Mutant(
        "recovery/roster.py",
        "max(by_clock if by_clock < LATEST_CLOCK else 0, members.epoch + 1)",
        "by_clock",
        f"{ROSTER}::test_views_rise_whatever_the_clock_does",
    ),
    "the seats of peers that left stay": Mutant(
        "recovery/roster.py",
        "replace(gate, hosts=without(gate.hosts, peer), ghosts=ghosts)",
        "replace(gate, ghosts=ghosts)",
        f"{ROSTER}::test_the_seats_of_a_peer_that_leaves_go_with_it",
    ),
    "excluded peers leave no ghosts": Mutant(
        "recovery/roster.py",
        " if excluded else gate.ghosts\n",
        " if False else gate.ghosts\n",
        f"{ROSTER}::test_the_seats_of_an_excluded_peer_are_ghosts_until_it_is_forgotten",
    ),
    "a gate ends although a ghost may be inside": Mutant(
        "recovery/roster.py",
        "    if not gate.hosts and not gate.ghosts:\n",
        "    if not gate.hosts:\n",
        f"{ROSTER}::test_a_gate_of_ghosts_lives_on",
    ),
    "any k is accepted": Mutant(
        "recovery/roster.py",
        "    if gate.k != change.k:\n",
        "    if False:\n",
        f"{ROSTER}::test_what_is_refused",
    ),
    "anyone may change a gate": Mutant(
        "recovery/roster.py",
        "    if gate is None or not gate.seats(peer):\n",
        "    if gate is None:\n",
        f"{ROSTER}::test_what_is_refused",
    ),
    "a roster may be larger than a frame": Mutant(
        "recovery/roster.py",
        "    if size > MOST_BYTES:\n",
        "    if False:\n",
        f"{ROSTER}::test_the_book_refuses_a_roster_that_fits_no_frame",
    ),
    "a new view waits for a census that may never end": Mutant(
        "recovery/roster.py",
        "            return () if isinstance(what, Renew) else (what.gate,)\n",
        "            return (what.gate,)\n",
        f"{ROSTER}::test_the_book_tells_which_gates_a_change_concerns",
    ),
    # Saved state.
    "a cluster that is made again starts with old epochs": Mutant(
        "live/entrance.py",
        "saved.epoch + 1))",
        "0))",
        f"{LEASES}::test_a_cluster_goes_on_above_the_saved_epoch",
    ),
    "a restart does not wait for leases of the time before": Mutant(
        "live/saved.py",
        "        return 0 if self.left else ",
        "        return 0 if True else ",
        f"{LEASES}::test_how_long_old_leases_are_waited_for",
    ),
    "a peer that left still has leases": Mutant(
        "live/in_cluster.py",
        "            self.state.save(replace(self.state.last, left=True))\n",
        "            pass\n",
        f"{LEASES}::test_a_cluster_goes_on_above_the_saved_epoch",
    ),
    "two standing peers share a state directory": Mutant(
        "live/saved.py",
        "            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            pass\n",
        f"{LEASES}::test_saved_state",
    ),
}

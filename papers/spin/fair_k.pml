/*
 * Fair-k for Spin: N nodes, K tokens, R requests per node. Written from the pseudo-code alone, section 3.2 of
 * FK, "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems" (Reddy, Mittal and Gupta). It shares no line
 * with the Python code, so a mistake would have to be made twice to go unnoticed.
 *
 * Each handler is one d_step, and so one transition. The messages for a node wait in a bag (sorted sends; any
 * message may be received next), so all of them can overtake each other.
 *
 * Safety: after every handler at most K nodes are inside, K tokens are held or in flight, and exactly one
 * coordinator's role is held or in flight. End states: init waits until nothing can move and every node was
 * served R times. A run that stops in any other state leaves init waiting, which Spin reports as an invalid end
 * state. Liveness: a second search (pan -l; no state is marked as progress, so every cycle is an error) shows
 * that no run is endless. A finite run without an invalid end state grants every request.
 *
 * Not modelled: in_child_queue, which the procedures set but never read. A node that hands over the
 * coordinator's role also forgets its stale token_locations, which no node reads before they are overwritten.
 *
 * MUTANT breaks one line, to show that the check can fail. 1: Release_CS does not clear child. 2: the
 * coordinator keeps its role when it hands it over. 3: no path reversal in Process_Request. 4: a requester does
 * not become a root.
 */
#ifndef N
#define N 3
#endif
#ifndef K
#define K 1
#endif
#ifndef R
#define R 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#if N < 2 || N > 6 || K < 1 || K > N
#error "2 <= N <= 6 and 1 <= K <= N"
#endif

#define NIL 255
#define ROOM (N + K + 2) /* capacity of a bag; a full bag would block a d_step, which Spin reports as an error */

mtype = { REQUEST, CHILD, TOKEN };
typedef Tails { byte at[K] };

/* Table 1 of the paper, per node. */
bool token_present[N], requesting_cs[N], is_coordinator[N];
byte parent[N], next[N], child[N], counter_number[N];
Tails token_locations[N];

/* The network. Message_token_locations carries an array, so it needs separate bags. */
chan bag[N] = [ROOM] of { mtype, byte };
chan locations[N] = [2] of { Tails, byte };

/* The users (requests left, who is inside), and the counters that the properties use. */
byte left[N];
bool inside[N];
byte grants, tokens_flying, coordinators_flying;

hidden byte i, held, coordinators, busy; /* scratch variables within one step; not part of the state */

inline Check() {
    held = 0; coordinators = 0; busy = 0;
    for (i : 0 .. N - 1) {
        held = held + token_present[i];
        coordinators = coordinators + is_coordinator[i];
        busy = busy + inside[i];
    }
    assert(busy <= K);
    assert(held + tokens_flying == K);
    assert(coordinators + coordinators_flying == 1);
}

inline Enter() {
    assert(requesting_cs[me] && token_present[me] && !inside[me]);
    inside[me] = true; grants++;
}

inline Send_token(to) {
    tokens_flying++;
    bag[to]!!TOKEN, 0;
    token_present[me] = false;
}

/* The common part of Process_Request and Process_Token_Locations: r joins a queue and becomes the coordinator. */
inline Hand_on(r) {
    bag[token_locations[me].at[counter_number[me]]]!!CHILD, r;
    token_locations[me].at[counter_number[me]] = r;
    counter_number[me] = (counter_number[me] + 1) % K;
    is_coordinator[me] = (MUTANT == 2);
    coordinators_flying++;
    locations[r]!!token_locations[me], counter_number[me];
    counter_number[me] = NIL;
    for (i : 0 .. K - 1) { token_locations[me].at[i] = 0; }
}

inline Request_CS() {
    requesting_cs[me] = true;
    if
    :: token_present[me] -> Enter()
    :: else ->
        bag[parent[me]]!!REQUEST, me;
        if :: MUTANT != 4 -> parent[me] = NIL :: else fi
    fi
}

inline Release_CS() {
    requesting_cs[me] = false;
    if
    :: child[me] != NIL ->
        Send_token(child[me]);
        if :: MUTANT != 1 -> child[me] = NIL :: else fi
    :: else
    fi
}

inline Process_Request(r) {
    if
    :: parent[me] != NIL -> bag[parent[me]]!!REQUEST, r
    :: else ->
        if
        :: !is_coordinator[me] -> next[me] = r
        :: else -> Hand_on(r)
        fi
    fi;
    if :: MUTANT != 3 -> parent[me] = r :: else fi
}

inline Process_Token() {
    token_present[me] = true;
    Enter()
}

inline Process_Child(r) {
    if
    :: requesting_cs[me] -> child[me] = r
    :: else -> Send_token(r)
    fi;
    parent[me] = r
}

inline Process_Token_Locations() {
    is_coordinator[me] = true;
    if
    :: next[me] != NIL -> Hand_on(next[me]); parent[me] = next[me]; next[me] = NIL
    :: else
    fi
}

/* ?? receives the first message that matches. One alternative per r therefore lets any message be received next. */
#define ABOUT(r) \
    :: d_step { bag[me]??REQUEST, r -> Process_Request(r); Check() } \
    :: d_step { bag[me]??CHILD, r -> Process_Child(r); Check() }

proctype Node(byte me) {
end:
    do
    :: d_step { left[me] > 0 && !requesting_cs[me] -> left[me]--; Request_CS(); Check() }
    :: d_step { inside[me] -> inside[me] = false; Release_CS(); Check() }
    :: d_step { bag[me]??TOKEN, 0 -> tokens_flying--; Process_Token(); Check() }
    :: d_step {
           locations[me]?token_locations[me], counter_number[me] ->
           coordinators_flying--; Process_Token_Locations(); Check()
       }
    ABOUT(0)
    ABOUT(1)
#if N > 2
    ABOUT(2)
#endif
#if N > 3
    ABOUT(3)
#endif
#if N > 4
    ABOUT(4)
#endif
#if N > 5
    ABOUT(5)
#endif
    od
}

init {
    atomic {
        d_step { /* Initialization */
            for (i : 0 .. N - 1) {
                left[i] = R;
                token_present[i] = (i < K);
                next[i] = NIL; child[i] = NIL; counter_number[i] = NIL;
            }
            parent[0] = NIL; counter_number[0] = 0; is_coordinator[0] = true;
            for (i : 0 .. K - 1) { token_locations[0].at[i] = i; }
        }
        for (i : 0 .. N - 1) { run Node(i); }
    }
    atomic {
        timeout && grants == N * R -> /* a message can always be received, so the bags are empty here */
        d_step {
            for (i : 0 .. N - 1) {
                assert(left[i] == 0 && !requesting_cs[i] && !inside[i] && empty(bag[i]) && empty(locations[i]));
            }
        }
    }
}

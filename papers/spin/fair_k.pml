/*
 * Fair-k for Spin, written from the paper's pseudo-code (section 3.2) alone: N nodes, K tokens, R requests
 * of each node. It shares no line with the Python, so that a mistake would have to be made twice.
 *
 * A handler is one d_step: one transition. Messages wait in a bag for each node (sorted sends, any may come
 * next), so all of them can overtake each other.
 *
 * Safety: after every handler at most K are inside, the tokens held and under way are K, the coordinators
 * held and under way are one. Ends: init waits for "nothing can move and everybody was served R times";
 * a run that stops otherwise leaves it there, which Spin reports as an invalid end state. Liveness: a second
 * search (pan -l; no state is marked as progress, so that every cycle is an error) shows that no run is
 * endless; finite runs without a bad end grant every request.
 *
 * Not modelled: in_child_queue, which the procedures set but never read. A node that hands the coordinator's
 * place on also forgets its stale token_locations, which nobody reads before they are overwritten.
 *
 * MUTANT breaks one line, to see the check fail: 1 child is not cleared in Release_CS; 2 the coordinator stays
 * one after handing on; 3 no path reversal in Process_Request; 4 a requester does not become a root.
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
#define ROOM (N + K + 2) /* of a bag; a full one would stop a d_step, which is an error too */

mtype = { REQUEST, CHILD, TOKEN };
typedef Tails { byte at[K] };

/* Table 1 of the paper, by node. */
bool token_present[N], requesting_cs[N], is_coordinator[N];
byte parent[N], next[N], child[N], counter_number[N];
Tails token_locations[N];

/* The network. Message_token_locations carries an array, so it has bags of its own. */
chan bag[N] = [ROOM] of { mtype, byte };
chan locations[N] = [2] of { Tails, byte };

/* The users: requests left, who is inside; and what the properties count. */
byte left[N];
bool inside[N];
byte grants, tokens_flying, coordinators_flying;

hidden byte i, held, coordinators, busy; /* scratch, used within one step: not part of a state */

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

/* What Process_Request and Process_Token_Locations share: r joins a queue and becomes the coordinator. */
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

/* A receive with ?? takes the first that matches; an alternative for each r lets any message come first. */
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
        timeout && grants == N * R -> /* a message can always be taken, so that the bags are empty here */
        d_step {
            for (i : 0 .. N - 1) {
                assert(left[i] == 0 && !requesting_cs[i] && !inside[i] && empty(bag[i]) && empty(locations[i]));
            }
        }
    }
}

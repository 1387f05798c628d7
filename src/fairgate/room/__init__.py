"""The waiting room of a gate on one host: a file that all its processes map, and no server.

layout   where everything is in the file
words    the file's words, as they are mapped
links    the words that are derived from others: the queue, the slots, the spare seats
table    transitions on the words, with no system call; any store may be the last one of its process
rules    what a process does while it has the lock: request, look, bury the dead, expire leases
calls    the system calls that every request makes
system   what else the room asks of the kernel
bell     named pipes that wake a process and show when it is dead
senses   what a process sees of others: are they dead, or stopped?
folder   which directories may hold gates, and with whom they are shared
opening  opening the file of a gate, or creating it
file     the file: checking, mapping, growing, locking
changes  one change: lock, repair, step, unlock, ring
desk     requests and waiting
permit   the permits of one process
room     all of that as one object
notes    text that a request leaves for people
listing  the requests as people see them
place    the directory of this user on this host
sweep    removing what nobody uses any more

`table` and `rules` are pure: tests/room explores every order of their steps, with a death after every store.

`fairgate run` must start fast, and importing `typing` would take as long as all of these modules together. So they
import it for the type checker alone, below `TYPE_CHECKING = False`, which a type checker takes for True.
"""

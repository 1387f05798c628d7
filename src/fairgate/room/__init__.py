"""The waiting room of a gate on one host: a file that all its processes map, and no server.

layout   where everything is in the file
table    transitions on the file's words, with no system call; any store may be the last one of its process
rules    what a process does while it has the lock: request, look, bury the dead, expire leases
system   what the room asks of the kernel
bell     named pipes that wake a process and show when it is dead
file     the file: creating, checking, mapping, locking
notes    text that a request leaves for people
listing  the requests as people see them
room     requests and permits of one process

`table` and `rules` are pure: tests/room explores every order of their steps, with a death after every store.

`fairgate run` must start fast, and importing `typing` would take as long as all of these modules together. So they
import it for the type checker alone, below `TYPE_CHECKING = False`, which a type checker takes for True.
"""

"""What a live peer stands on. docs/live-internals.md is the map.

codec       frames of plain values, to bytes and back
connection  one open connection: greeting, batched writes, bounds
transport   all connections of one peer: listening, dialling, one for each pair
address     where a peer can be reached; listening sockets
access      who may use a runtime directory, and who is at the other end of a Unix socket
tls, keys   mutual TLS; the cluster's authority and its certificates
runtime     the directory in which the peers of a host meet
members     the file in it: who is there, which gates are open
watch       the death of another process, known at once
loop        uvloop where it is installed
"""

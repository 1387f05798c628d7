"""Sockets, keys and files below live peers. docs/live-internals.md has an overview.

codec       encodes and decodes frames of plain values
connection  one open connection: greeting, batched writes, limits
pipe        the part of a connection that runs for every message
reader      which thread reads from the sockets
system      the system calls made for every message, plain and compiled
transport   all connections of one peer: listening, dialling, one connection per pair of peers
dial        keeps a connection to one address
address     addresses of peers; TCP sockets that listen
unix_socket Unix sockets that listen, and their files
access      who may use the Unix sockets in a directory, and which process is at the other end of one
tls, keys   mutual TLS; the cluster's certificate authority and its certificates
runtime     the directory in which the peers of a host meet
members     the file in it that holds the roster
roster      peers and gates as plain data, and every change as a pure function
occupancy   processes that are still inside after their peer died
watch       detects the death of other processes
loop        selects uvloop where it is installed
"""

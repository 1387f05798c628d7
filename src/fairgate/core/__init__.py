"""The contract every protocol is written against. Pure: no clock, no socket, no random number."""

"""The exhaustive checker: runs the same nodes as the simulator and the network, through every order of events."""

"""A command that runs under supervision, as `fairgate run` does it.

process     the command and its process group
signals     the signals of this process, for a main thread that waits for them
terminal    the controlling terminal and its foreground process group
supervisor  forwards signals, hands over the terminal, and ends the command when its permit is lost
"""

"""Torture: a real cluster under random faults, and a judgement of what its processes saw (`fairgate torture`)."""

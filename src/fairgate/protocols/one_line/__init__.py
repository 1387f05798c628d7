"""One line, k windows: our own algorithm for k > 1. papers/one_line.md describes it."""

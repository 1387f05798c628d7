"""Empty twin of large_pages.pyx: in the interpreter, waiting for memory is a small part of a run."""

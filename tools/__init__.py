"""Tools for building and looking after the project; none of them is installed."""

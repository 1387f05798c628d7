"""Build and maintenance tools of the project; they are not installed."""

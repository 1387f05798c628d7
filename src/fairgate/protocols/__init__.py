"""The protocols. Each is one file or subpackage that follows the names and the order of its paper."""

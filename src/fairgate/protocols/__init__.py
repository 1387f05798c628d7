"""The algorithms: one file each, or one subpackage, named and ordered as in its paper."""

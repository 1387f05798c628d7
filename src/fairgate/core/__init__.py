"""The contract between protocols and drivers. This package is pure: it uses no clock, no socket and no randomness."""

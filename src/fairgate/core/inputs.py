"""A node's inputs, by the names that drivers, journals and scenarios use for them."""

CALLS = {  # event -> the node's method, which takes the step's arguments
    "start": "on_start",
    "acquire": "on_acquire",
    "release": "on_release",
    "again": "on_again",  # release, and acquire at once
    "cancel": "on_cancel",
    "message": "on_message",
    "timer": "timer_due",
    "suspect": "on_suspect",
    "trust": "on_trust",
    "dead": "on_crash",  # the node learns that a peer has crashed
    "join": "on_join",
    "leave": "on_leave",
    "view": "on_view",
}

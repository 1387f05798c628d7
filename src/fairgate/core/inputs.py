"""The inputs of a node by the names that drivers, journals and scenarios use for them."""

CALLS = {  # event -> the node's method. A step's arguments are the method's.
    "start": "on_start",
    "acquire": "on_acquire",
    "release": "on_release",
    "cancel": "on_cancel",
    "message": "on_message",
    "timer": "timer_due",
    "suspect": "on_suspect",
    "trust": "on_trust",
    "dead": "on_crash",  # it is told of a peer's crash
    "join": "on_join",
    "leave": "on_leave",
    "view": "on_view",
}

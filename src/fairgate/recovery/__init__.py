"""What makes a protocol survive: channels over lossy networks, and what is built on them. Pure, like the protocols."""

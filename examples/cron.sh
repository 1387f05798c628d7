#!/bin/sh
# A nightly job that must not run twice at once on this host, however often and by whatever it is started.
#
#     30 2 * * *  cron.sh backup --all
#
# -n        if it runs already (last night's is not done, or somebody started it by hand), do not wait ...
# -E 0      ... and that is fine: cron has nothing to send a mail about
# --lease   it is ended after six hours, so that one that hangs does not keep all later ones out
#
# The gate is one host's. The same line in the crontabs of three hosts runs the job three times a night: `fairgate run`
# does not join other hosts yet.

# Where all who start this script meet. Left to itself a terminal chooses another place than cron, which has no
# XDG_RUNTIME_DIR. Several users: let an administrator make /run/fairgate for a group of theirs, and drop these lines.
FAIRGATE_DIR="${FAIRGATE_DIR:-$HOME/.local/state/fairgate/nightly/$(uname -n)}"
export FAIRGATE_DIR

exec fairgate run nightly -n -E 0 --lease 21600 -- "$@"

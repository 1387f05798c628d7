#!/bin/sh
# A nightly job that must not run twice at once on this host, however often and by whatever means it is started.
#
#     30 2 * * *  $HOME/bin/cron.sh backup --all
#
# -n        do not wait if the job is already running (last night's is not done, or somebody started it by hand)
# -E 0      exit with 0 in that case, so that cron sends no mail
# --lease   let the job run for at most six hours, so that a hanging one does not block all later ones: it gets SIGTERM
#           5 s before they are over (--grace), and SIGKILL if it is still running at the end
#
# The gate belongs to one host: the same line in the crontabs of three hosts runs the job three times a night. For a
# gate that several hosts share, create a cluster with `fairgate peer --create` and add `--join HOST:PORT` here.

# Cron has a short PATH. Add the directory of the command fairgate, if it is another one.
PATH="$PATH:$HOME/.local/bin"

exec fairgate run nightly -n -E 0 --lease 21600 -- "$@"

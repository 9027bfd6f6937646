#!/bin/bash
# Stands in for `mpirun -n N --oversubscribe --bind-to none PROGRAM …`, with one process that says it is N.
STUB_PROCESSES="$2" exec "${@:6}"

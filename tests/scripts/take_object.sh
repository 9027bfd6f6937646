#!/bin/bash
# This is a compiler launcher. An object that $ANTICHAIN_ALIKE names is taken from the build in
# $ANTICHAIN_OBJECTS, where it was compiled by the same command (tests/scripts/without_mpi.sh compares them).
# Others are compiled.
object=""
previous=""
for word in "$@"; do
  if [ "$previous" = -o ]; then object=$word; fi
  previous=$word
done
ready=${ANTICHAIN_OBJECTS:?}/$object
if [ -f "$ready" ] && grep -qxF -- "$object" "${ANTICHAIN_ALIKE:?}"; then exec cp "$ready" "$object"; fi
exec "$@"

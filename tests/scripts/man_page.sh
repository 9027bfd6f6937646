#!/bin/bash
# man_page.sh FILE: the page that a build has made for man is formatted without a warning, and shows what the
# program prints of its options.
set -uo pipefail
command -v groff >/dev/null || { echo "needs groff" && exit 77; }
warnings=$(groff -man -Tutf8 -ww -rLL=80n "$1" 2>&1 >/dev/null)
[ -z "$warnings" ] || { echo "$warnings" && exit 1; }
text=$(groff -man -Tascii -P-cbou -rLL=200n "$1" 2>/dev/null)
for part in "antichain train" "--microbatches N" "--nesterov" "antichain data pack" "--schedule NAME|FILE"; do
  grep -qF -- "$part" <<<"$text" || { echo "it does not show $part" && exit 1; }
done

#!/bin/bash
# Stands in for `compute-sanitizer --tool TOOL …`, and finds something with memcheck.
[ "$2" = memcheck ] || exit 0
echo "========= Invalid __global__ read of size 16 bytes"
echo "========= ERROR SUMMARY: 1 error"
exit 9

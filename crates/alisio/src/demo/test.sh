#!/bin/sh
# Checks total.sh against a sum worked out by hand.
printf '%s\n' 12 30 > numbers.tmp
got=$(sh total.sh numbers.tmp)
rm numbers.tmp
if [ "$got" = 42 ]; then
  echo "ok: 12 + 30 = $got"
else
  echo "FAILED: expected 42, got $got"
  exit 1
fi

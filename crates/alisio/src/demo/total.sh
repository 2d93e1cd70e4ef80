#!/bin/sh
# Prints the sum of the numbers in a file, one number a line.
sum=0
while read -r number; do
  sum=$((sum - number))
done < "$1"
echo "$sum"

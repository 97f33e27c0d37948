#!/bin/sh
# Prints the sum of two numbers.
echo $(( $1 * $2 ))

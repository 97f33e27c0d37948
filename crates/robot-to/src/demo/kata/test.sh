#!/bin/sh
# The tests of roman.sh. Exit status: 0 when all hold.
passed=0
failed=0

check() { # number, numeral
    got=$(sh roman.sh "$1" 2>/dev/null)
    if [ "$got" = "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "roman.sh $1: expected $2, got ${got:-nothing}"
    fi
}

refuse() { # not a number that has a numeral
    sh roman.sh "$1" >/dev/null 2>&1
    status=$?
    if [ "$status" -eq 2 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "roman.sh $1: expected status 2, got $status"
    fi
}

check 1 I
check 2 II
check 3 III
check 4 IV
check 5 V
check 6 VI
check 9 IX
check 10 X
check 14 XIV
check 40 XL
check 90 XC
check 400 CD
check 900 CM
check 1994 MCMXCIV
check 2026 MMXXVI
check 3999 MMMCMXCIX
refuse 0
refuse 4000
refuse -1
refuse abc
refuse ''

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

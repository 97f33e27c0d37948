#!/bin/sh
# The tests of lib/roman_numeral.sh. Exit status: 0 when all of them hold.
cd "$(dirname "$0")/.." || exit 1
tests=0
assertions=0
failures=0

if ! [ -f lib/roman_numeral.sh ]; then
    echo "there is no lib/roman_numeral.sh"
    exit 1
fi
. ./lib/roman_numeral.sh

check() { # what is expected, function, argument
    assertions=$((assertions + 1))
    got=$("$2" "$3")
    if [ "$got" != "$1" ]; then
        failures=$((failures + 1))
        echo "$2 $3: expected $1, got ${got:-nothing}"
    fi
}

refuse() { # function, argument
    assertions=$((assertions + 1))
    if got=$("$1" "$2") || [ -n "$got" ]; then
        failures=$((failures + 1))
        echo "$1 '$2': expected a refusal, got ${got:-status 0}"
    fi
}

test_digits() {
    check I to_roman 1
    check V to_roman 5
    check X to_roman 10
    check L to_roman 50
    check C to_roman 100
    check D to_roman 500
    check M to_roman 1000
}

test_sums() {
    check III to_roman 3
    check VIII to_roman 8
    check MDCLXVI to_roman 1666
}

test_subtraction() {
    check IV to_roman 4
    check IX to_roman 9
    check XL to_roman 40
    check XC to_roman 90
    check CD to_roman 400
    check CM to_roman 900
    check MCMXCIV to_roman 1994
}

test_range() {
    check MMMCMXCIX to_roman 3999
    refuse to_roman 0
    refuse to_roman 4000
    refuse to_roman -1
}

test_no_numbers() {
    refuse to_roman ''
    refuse to_roman 1.5
    refuse to_roman ten
}

test_numerals() {
    check 1 from_roman I
    check 4 from_roman IV
    check 1666 from_roman MDCLXVI
    check 3999 from_roman MMMCMXCIX
}

test_case() {
    check 1994 from_roman mcmxciv
    check 14 from_roman xIv
}

test_no_numerals() {
    for text in '' ABC 'X X' IIII VV IC IIX MMMM; do
        refuse from_roman "$text"
    done
}

test_there_and_back() {
    number=1
    while [ "$number" -le 3999 ]; do
        check "$number" from_roman "$(to_roman "$number")"
        number=$((number + 37))
    done
}

for test in digits sums subtraction range no_numbers numerals case no_numerals there_and_back; do
    tests=$((tests + 1))
    "test_$test"
done
echo "$tests tests, $assertions assertions, $failures failures"
[ "$failures" -eq 0 ]

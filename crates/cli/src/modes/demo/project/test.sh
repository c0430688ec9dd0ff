#!/bin/sh
. ./price.sh

failed=0
check() {
    if [ "$2" = "$3" ]; then
        echo "ok    $1"
    else
        echo "FAIL  $1: $2 instead of $3"
        failed=1
    fi
}

check 'a small basket' "$(total 1200)" 1200
check 'a large basket' "$(total 8000)" 7200
check 'exactly 50.00' "$(total 5000)" 4500
exit $failed

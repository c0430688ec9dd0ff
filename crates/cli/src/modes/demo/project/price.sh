# What a basket costs.

# A tenth, from 50.00 on.
discount() {
    if [ "$1" -gt 5000 ]; then
        echo $(($1 / 10))
    else
        echo 0
    fi
}

total() {
    echo $(($1 - $(discount "$1")))
}

# Prints a receipt: sh receipt.sh CENTS
. ./price.sh

euros() {
    printf '%d.%02d' $(($1 / 100)) $(($1 % 100))
}

echo "basket    $(euros "$1")"
echo "discount  $(euros "$(discount "$1")")"
echo "to pay    $(euros "$(total "$1")")"

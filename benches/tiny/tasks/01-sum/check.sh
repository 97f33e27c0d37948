for pair in "2 3 5" "10 -4 6" "0 0 0"; do
    set -- $pair
    got=$(sh add.sh "$1" "$2")
    [ "$got" = "$3" ] || { echo "add.sh $1 $2 printed $got, expected $3"; exit 1; }
done

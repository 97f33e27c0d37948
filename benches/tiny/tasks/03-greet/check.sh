got=$(sh greet.sh Ada); [ "$got" = "hello, Ada" ] || { echo "greet.sh Ada printed '$got', expected 'hello, Ada'"; exit 1; }
got=$(sh greet.sh); [ "$got" = "hello, world" ] || { echo "greet.sh printed '$got', expected 'hello, world'"; exit 1; }
